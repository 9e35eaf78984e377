"""Random manifests and random ways to plan and apply them. There are few names, so that they recur often."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Removal

from .applying import Chance, Fate

CATEGORIES, TYPES, TAGS = ("C1", "C2", "C3"), ("A1", "A2"), ("T-1", "T-2", "T-3", "T-4")
WORDS = ["k1", "K1", "k2", "T-1", "t-1"]
SOME = st.sampled_from(["one", "two", ""])

Fields = dict[str, Any]

CATEGORY_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "label": SOME,
        "description": SOME,
        "keywords": st.lists(st.sampled_from(WORDS), unique=True, max_size=2),
        "protect": st.booleans(),
    },
)
TYPE_FIELDS = st.fixed_dictionaries(
    {"label": st.sampled_from(["one", "two"]), "reenableIfArchived": st.just(True)},
    optional={"description": SOME, "enableIfNew": st.booleans(), "protect": st.booleans()},
)
TAG_FIELDS = st.fixed_dictionaries(
    {"visibility": st.sampled_from(["PUBLIC", "PRIVATE"])},
    optional={
        "description": SOME,
        "url": st.sampled_from(["http://one", "http://two", ""]),
        "path": st.sampled_from(["/", "/x"]),
        "assigneeExternalIds": st.lists(SOME.filter(bool), unique=True, max_size=2),
        "closedTimestamp": st.integers(1, 2),
        "keywords": st.lists(st.sampled_from(WORDS), unique=True, max_size=3),
        "excludeTagNameKeyword": st.booleans(),
        "metadata": st.dictionaries(st.sampled_from(["m1", "M1"]), SOME, max_size=2),
        "protect": st.booleans(),
    },
)


@dataclass(frozen=True, slots=True)
class Step:
    """One manifest, how to plan it, and what happens to the items when it is applied."""

    manifest: str
    how: Fields
    fates: tuple[Fate, ...] = ()

    @property
    def chance(self) -> Chance:
        coming: Iterator[Fate] = iter(self.fates)
        return lambda: next(coming, Fate.TAKEN)


def subsets(names: Sequence[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True).map(sorted)


@st.composite
def formers(draw: Any, declared: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Former names for some of the declared: undeclared ones, each of one resource only."""
    free = [name for name in names if name not in declared]
    claims: dict[str, list[str]] = {}
    for old in free if declared else ():
        if draw(st.booleans()):
            claims.setdefault(draw(st.sampled_from(declared)), []).append(old)
    return claims


@st.composite
def tag_places(draw: Any, categories: Sequence[str], types: Sequence[str]) -> Fields:
    """The category and the default activity type of one tag."""
    place: Fields = {}
    if categories and draw(st.booleans()):
        place["category"] = draw(st.sampled_from(categories))
    elif draw(st.integers(0, 3)) == 0:
        place["tagCategoryId"] = draw(st.sampled_from([f"id-{name}" for name in CATEGORIES]))
    if types and draw(st.booleans()):
        place["defaultActivityTypeCode"] = draw(st.sampled_from(types))
    return place


@st.composite
def manifests(draw: Any) -> str:
    """The text of one manifest."""
    categories, types, tags = draw(subsets(CATEGORIES)), draw(subsets(TYPES)), draw(subsets(TAGS))
    old_categories, old_tags = draw(formers(categories, CATEGORIES)), draw(formers(tags, TAGS))
    gone = [name for name in TAGS if name not in tags and draw(st.integers(0, 4)) == 4]
    return json.dumps(
        {
            "tagCategories": [
                {"externalId": name, **draw(CATEGORY_FIELDS), "previously": old_categories.get(name, [])}
                for name in categories
            ],
            "activityTypes": [{"code": code, **draw(TYPE_FIELDS)} for code in types],
            "tags": [
                {
                    "name": name,
                    **draw(TAG_FIELDS),
                    **draw(tag_places(categories, types)),
                    "previously": old_tags.get(name, []),
                }
                for name in tags
            ],
            "removed": [{"tag": name, "as": draw(st.sampled_from(Removal)).value} for name in gone],
        }
    )


ADDRESSES = [f"category/{name}" for name in CATEGORIES] + [f"tag/{name}" for name in TAGS]
GLOBS = st.lists(st.sampled_from([*ADDRESSES, "tag/*", "category/*"]), max_size=2).map(tuple)
SCOPES = st.builds(Scope, targets=GLOBS, excludes=GLOBS, no_delete=st.booleans())


def ways(scopes: st.SearchStrategy[Scope]) -> st.SearchStrategy[Fields]:
    """Policies and options of the command line."""
    return st.fixed_dictionaries(
        {
            "scope": scopes,
            "tag_removal": st.sampled_from(Removal),
            "activity_types": st.sampled_from(Ownership),
            "deletes_tags": st.just(True),
            "sweep": st.booleans(),
            "reassert": st.booleans(),
        }
    )


WHOLE = st.just(Scope())
TROUBLE = st.lists(st.sampled_from([Fate.TAKEN, Fate.TAKEN, Fate.TAKEN, Fate.REFUSED, Fate.UNSENT]), max_size=12)
HISTORIES = st.lists(
    st.builds(Step, manifests(), ways(st.one_of(WHOLE, WHOLE, SCOPES)), TROUBLE.map(tuple)), min_size=1, max_size=4
)
LAST = st.builds(Step, manifests(), ways(st.one_of(WHOLE, SCOPES)))
