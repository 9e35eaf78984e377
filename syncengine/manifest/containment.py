"""keywords → their parts, and the keywords of one tag that stand in another's; pure.

A tag applies where one of its keywords is found in a text, so a keyword that is a part of another tag's takes that
tag's time too. Parts are whole words, and a keyword without its first or last word. They are taken file by file and
kept (`reading.Compared`), so that files are compared as sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from syncengine.document.nodes import quoted
from syncengine.manifest.lints import Shared, folded
from syncengine.resource import Resource

_WORD = re.compile(r"(?<=[^\n\w])\w{3,}+|\w{3,}+(?=[^\n\w])")
"""Of a line that has more than this word."""
_ALL_BUT_LAST = re.compile(r"^(.*\w)[^\w\n]+\w+[^\w\n]*$", re.MULTILINE)
_ALL_BUT_FIRST = re.compile(r"^[^\w\n]*\w+[^\w\n]+(\w.*)$", re.MULTILINE)


def parts_of(lines: str) -> set[str]:
    """The parts of keywords, one a line; shorter ones than three letters are suspected anyway."""
    found = {*_WORD.findall(lines), *_ALL_BUT_LAST.findall(lines), *_ALL_BUT_FIRST.findall(lines)}
    return {part for part in found if len(part) > 2}


def compared_parts(tags: Sequence[Resource], words: str) -> str:
    """The parts of a file's keywords as lines; what a tag has as a keyword itself is no part of its others.

    `words` are the folded keywords of the tags, one a line.
    """
    parts = parts_of(words)
    if not parts.isdisjoint(words.split("\n")):
        parts = {part for tag in tags for part in _parts_of_tag(tag)}
    return "\n".join(sorted(parts))


def _parts_of_tag(tag: Resource) -> set[str]:
    own = [folded(word) for word in tag.body.keywords]
    return parts_of("\n".join(own)).difference(own)


def contained_in_others(tags: Iterable[Resource], suspected: set[str]) -> Iterator[Shared]:
    """Each keyword among `suspected` that is a part of one of another tag's; each is told once, where it stands."""
    holders: dict[str, tuple[Resource, str]] = {}
    wholes: dict[str, tuple[Resource, str]] = {}
    for tag in tags:
        for word in tag.body.keywords:
            if (same := folded(word)) in suspected:
                holders.setdefault(same, (tag, word))
        for part in _parts_of_tag(tag) & suspected:
            wholes.setdefault(part, (tag, _whole(tag, part)))
    for same, (tag, word) in holders.items():
        other, whole = wholes.get(same, (tag, ""))
        if other is not tag:
            message = f"the keyword {quoted(word)} is part of {quoted(whole)} of {other.key}, and catches that time too"
            yield Shared("keyword-contained", tag.key, tag.source, message, word)


def _whole(tag: Resource, part: str) -> str:
    return next((word for word in tag.body.keywords if part in parts_of(folded(word))), tag.key.name)
