"""Compare two versions of the project file by setting. No value is kept or shown, since it may be secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from syncengine.document.comparison import compare
from syncengine.document.diagnostics import Collector
from syncengine.document.digest import sha256_of
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read

AT_MOST = 10


def settings_in(config: Path | None) -> Mapping[str, str]:
    """Return a digest of each setting of a project file by its name, such as `serve.every`. Empty without a file."""
    try:
        roots = read(config.read_bytes(), Collector(config.name)).roots if config is not None else ()
    except OSError:
        return {}
    return {name: digest for root in roots for name, digest in _leaves(root, "")}


def _leaves(node: Node, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, MappingNode):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from _leaves(value, f"{name}.{key.text}" if name else key.text)
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from _leaves(item, f"{name}[{number}]")
    elif isinstance(node, Scalar):
        yield name, sha256_of(node.text)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the settings that a reload changed, as a clause for the log."""
    compared = compare(before, after)
    names = (
        *(f"{name} was added" for name in compared.new),
        *(f"{name} was removed" for name in compared.gone),
        *(f"{name} was changed" for name in compared.different),
    )
    more = f", and {len(names) - AT_MOST} more" if len(names) > AT_MOST else ""
    return f"{', '.join(names[:AT_MOST])}{more}" if names else "no setting was changed"
