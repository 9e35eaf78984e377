"""Rewrite YAML in canonical indentation by ruamel.yaml, which keeps comments and quotes. Pure."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.resolver import VersionedResolver

from syncengine.tools.fmt.key_order import order_at, ordered

MAPPING, SEQUENCE, OFFSET = 2, 4, 2
WIDTH = 120
"""The column beyond which a list or mapping in brackets is broken up into one item per line."""

__all__ = ["YAMLError", "roundtrip"]


class _AsWritten(VersionedResolver):
    """A resolver that reads every non-empty scalar as text, so that `0123`, `1.10` and `no` stay as written."""

    @property
    def versioned_resolver(self) -> Any:
        return {"": [("tag:yaml.org,2002:null", re.compile("^$"))]}


def roundtrip(text: str) -> str:
    """Return the text in canonical indentation. Raise `YAMLError` if ruamel.yaml cannot read it."""
    yaml = YAML()
    yaml.Resolver = _AsWritten
    yaml.preserve_quotes = True
    yaml.width = 1_000_000  # lines are not folded: authors decide where to break a text
    yaml.indent(mapping=MAPPING, sequence=SEQUENCE, offset=OFFSET)
    documents = list(yaml.load_all(text))
    for document in documents:
        _arrange(document)
    written = io.StringIO()
    yaml.dump_all(documents, written)
    return written.getvalue()


def _arrange(root: Any) -> None:
    """Order the keys of flow mappings, and break up flow collections that are too long for one line."""
    waiting: list[tuple[tuple[str, ...], Any, int]] = [((), root, 0)]
    while waiting:
        path, node, column = waiting.pop()
        if not isinstance(node, CommentedMap | CommentedSeq):
            continue
        flow = node.fa.flow_style()
        if flow and isinstance(node, CommentedMap):
            _order(node, path)
        if flow and column + len(_flow(node)) > WIDTH:
            node.fa.set_block_style()
        waiting += [(p, child, at) for p, child, at in _children(path, node, column)]


def _children(path: tuple[str, ...], node: Any, column: int) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    if isinstance(node, CommentedMap):
        deeper = column + MAPPING if path and path[-1] != "[]" else column
        yield from (((*path, str(key)), value, deeper + len(str(key)) + 2) for key, value in node.items())
    else:
        yield from (((*path, "[]"), item, column + SEQUENCE) for item in node)


def _order(node: CommentedMap, path: tuple[str, ...]) -> None:
    order = order_at(path)
    keys = list(node)
    if order is not None and (wanted := ordered(keys, order)) != keys:
        for key in wanted:
            node.move_to_end(key)


def _flow(node: Any) -> str:
    """Return approximately the node's text in flow style."""
    if isinstance(node, CommentedMap):
        return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in node.items()) + "}"
    if isinstance(node, CommentedSeq):
        return "[" + ", ".join(map(_flow, node)) + "]"
    return str(node)
