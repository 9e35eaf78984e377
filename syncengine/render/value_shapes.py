"""Old and new values → the shapes of changes, each shared by several values; pure.

A shape is a function with fixed parameters: from the old value and the resource's name it makes the new value. So one
row with one example describes a whole group of changes, and no other change can hide in it. The one exception is a
date that moved, for which the row shows the range. A value replaced by something unrelated has no shape.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from operator import contains
from typing import NamedTuple, cast

from syncengine.document.instants import instant
from syncengine.render.escape import shared_length
from syncengine.resource import Value

ALIKE = 3
"""The smallest number of equal changes that make a shape."""

POPULAR = 8
"""The number of frequent shapes that are tried on values without a shape of their own."""

FAR = 12
"""The number of words, old and new together, within which two texts must agree again after their first difference."""


class Aspect(NamedTuple):
    """One changed value of a resource: label, old and new value, and a note that is part of the label."""

    label: str
    before: Value | None
    after: Value | None
    note: str = ""


Parameters = tuple[Value | tuple[tuple[str, ...], ...] | None, ...]


class ValueShape(NamedTuple):
    """The shape of a change: the name of an entry of `RULES`, and its parameters."""

    rule: str
    parameters: Parameters


Find = Callable[[str, "Value | None", "Value | None"], Iterable[Parameters]]


class ShapeRule(NamedTuple):
    """A rule that finds shapes and applies them.

    `find` maps (name, before, after) to the parameters of all shapes that fit, the best one first. `make` maps
    (parameters, name, before) to the new value; it is `None` when the new value does not follow from them. Rules of a
    lower `level` are tried first; within a level, the shape that most values share is chosen.
    """

    find: Find
    make: Callable[[Parameters, str, Value | None], object] | None
    level: int = 0


class ValueColumn(NamedTuple):
    """The old and new values of one label, and the names of their resources."""

    names: Sequence[str]
    before: Sequence[Value | None]
    after: Sequence[Value | None]


def shapes_of(column: ValueColumn) -> list[ValueShape | None]:
    """Return the shape of each value; `None` when too few other values changed in the same way."""
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
    """Return the shapes of values without an old value: equal values, values with the resource's name, or dates."""
    shapes = _frequent(values)
    if shapes.count(None) == len(shapes):
        likely = list(compress(range(len(shapes)), _may_be_shaped(names, values)))
    else:
        rest = [n for n, shape in enumerate(shapes) if shape is None]
        likely = list(compress(rest, _may_be_shaped([names[n] for n in rest], [values[n] for n in rest])))
    found = _elected([_first_candidates(names[n], values[n]) for n in likely])
    for n, shape in zip(likely, found, strict=True):
        shapes[n] = shape
    return shapes


def _frequent(values: Sequence[Value | None]) -> list[ValueShape | None]:
    """Return the shape of each value that at least `ALIKE` resources have, and `None` for other values."""
    different = len(set(values))
    if different == 1 and len(values) >= ALIKE:
        return [ValueShape("same", (None, values[0]))] * len(values)
    if different == len(values):
        return [None] * len(values)
    often = {value: ValueShape("same", (None, value)) for value, count in Counter(values).items() if count >= ALIKE}
    return [often.get(value) for value in values]


def _may_be_shaped(names: Sequence[str], values: Sequence[Value | None]) -> Iterable[bool]:
    """Return whether each value may have a shape: any value, but a text or a list only with the name in it."""
    types = set(map(type, values))
    if types == {str}:
        return map(contains, cast("Sequence[str]", values), names)
    if types == {tuple}:
        return map(contains, map(" ".join, cast("Sequence[tuple[str, ...]]", values)), names)
    return map(_may_have_shape, names, values)


def _may_have_shape(name: str, value: Value | None) -> bool:
    text = " ".join(value) if isinstance(value, tuple) else value
    return name in text if isinstance(text, str) else text is not None


def _first_candidates(name: str, value: Value | None) -> list[ValueShape]:
    return [
        ValueShape(rule, parameters)
        for rule, is_possible in FIRST_RULES
        if is_possible(name, value)
        for parameters in RULES[rule].find(name, None, value)
    ]


def _candidates(level: int, name: str, before: Value | None, after: Value | None) -> list[ValueShape]:
    """Return the shapes of one level that turn `before` into `after`."""
    return [ValueShape(rule, parameters) for rule, find in FINDERS[level] for parameters in find(name, before, after)]


def _elected(candidates: Sequence[list[ValueShape]]) -> list[ValueShape | None]:
    """Return for each value its most frequent candidate, the first of equals; `None` when too few values share it."""
    votes = Counter(chain.from_iterable(candidates))
    best = [max(each, key=votes.__getitem__) if each else None for each in candidates]
    sizes = Counter(best)
    return [shape if sizes[shape] >= ALIKE else None for shape in best]


def _join_popular(level: int, column: ValueColumn, shapes: list[ValueShape | None]) -> None:
    """Give each value without a shape a popular shape with the same result, such as for a word that occurs twice."""
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


def _replaced(name: str, before: Value | None, after: Value | None) -> Iterator[Parameters]:
    """Find words that are replaced by other words everywhere.

    Where only blanks and signs differ, or words are inserted or deleted, so few letters occur elsewhere too or say
    little; then the words beside them are tried as well: `Trade mark` for the blank that became a hyphen.
    """
    if not (isinstance(before, str) and isinstance(after, str) and before and after):
        return
    short, long = sorted((before, after), key=len)
    if long.startswith(short) or long.endswith(short):
        return  # an end or a beginning came or went, which other rules find
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = shared_length(old, new)
    tail = shared_length(old[head:][::-1], new[head:][::-1])
    whole = _Piece(head, len(old) - tail, len(new) - tail)
    for piece in dict.fromkeys((whole, _first_difference(old, new, head))):
        for start, old_end, new_end in _widths(old, new, piece):
            words, others = "".join(old[start:old_end]), "".join(new[start:new_end])
            if words and others and with_words_replaced(before, words, others) == after:
                yield words, others


class _Piece(NamedTuple):
    """Where two lists of words differ: from `start` on, before the ends in the old and in the new one."""

    start: int
    old_end: int
    new_end: int


def _first_difference(old: Sequence[str], new: Sequence[str], head: int) -> _Piece:
    """Return the first place where the lists differ, up to where two words in a row are equal again."""
    sizes = ((both - own, own) for both in range(1, FAR) for own in range(both + 1))
    for old_size, new_size in sizes:
        old_end, new_end = head + old_size, head + new_size
        if old[old_end : old_end + 2] == new[new_end : new_end + 2]:
            return _Piece(head, old_end, new_end)
    return _Piece(head, len(old), len(new))


def _widths(old: Sequence[str], new: Sequence[str], piece: _Piece) -> Iterator[_Piece]:
    """Yield a piece, and around one without a word on either side, the piece with the words beside it."""
    yield piece
    start, old_end, new_end = piece
    sides = [any(map(_is_word, old[start:old_end])), any(map(_is_word, new[start:new_end]))]
    if all(sides):
        return
    begin = next((n for n in range(start - 1, -1, -1) if _is_word(old[n])), start)
    more = next((n + 1 for n, text in enumerate(old[old_end:]) if _is_word(text)), 0)
    with_before, with_after = _Piece(begin, old_end, new_end), _Piece(start, old_end + more, new_end + more)
    with_both = _Piece(begin, old_end + more, new_end + more)
    yield from (with_before, with_after, with_both) if any(sides) else (with_both, with_before, with_after)


def _is_word(text: str) -> bool:
    return text[0].isalnum() or text[0] == "_"


def middle(before: str, after: str) -> tuple[str, str]:
    """Return the parts of two texts that differ, extended to whole words."""
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
    """Return the text with `old` replaced by `new` wherever `old` stands as whole words."""
    if old not in before:
        return before
    pieces = before.split(old)
    text = pieces[0]
    for piece in pieces[1:]:
        is_whole = not (_continues(text[-1:], old[0]) or _continues(old[-1], piece[:1]))
        text += (new if is_whole else old) + piece
    return text


def _continues(one: str, other: str) -> bool:
    """Return whether two neighbouring letters belong to one word."""
    return one.isalnum() and other.isalnum()


CASES: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "title case": str.title,
    "first letter capitalized": lambda text: text[:1].upper() + text[1:],
}


def _cased(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    if not (isinstance(before, str) and isinstance(after, str)) or len(before) != len(after):
        return None
    return next(((case,) for case, make in CASES.items() if make(before) == after), None)


def _named(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Find the resource's own name between two constant texts."""
    if not (isinstance(after, str) and len(name) > 1 and name in after):
        return None
    head, tail = after.split(name, 1)
    return None if name in tail else (head, tail)


def _named_items(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Find items of a new list that contain the resource's own name."""
    if not (isinstance(after, tuple) and before is None and len(name) > 1 and any(name in item for item in after)):
        return None
    return (tuple(tuple(item.split(name)) for item in after),)


def _with_named_items(parameters: Parameters, name: str, before: Value | None) -> object:
    (items,) = parameters
    return tuple(name.join(parts) for parts in items) if isinstance(items, tuple) and before is None else None


def _items(name: str, before: Value | None, after: Value | None) -> Parameters | None:
    """Find added and removed items of a list whose other items keep their order."""
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
    """Find an instant that is set or moves earlier or later, and its new year."""
    if isinstance(after, bool) or not isinstance(after, int) or isinstance(before, (bool, str, tuple)):
        return None
    year = (instant(after) or str(after))[:4]
    return ("set" if before is None else "later" if after > before else "earlier", year)


def _one(find: Callable[[str, Value | None, Value | None], Parameters | None]) -> Find:
    """Return `find` as the function of a rule that finds at most one shape."""

    def found(name: str, before: Value | None, after: Value | None) -> list[Parameters]:
        return [] if (parameters := find(name, before, after)) is None else [parameters]

    return found


RULES: dict[str, ShapeRule] = {
    "same": ShapeRule(lambda name, before, after: [(before, after)], None),
    "appended": ShapeRule(
        _one(_appended), lambda p, name, before: f"{before}{p[0]}" if isinstance(before, str) else None
    ),
    "prepended": ShapeRule(
        _one(_prepended), lambda p, name, before: f"{p[0]}{before}" if isinstance(before, str) else None
    ),
    "shortened": ShapeRule(
        _one(lambda name, before, after: _appended(name, after, before)),
        lambda p, name, before: str(before).removesuffix(str(p[0])),
    ),
    "beheaded": ShapeRule(
        _one(lambda name, before, after: _prepended(name, after, before)),
        lambda p, name, before: str(before).removeprefix(str(p[0])),
    ),
    "replaced": ShapeRule(_replaced, _with_replaced),
    "cased": ShapeRule(
        _one(_cased), lambda p, name, before: CASES[str(p[0])](before) if isinstance(before, str) else None
    ),
    "items": ShapeRule(_one(_items), _with_items),
    "named": ShapeRule(_one(_named), lambda p, name, before: f"{p[0]}{name}{p[1]}", 1),
    "named items": ShapeRule(_one(_named_items), _with_named_items, 1),
    "set": ShapeRule(lambda name, before, after: [(after,)], lambda p, name, before: p[0], 2),
    "dated": ShapeRule(_one(_dated), None, 3),
}
"""The rule of each shape, the most exact ones first."""

FIRST_RULES: tuple[tuple[str, Callable[[str, Value | None], bool]], ...] = (
    ("named", lambda name, value: isinstance(value, str) and name in value),
    ("named items", lambda name, value: isinstance(value, tuple)),
    ("dated", lambda name, value: isinstance(value, int)),
)
"""The rules for values without an old value, each with a quick test of whether it can apply."""

LEVELS = sorted({rule.level for rule in RULES.values()})
FINDERS = {level: [(name, rule.find) for name, rule in RULES.items() if rule.level == level] for level in LEVELS}
