"""Put the keys of a manifest's block mappings in canonical order, by moving whole lines. Pure.

A key moves together with the comment lines right above it, its value, and any comment after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Node
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
from syncengine.tools.fmt.key_order import order_at, ordered
from syncengine.tools.fmt.lines import Is, Line, lines_of

Path = tuple[str, ...]


def permuted(text: str) -> str:
    """Return the text with its keys in canonical order. The text must have no anchors, for which order matters."""
    while (better := _first_move(text)) is not None:
        text = better
    return text


def _first_move(text: str) -> str | None:
    """Return the text with all mappings of one depth put in order, or `None` if nothing is left to do."""
    lines = lines_of(text)
    depths: dict[int, list[tuple[Mapping, Sequence[str]]]] = {}
    for path, mapping in _mappings(text):
        order = order_at(path)
        keys = [key.text for key in mapping.keys]
        if order is not None and _is_block(mapping, lines) and ordered(keys, order) != keys:
            depths.setdefault(len(path), []).append((mapping, order))
    if not depths:
        return None
    rows = [line.text for line in lines]
    # Go from the end, and move lines only within a mapping, so that line numbers of other mappings stay valid.
    for mapping, order in reversed(depths[max(depths)]):
        start, moved = _moved(mapping, order, lines)
        rows[start : start + len(moved)] = moved
    return "\n".join(rows) + "\n"


def _mappings(text: str) -> Iterator[tuple[Path, Mapping]]:
    findings = Collector("")
    waiting: list[tuple[Path, Node]] = [((), root) for root in read(text.encode(), findings).roots]
    while waiting:
        path, node = waiting.pop(0)
        if isinstance(node, Mapping):
            yield path, node
            waiting += [((*path, key.text), value) for key, value in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, SequenceNode):
            waiting += [((*path, "[]"), item) for item in node.items]


def _is_block(mapping: Mapping, lines: Sequence[Line]) -> bool:
    """Return whether each key starts a line of its own; the first key may follow a dash."""
    starts = [(key.mark.line, key.mark.column) for key in mapping.keys]
    if len({line for line, _ in starts}) < len(starts) or not starts:
        return False
    head = lines[starts[0][0]]
    before = head.text[: starts[0][1]]
    return (
        mapping.mark.line == starts[0][0]
        and mapping.mark.column == starts[0][1]
        and not before.strip(" -")
        and all(lines[line].column == column for line, column in starts[1:])
    )


def _moved(mapping: Mapping, order: Sequence[str], lines: Sequence[Line]) -> tuple[int, list[str]]:
    """Return the first line of the mapping's keys, and all of its lines in their new order."""
    column = mapping.keys[0].mark.column
    starts = [key.mark.line for key in mapping.keys]
    heads = [starts[0], *(_head(lines, start) for start in starts[1:])]
    end = _end(lines, starts[-1], column)
    bounds = [*heads[1:], end]
    names = [key.text for key in mapping.keys]
    rows = {
        name: [line.text for line in lines[head:bound]] for name, head, bound in zip(names, heads, bounds, strict=True)
    }
    prefix = rows[names[0]][0][:column]
    rows[names[0]][0] = " " * column + rows[names[0]][0][column:]
    result = [row for name in ordered(names, order) for row in rows[name]]
    first = next(number for number, row in enumerate(result) if row.strip() and not row.lstrip().startswith("#"))
    dash = len(prefix) - len(prefix.lstrip(" "))
    for number in range(first):
        result[number] = (" " * dash + result[number].lstrip(" ")).rstrip()
    result[first] = prefix + result[first][column:]
    return heads[0], result


def _head(lines: Sequence[Line], start: int) -> int:
    """Return the first of the comment lines right above a key; deeper comments belong to the content before the key."""
    head = start
    while lines[head - 1].kind is Is.COMMENT and lines[head - 1].column <= lines[start].column:
        head -= 1
    return head


def _end(lines: Sequence[Line], last: int, column: int) -> int:
    """Return the line after the mapping, which ends before shallower content and the comments above that content."""
    end = last + 1
    for number in range(last + 1, len(lines)):
        line = lines[number]
        if line.kind is Is.MARKER or (line.kind is Is.CONTENT and line.column < column):
            break
        if line.kind in (Is.CONTENT, Is.INSIDE) or (line.kind is Is.COMMENT and line.column > column):
            end = number + 1
    return end
