"""The keywords that each of many tags loses → what they have in common, so that the odd one is found; pure.

A row of many says how many keywords go, and not which. So those are compared more roughly than values that a row shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from syncengine.plan.diff import Change
from syncengine.render.arrangement import SAME, is_rare
from syncengine.render.rarity import without_numbers
from syncengine.render.value_shapes import with_words_replaced

_NAME = "\2"


def lost_keywords(changes: Sequence[Change]) -> list[str]:
    """Return one text for each change: equal ones where the tags lose the same, but for their own names and numbers.

    Numbers count where many have the same. Where most lose words that few others lose, those are compared by number.
    """
    texts = list(map(_text, changes))
    alike = _common(texts)
    outlines = without_numbers(texts)
    texts = [text if text in alike else outline for text, outline in zip(texts, outlines, strict=True)]
    alike = _common(texts)
    if sum(text in alike for text in texts) * 2 > len(texts):
        return texts
    counts = [str(len(change.keywords_deleted)) for change in changes]
    return [text if text in alike else count for text, count in zip(texts, counts, strict=True)]


def _common(texts: Sequence[str]) -> frozenset[str]:
    """The texts of many."""
    counts = Counter(texts)
    return frozenset(text for text, count in counts.items() if count >= SAME and not is_rare(count, len(texts)))


def _text(change: Change) -> str:
    """The keywords in any order, with the tag's own name aside."""
    name = change.key.name
    return "\n".join(sorted(with_words_replaced(keyword, name, _NAME) for keyword in change.keywords_deleted))
