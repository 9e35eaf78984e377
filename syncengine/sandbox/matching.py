"""Texts of time rows → the tags whose keywords stand in them (docs/interface.md 2.1). Pure.

Where the interface leaves it open, more is found rather than less: upper and lower case are alike, and a keyword
may be a part of a word, as the lints of manifests assume when they warn of one that catches others' time.
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import normalize

from syncengine.sandbox.world import Json, Tag


def matching(tags: Iterable[Tag], rows: Iterable[Json]) -> list[str]:
    """Names, sorted. A keyword is looked for in each row's activity and in its description."""
    texts = [_folded(row[name]) for row in rows for name in ("activity", "description") if isinstance(row[name], str)]
    return sorted(tag.name for tag in tags if any(_is_in(word, texts) for word in tag.keywords))


def _is_in(keyword: str, texts: list[str]) -> bool:
    word = _folded(keyword)
    return bool(word) and any(word in text for text in texts)


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()
