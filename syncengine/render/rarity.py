"""Order changes without a shape so that those with the least in common with the others come first. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from syncengine.render.section_entries import Column
from syncengine.render.unusual_letters import unusual_letters
from syncengine.render.value_shapes import middle
from syncengine.resource import Value

_BETWEEN = "\0"
_NUMBER = "\1"
_DIGIT = bytes.maketrans(b"0123456789", _NUMBER.encode() * 10)
_DIGITS = re.compile(r"\d+")


class UnrankedGroup(NamedTuple):
    """Entries, given by number, whose changes have the same labels.

    `columns` are the values without a shape: label, old values, new values. Groups of lower `precedence` come first.
    """

    numbers: Sequence[int]
    labels: tuple[str, ...]
    columns: Sequence[tuple[str, Column, Column]]
    precedence: int = 0


def rarest_first(groups: Sequence[UnrankedGroup]) -> list[int]:
    """Return the numbers of all entries, those with the rarest changes of each precedence first."""
    outlined = [(group.precedence, *each) for group in groups for each in _outlines(group).items()]
    counts: Counter[ChangeOutline] = Counter()
    for _, outline, numbers in outlined:
        counts[outline] += len(numbers)
    commonness = _commonness(counts)
    ranks: dict[tuple[int, float], list[int]] = defaultdict(list)
    for precedence, outline, numbers in outlined:
        ranks[precedence, commonness[outline]].extend(numbers)
    return [number for rank in sorted(ranks) for number in sorted(ranks[rank])]


TextOutline = tuple[str, str, str, int, tuple[str, ...]]
"""The outline of a value without a shape: label, old and new text without numbers, size, odd letters."""

ChangeOutline = tuple[tuple[str, ...], tuple[TextOutline, ...]]
"""The labels of a change and the outlines of its values without a shape; most changes of a section share one."""


def _outlines(group: UnrankedGroup) -> Mapping[ChangeOutline, Sequence[int]]:
    """Return the numbers of the entries with each outline."""
    columns = [_text_outlines(*column) for column in group.columns]
    if all(column.count(column[0]) == len(column) for column in columns):  # as in most groups of new resources
        return {(group.labels, tuple(column[0] for column in columns)): group.numbers}
    found: dict[ChangeOutline, list[int]] = defaultdict(list)
    for number, *texts in zip(group.numbers, *columns, strict=True):
        found[group.labels, tuple(texts)].append(number)
    return found


def _text_outlines(label: str, before: Column, after: Column) -> Sequence[TextOutline]:
    olds, news = _differences(before, after)
    unusual = [()] * len(news) if all(map(str.isascii, news)) else list(map(unusual_letters, news))
    sizes = list(map(int.bit_length, map(len, news)))
    parts: tuple[Sequence[Any], ...] = (without_numbers(olds), without_numbers(news), sizes, unusual)
    if all(part.count(part[0]) == len(part) for part in parts):
        return [(label, *(part[0] for part in parts))] * len(news)
    return list(zip(repeat(label, len(news)), *parts, strict=True))


def _differences(before: Column, after: Column) -> tuple[Sequence[str], Sequence[str]]:
    """Return the differing parts of the old and the new values as two lists of texts."""
    if before.count(None) == len(before):
        return [""] * len(before), [value if isinstance(value, str) else _text(value) for value in after]
    pairs = [_difference(old, new) for old, new in zip(before, after, strict=True)]
    return [old for old, _ in pairs], [new for _, new in pairs]


def without_numbers(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts with each number masked. All texts are masked in one pass, which is faster."""
    if not any(texts):
        return texts
    whole = _BETWEEN.join(texts)
    if not whole.isascii():
        masked = _DIGITS.sub(_NUMBER, whole).split(_BETWEEN)
        return masked if len(masked) == len(texts) else [_DIGITS.sub(_NUMBER, text) for text in texts]
    masked = _digits_masked(whole).split(_BETWEEN)
    masked = masked if len(masked) == len(texts) else list(map(_digits_masked, texts))
    outlines = {text: _numbers_joined(text) for text in set(masked)}
    return [outlines[text] for text in masked]


def _digits_masked(text: str) -> str:
    """Return an ASCII text with each digit masked, in a twentieth of the time of an expression for numbers."""
    return text.encode("ascii").translate(_DIGIT).decode("ascii")


def _numbers_joined(text: str) -> str:
    while _NUMBER * 2 in text:
        text = text.replace(_NUMBER * 2, _NUMBER)
    return text


def _commonness(outlines: Mapping[ChangeOutline, int]) -> dict[ChangeOutline, float]:
    """Return how common the features of each outline are; `outlines` counts the changes of each outline."""
    features = {outline: list(_features(outline)) for outline in outlines}
    counts: Counter[object] = Counter()
    for outline, number in outlines.items():
        for feature in features[outline]:
            counts[feature] += number
    return {each: round(sum(counts[one].bit_length() for one in own) / len(own), 1) for each, own in features.items()}


def _features(outline: ChangeOutline) -> Iterator[object]:
    """Yield features of a change that others may share: labels, first and last words, texts without numbers."""
    labels, texts = outline
    yield labels
    for label, before, after, size, unusual in texts:
        words = after.split() or ("",)
        yield from ((label, 1, words[0]), (label, 2, words[-1]), (label, before, after), (label, size, unusual))


def _difference(before: Value | None, after: Value | None) -> tuple[str, str]:
    if before is None:
        return "", _text(after)
    if isinstance(before, str) and isinstance(after, str):
        return middle(before, after)
    return _text(before), _text(after)


def _text(value: Value | None) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
