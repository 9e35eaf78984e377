"""Find removed and added resources that look like one resource under two names. Pure.

Each kind of evidence is looked up in a table of removed resources, so that the cost is linear. Only names of nearly the
same spelling are compared in pairs, whose number is bounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher

from syncengine.document.text import folded
from syncengine.resource import Body, Key, Kind

MOST_PAIRS = 1_000
"""The largest number of pairs of names with the same digits that are compared."""
ALIKE = 0.85
_BETWEEN = re.compile(r"[\W_]+")
_NO_DIGITS = re.compile(r"\D+")

Evidence = Callable[[Key, Body], object]


def likely_renames(going: Mapping[Key, Body], coming: Mapping[Key, Body]) -> Iterator[tuple[Key, Key, str]]:
    """Yield new and old keys of likely renames, each pair with its strongest evidence (`same description as`).

    Each resource occurs at most once.
    """
    for kind, tests in EVIDENCE.items():
        olds = {key: body for key, body in going.items() if key.kind is kind}
        news = {key: body for key, body in coming.items() if key.kind is kind}
        for likeness, evidence in tests:
            for new, old in _alone(olds, news, evidence):
                del olds[old], news[new]
                yield new, old, likeness
        for new, old in _spelt_alike(olds, news):
            yield new, old, "name similar to that of"


def _alone(olds: Mapping[Key, Body], news: Mapping[Key, Body], evidence: Evidence) -> list[tuple[Key, Key]]:
    """Return pairs of one removed and one added resource that alone have the same evidence, which is not empty."""
    before, after = _by(olds.items(), evidence), _by(news.items(), evidence)
    return [(after[same][0], old[0]) for same, old in before.items() if len(old) == 1 == len(after.get(same, ()))]


def _by(resources: Iterable[tuple[Key, Body]], evidence: Evidence) -> dict[object, list[Key]]:
    keys_by = defaultdict[object, list[Key]](list)
    for key, body in resources:
        if same := evidence(key, body):
            keys_by[same].append(key)
    return keys_by


def _spelt_alike(olds: Iterable[Key], news: Iterable[Key]) -> Iterator[tuple[Key, Key]]:
    """Yield pairs of names that have the same digits in the same order and differ by a letter or two."""
    before, after = (_by(((key, Body()) for key in keys), _digits) for keys in (olds, news))
    budget = MOST_PAIRS
    for digits, names in after.items():
        candidates = before.get(digits, [])
        budget -= len(names) * len(candidates)
        if budget < 0:
            return
        for new in names:
            near = next((old for old in candidates if _are_alike(new.name, old.name)), None)
            if near is not None:
                candidates.remove(near)
                yield new, near


def _digits(key: Key, body: Body) -> tuple[str]:
    return (_NO_DIGITS.sub(" ", key.name).strip(),)


def _are_alike(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, one[:100].casefold(), other[:100].casefold(), autojunk=False)
    return matcher.real_quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE


def _spelling(key: Key, body: Body) -> str:
    return _BETWEEN.sub("", folded(key.name))


def _description(key: Key, body: Body) -> object:
    description = body.fields.get("description")
    return description and (description, body.fields.get("category"))


def _own_keywords(key: Key, body: Body) -> object:
    words = frozenset(body.keywords) - {key.name}
    return words and (words, body.fields.get("category"))


EVIDENCE: Mapping[Kind, tuple[tuple[str, Evidence], ...]] = {
    Kind.TAG: (
        ("same externalId as", lambda _, body: body.fields.get("externalId")),
        ("same name except for case and punctuation as", _spelling),
        ("same description as", _description),
        ("same keywords as", _own_keywords),
    ),
    Kind.CATEGORY: (
        ("same externalId except for case and punctuation as", _spelling),
        ("same label as", lambda _, body: body.fields.get("label")),
        ("same description as", _description),
    ),
}
"""The evidence of a rename by kind, strongest first. A value counts when it is unique on each side and not empty."""
