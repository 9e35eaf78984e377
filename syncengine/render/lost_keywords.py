"""Deleted keywords of many tags → texts by which an odd tag is found; pure.

A folded row shows the number of deleted keywords, not their names, so they are compared more roughly than shown values.
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
    """Return one text for each change; the texts of similar losses are equal.

    The tag's own name is ignored, and so are numbers unless many tags have the same. When most tags lose keywords that
    few others lose, these tags are compared only by the number of keywords.
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
    """Return the texts that many of the tags have."""
    counts = Counter(texts)
    return frozenset(text for text, count in counts.items() if count >= SAME and not is_rare(count, len(texts)))


def _text(change: Change) -> str:
    """Return the deleted keywords in one sorted text, with the tag's own name masked."""
    name = change.key.name
    return "\n".join(sorted(with_words_replaced(keyword, name, _NAME) for keyword in change.keywords_deleted))
