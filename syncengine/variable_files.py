"""A file of `--var-file` → variables: texts as written, lists and mappings of them. Reads the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syncengine.document.findings import Findings
from syncengine.document.nodes import Mapping, Node, Refused, Scalar, Sequence
from syncengine.document.reader import MAX_BYTES, read
from syncengine.errors import Problems


def variables_in(path: Path) -> dict[str, Any]:
    """The variables of a YAML or JSON file; Problems if it is not a mapping of names."""
    findings = Findings(path.name)
    try:
        with path.open("rb") as file:
            roots = read(file.read(MAX_BYTES + 1), findings).roots
    except OSError as error:
        findings.at("unreadable-file", None, None, f"the file of variables cannot be read: {error.strerror or error}")
        roots = ()
    for root in roots:
        if not isinstance(root, Mapping | Refused):
            findings.error("wrong-type", root, "a file of variables is a mapping of names to values")
    if findings.found:
        raise Problems(findings.found)
    found = [_value(root) for root in roots]
    return {name: value for part in found for name, value in part.items()}


def _value(node: Node) -> Any:
    match node:
        case Mapping():
            return {key.text: _value(value) for key, value in zip(node.keys, node.values, strict=True)}
        case Sequence():
            return [_value(item) for item in node.items]
        case Scalar():
            return "" if node.is_null else node.text
        case _:
            return ""
