"""Order changes without a shape so that those with the least in common with the others come first. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from syncengine.render.section_entries import Column
from syncengine.render.unusual_letters import unusual_letters
from syncengine.render.value_shapes import middle
from syncengine.resource import Value

_BETWEEN = "\0"
_NUMBER = "\1"
_DIGIT = dict.fromkeys(map(ord, "0123456789"), _NUMBER)
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
    outlines = [list(_outlines(group)) for group in groups]
    commonness = _commonness(Counter(outline for each in outlines for outline in each))
    ranked = [
        (group.precedence, commonness[outline], number)
        for group, each in zip(groups, outlines, strict=True)
        for number, outline in zip(group.numbers, each, strict=True)
    ]
    return [number for _, _, number in sorted(ranked)]


TextOutline = tuple[str, str, str, int, tuple[str, ...]]
"""The outline of a value without a shape: label, old and new text without numbers, size, odd letters."""

ChangeOutline = tuple[tuple[str, ...], tuple[TextOutline, ...]]
"""The labels of a change and the outlines of its values without a shape; most changes of a section share one."""


def _outlines(group: UnrankedGroup) -> Iterable[ChangeOutline]:
    if not group.columns:
        return repeat((group.labels, ()), len(group.numbers))
    texts = zip(*(_text_outlines(*column) for column in group.columns), strict=True)
    return zip(repeat(group.labels), texts, strict=False)


def _text_outlines(label: str, before: Column, after: Column) -> Iterable[TextOutline]:
    olds, news = _differences(before, after)
    unusual = repeat((), len(news)) if all(map(str.isascii, news)) else map(unusual_letters, news)
    sizes = map(int.bit_length, map(len, news))
    return zip(repeat(label, len(news)), without_numbers(olds), without_numbers(news), sizes, unusual, strict=True)


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
    masked = _outline(_BETWEEN.join(texts)).split(_BETWEEN)
    return masked if len(masked) == len(texts) else list(map(_outline, texts))


def _outline(text: str) -> str:
    if not text.isascii():
        return _DIGITS.sub(_NUMBER, text)
    text = text.translate(_DIGIT)  # a tenth of the expression's time
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
