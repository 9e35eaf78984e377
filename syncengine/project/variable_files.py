"""A file of `--var-file` → variables: texts as written, as under `variables:` of the project file. Reads the file."""

from __future__ import annotations

from pathlib import Path

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.nodes import Mapping, RefusedNode
from syncengine.document.reader import MAX_BYTES, read
from syncengine.document.scalar_readers import texts
from syncengine.errors import Problems


def variables_in(path: Path) -> dict[str, str]:
    """The variables of a YAML or JSON file; Problems if it is not a mapping of names to texts."""
    findings = Collector(path.name)
    try:
        with path.open("rb") as file:
            roots = read(file.read(MAX_BYTES + 1), findings).roots
    except OSError as error:
        findings.at("unreadable-file", None, None, f"the file of variables cannot be read: {error.strerror or error}")
        roots = ()
    found: dict[str, str] = {}
    read_texts = texts("variables")
    for root in roots:
        if isinstance(root, Mapping):
            read_here = read_texts(root, findings)
            found |= {} if read_here is INVALID else read_here
        elif not isinstance(root, RefusedNode):
            findings.error("wrong-type", root, "a file of variables is a mapping of names to values")
    if findings.found:
        raise Problems(findings.found)
    return found
