"""Values before and after → what was done to them, where the same was done to several; pure.

A shape is a function with fixed parameters: from it, the value before and the resource's name, the value after follows.
So one row with one example says all of a group, and nothing that was done otherwise can hide in it. A date that moved
is the one exception; its row shows the range. "Replaced by something else" is no shape.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from syncengine.document.instants import instant
from syncengine.render.escape import shared_length
from syncengine.resource import Value

ALIKE = 3
"""The number of changes from which on the same thing is a shape."""

POPULAR = 8
"""Shapes that are tried on values which have no shape of their own."""


class Aspect(NamedTuple):
    """One thing that changes in a resource. `note` belongs to it and is the same for all of a shape."""

    label: str
    before: Value | None
    after: Value | None
    note: str = ""


Parameters = tuple[Value | tuple[tuple[str, ...], ...] | None, ...]


class ValueShape(NamedTuple):
    """Something done to a value; `rule` names a line of `RULES`."""

    rule: str
    parameters: Parameters


class ShapeRule(NamedTuple):
    """How a shape is found, and what it makes of a value.

    `find`: (name, before, after) → parameters, or None. `make`: (parameters, name, before) → after; None where the
    value after does not follow. `level`: rules of a lower level come first; of one level, the shape of most values.
    """

    find: Callable[[str, Value | None, Value | None], Parameters | None]
    make: Callable[[Parameters, str, Value | None], object] | None
    level: int = 0


class ValueColumn(NamedTuple):
    """Values of one label, before and after, each with the name of its resource."""

    names: list[str]
    before: list[Value | None]
    after: list[Value | None]


def shapes_of(column: ValueColumn) -> list[ValueShape | None]:
    """The shape of each value; None: the same was not done to enough others."""
    names, before, after = column
    if before.count(None) == len(before):
        return _first_shapes(names, after)
    shapes: list[ValueShape | None] = [None] * len(names)
    for level in LEVELS:
        rest = [n for n, shape in enumerate(shapes) if shape is None]
        enough = rest if len(rest) >= ALIKE else []
        found = _elected([_candidates(level, names[n], before[n], after[n]) for n in enough])
        for n, shape in zip(rest, found, strict=False):
            shapes[n] = shape
        _join_popular(level, column, shapes)
    return shapes


def _first_shapes(names: Sequence[str], values: Sequence[Value | None]) -> list[ValueShape | None]:
    """The same for values where none was before: the same one, or one with the resource's own name, or a date."""
    shapes = _frequent(values)
    rest = [n for n, shape in enumerate(shapes) if shape is None]
    likely = [n for n in rest if (names[n] in v if isinstance(v := values[n], str) else _may_be_shaped(names[n], v))]
    found = _elected([_first_candidates(names[n], values[n]) for n in likely])
    for n, shape in zip(likely, found, strict=True):
        shapes[n] = shape
    return shapes


def _frequent(values: Sequence[Value | None]) -> list[ValueShape | None]:
    """The values that are there often enough."""
    different = len(set(values))
    if different == 1 and len(values) >= ALIKE:
        return [ValueShape("same", (None, values[0]))] * len(values)
    if different == len(values):
        return [None] * len(values)
    often = {value: ValueShape("same", (None, value)) for value, count in Counter(values).items() if count >= ALIKE}
    return [often.get(value) for value in values]


def _may_be_shaped(name: str, value: Value | None) -> bool:
    """Whether a value may have a shape of its own: one that is there, and lists the name where it is a list."""
    return name in " ".join(value) if isinstance(value, tuple) else value is not None


def _first_candidates(name: str, value: Value | None) -> list[ValueShape]:
    return [
        ValueShape(rule, parameters)
        for rule, is_possible in FIRST_RULES
        if is_possible(name, value) and (parameters := RULES[rule].find(name, None, value)) is not None
    ]


def _candidates(level: int, name: str, before: Value | None, after: Value | None) -> list[ValueShape]:
    """Shapes that make the value after of the one before."""
    return [
        ValueShape(rule, parameters)
        for rule, find in FINDERS[level]
        if (parameters := find(name, before, after)) is not None
    ]


def _elected(candidates: Sequence[list[ValueShape]]) -> list[ValueShape | None]:
    """Choose for each value its most frequent candidate, the first of equals; None where too few values share it."""
    votes = Counter(chain.from_iterable(candidates))
    best = [max(each, key=votes.__getitem__) if each else None for each in candidates]
    sizes = Counter(best)
    return [shape if sizes[shape] >= ALIKE else None for shape in best]


def _join_popular(level: int, column: ValueColumn, shapes: list[ValueShape | None]) -> None:
    """Give values without a shape that of others which makes just this of them: a word that occurs twice, say."""
    names, before, after = column
    popular = [
        (shape, make)
        for shape, count in Counter(shape for shape in shapes if shape).most_common(POPULAR)
        if (make := RULES[shape.rule].make) and RULES[shape.rule].level == level and count * 50 > len(names)
    ]
    for n, name in enumerate(names if popular else ()):
        if shapes[n] is None:
            matches = (s for s, make in popular if make(s.parameters, name, before[n]) == after[n])
            shapes[n] = next(matches, None)


# --- the rules --------------------------------------------------------------------------------------------------------


def _appended(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    if isinstance(before, str) and isinstance(after, str) and before and after.startswith(before) and after != before:
        return (after[len(before) :],)
    return None


def _prepended(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    if isinstance(before, str) and isinstance(after, str) and before and after.endswith(before) and after != before:
        return (after[: -len(before)],)
    return None


_WORDS = re.compile(r"\w+|\W")


def _replaced(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Some words replaced by others everywhere; an insertion takes the word before it along."""
    if not (isinstance(before, str) and isinstance(after, str) and before and after):
        return None
    if after.startswith(before) or after.endswith(before):
        return None
    old, new = middle(before, after)
    if not old or not new or old == before:
        return None
    return (old, new) if with_words_replaced(before, old, new) == after else None


def middle(before: str, after: str) -> tuple[str, str]:
    """The parts that differ, as whole words."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = shared_length(old, new)
    tail = shared_length(old[head:][::-1], new[head:][::-1])
    if head and (head + tail == len(old) or head + tail == len(new)):
        head -= 1
        while head and not old[head].strip():
            head -= 1
    return "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])


def _with_replaced(parameters: Parameters, name: str, before: Value | None) -> object:
    old, new = map(str, parameters)
    return with_words_replaced(before, old, new) if isinstance(before, str) and old in before else None


def with_words_replaced(before: str, old: str, new: str) -> str:
    """The text with other words in the place of these, wherever these are whole words."""
    if old not in before:
        return before
    pieces = before.split(old)
    text = pieces[0]
    for piece in pieces[1:]:
        is_whole = not (_continues(text[-1:], old[0]) or _continues(old[-1], piece[:1]))
        text += (new if is_whole else old) + piece
    return text


def _continues(one: str, other: str) -> bool:
    """Whether two neighbouring letters are of one word."""
    return one.isalnum() and other.isalnum()


CASES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "capitals of words": str.title,
    "first letter a capital": lambda text: text[:1].upper() + text[1:],
}


def _cased(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    if not (isinstance(before, str) and isinstance(after, str)) or len(before) != len(after):
        return None
    return next(((case,) for case, make in CASES.items() if make(before) == after), None)


def _named(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """The resource's own name between two constants."""
    if not (isinstance(after, str) and len(name) > 1 and name in after):
        return None
    head, tail = after.split(name, 1)
    return None if name in tail else (head, tail)


def _named_items(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Items of a list with the resource's own name in them."""
    if not (isinstance(after, tuple) and before is None and len(name) > 1 and any(name in item for item in after)):
        return None
    return (tuple(tuple(item.split(name)) for item in after),)


def _with_named_items(parameters: Parameters, name: str, before: Value | None) -> object:
    (items,) = parameters
    return tuple(name.join(parts) for parts in items) if isinstance(items, tuple) and before is None else None


def _items(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Items that come and go, all others staying in their order."""
    if not (isinstance(before, tuple) and isinstance(after, tuple)):
        return None
    gains, losses = tuple(v for v in after if v not in before), tuple(v for v in before if v not in after)
    return (gains, losses) if _with_items((gains, losses), name, before) == after else None


def _with_items(parameters: Parameters, name: str, before: Value | None) -> object:
    gains, losses = parameters
    if not (isinstance(before, tuple) and isinstance(gains, tuple) and isinstance(losses, tuple)):
        return None
    return (*(v for v in before if v not in losses), *gains)


def _dated(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """An instant that comes, or moves in a direction, within a year: of the range that the row shows."""
    if isinstance(after, bool) or not isinstance(after, int) or isinstance(before, (bool, str, tuple)):
        return None
    year = (instant(after) or str(after))[:4]
    return ("set" if before is None else "later" if after > before else "earlier", year)


RULES: dict[str, ShapeRule] = {
    "same": ShapeRule(lambda name, before, after: (before, after), None),
    "appended": ShapeRule(_appended, lambda p, name, before: f"{before}{p[0]}" if isinstance(before, str) else None),
    "prepended": ShapeRule(_prepended, lambda p, name, before: f"{p[0]}{before}" if isinstance(before, str) else None),
    "shortened": ShapeRule(
        lambda name, before, after: _appended(name, after, before),
        lambda p, name, before: str(before).removesuffix(str(p[0])),
    ),
    "beheaded": ShapeRule(
        lambda name, before, after: _prepended(name, after, before),
        lambda p, name, before: str(before).removeprefix(str(p[0])),
    ),
    "replaced": ShapeRule(_replaced, _with_replaced),
    "cased": ShapeRule(_cased, lambda p, name, before: CASES[str(p[0])](before) if isinstance(before, str) else None),
    "items": ShapeRule(_items, _with_items),
    "named": ShapeRule(_named, lambda p, name, before: f"{p[0]}{name}{p[1]}", 1),
    "named items": ShapeRule(_named_items, _with_named_items, 1),
    "set": ShapeRule(lambda name, before, after: (after,), lambda p, name, before: p[0], 2),
    "dated": ShapeRule(_dated, None, 3),
}
"""Every shape, the most exact ones first."""

FIRST_RULES: tuple[tuple[str, Callable[[str, Value | None], bool]], ...] = (
    ("named", lambda name, value: isinstance(value, str) and name in value),
    ("named items", lambda name, value: isinstance(value, tuple)),
    ("dated", lambda name, value: isinstance(value, int)),
)
"""Rules for values where none was before, and whether a value is worth a look."""

LEVELS = sorted({rule.level for rule in RULES.values()})
FINDERS = {level: [(name, rule.find) for name, rule in RULES.items() if rule.level == level] for level in LEVELS}
