"""Trouble of each kind at each operation: the next undisturbed apply ends as an undisturbed run would have."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.cli.estate import AFTER, BEFORE, DELETES_TAGS, WRITES

from .bench import AT_ONCE, Bench, Json

pytestmark = pytest.mark.slow

KINDS: dict[str, Json] = {
    "unavailable": {"status": 503, "headers": AT_ONCE, "times": 6},
    "answer lost": {"status": 503, "headers": AT_ONCE, "times": 6, "apply": True},
    "gateway page": {"status": 200, "body": "<html>Welcome</html>"},
    "gateway page after all": {"status": 200, "body": "<html>Welcome</html>", "apply": True},
    "empty object": {"status": 200, "body": {}, "apply": True},
    "refused": {"status": 400, "body": {"message": "not today"}},
    "forbidden": {"status": 403},
    "key refused": {"status": 401},
    "cut after": {"drop": "after"},
    "expired": {"expireSession": True},
}
OPERATIONS = ("teamInfo", *WRITES)
FOR_ALL_ALIKE = ("forbidden", "key refused", "cut after")
SEARCHED = ("unavailable", "answer lost", "gateway page after all", "refused", "expired")
"""Trouble that all operations meet in the same way, or that the crash model brings to each: here, over HTTP, three of
them meet it."""
CASES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in KINDS
    if kind not in (*FOR_ALL_ALIKE, *SEARCHED) or operation in ("teamInfo", "upsertTags", "completeSyncSession")
]


def begun(bench: Bench) -> None:
    """Set up the state before the plan, with other people's data in every place that the plan touches."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    place = bench.sandbox.category_ids()["named-before"]
    theirs = [{"name": "THEIRS-1", "tagCategoryId": place}, {"name": "THEIRS-2"}]
    bench.sandbox.say("/tags", {"tags": [*theirs, {"name": "LOSES-1", "additionalKeywords": ["theirs"]}]})
    bench.wants(**AFTER)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    """What an undisturbed run leaves, once one was made."""
    return {}


def end_of(bench: Bench, undisturbed: dict[str, Any]) -> Json:
    if not undisturbed:
        begun(bench)
        ended = bench.apply()
        assert ended.exit_code == 0
        assert set(OPERATIONS) <= {request["operation"] for request in ended.requests}, "faults would meet nothing"
        undisturbed |= bench.sandbox.holds()
        bench.sandbox.reset()
        shutil.rmtree(bench.folder / ".syncengine")
    return undisturbed


@pytest.mark.parametrize(("operation", "kind"), CASES)
def test_after_trouble_the_next_run_ends_as_an_undisturbed_one(
    bench: Bench, undisturbed: dict[str, Any], operation: str, kind: str
) -> None:
    """The exit code shows whether something is left to do, and nothing of other people changes."""
    end = end_of(bench, undisturbed)
    begun(bench)
    bench.sandbox.fault(operation, **KINDS[kind])
    ended = bench.apply()
    assert ended.exit_code in (0, 3, 7, 9)
    assert (ended.exit_code == 0) == (ended.status == "complete")
    bench.sandbox.heal()
    if ended.exit_code:
        assert bench.apply().exit_code == 0
    assert bench.sandbox.holds() == end
    bench.assert_at_rest()
