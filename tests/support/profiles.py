"""How often a property is tried, and with which cases.

`ci` tries each in full with the same cases every time, so that a change is never refused for the find of another one.
`--hypothesis-profile search` looks for new cases: `--hypothesis-seed` says where, `SYNCENGINE_TEST_HISTORIES` how many.
`--hypothesis-profile dev` tries a tenth while one edits.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

FULL = 100
"""`max_examples` of the profiles `ci` and `search`: the profiles' numbers are percents of what a property asks for."""


def tried(examples: int) -> int:
    """As many of so many examples as the profile says that is loaded."""
    return max(1, examples * settings().max_examples // FULL)


def thinned(cases: Iterable[T], by: int) -> Iterator[T]:
    """Yield one of so many cases, and every case with the profiles that look for new ones."""
    return islice(cases, 0, None, by if settings().derandomize else 1)
