"""Differences between two contents of a group are listed field by field, exactly when their digests differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from syncengine.posted_time.group import ContentChange, changes, changes_of, digest, last_changes, read_group, stored
from syncengine.render.posted_time import changes_lines
from syncengine.state.inbox_model import Offer
from tests.posted_time.samples import raw, row
from tests.posted_time.test_group import ANYTHING, OTHER, SAME
from tests.support.inbox import open_inbox
from tests.support.profiles import tried

LONG = "Reply to the examiner, " * 20


def told(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, object, object]]:
    found = changes(stored(raw("g", **before)), stored(raw("g", **after)))
    return [(one.field, one.before, one.after) for one in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"description": "x"}, {"description": "y"}, [("description", "x", "y")]),
        ({"description": "x"}, {"description": None}, [("description", "x", None)]),
        ({"tags": [{"name": "A"}]}, {"tags": [{"name": "B"}]}, [("tags[0]", "A", "B")]),
        ({"tags": [{"name": "A"}]}, {"tags": []}, [("tags[0]", "A", None)]),
        ({"tags": [{"name": "A"}]}, {"tags": [{"name": n} for n in "AC"]}, [("tags[1]", None, "C")]),
        ({"timeRows": [row()]}, {"timeRows": [row(durationSecs=5)]}, [("timeRows[0].durationSecs", 3600, 5)]),
        (
            {"timeRows": [row(), row(description="Mail")]},
            {"timeRows": [row(description="Mail", activityHour=2024050209), row()]},
            [("timeRows[1].activityHour", 2024050207, 2024050209)],
        ),
        ({"user": {"externalId": "jd"}}, {"user": {"externalId": "xx"}}, [("user", "jd", "xx")]),
        ({"activityType": {"code": "A101"}}, {"activityType": None}, [("activityType", "A101", None)]),
    ],
)
def test_a_change_names_its_field_with_old_and_new_value(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, object, object]]
) -> None:
    """Fields have the names of the API. A row that only moved is no change."""
    assert told(before, after) == expected


def test_a_duplicate_row_that_is_added_or_removed_is_one_change() -> None:
    (came,) = told({"timeRows": [row()]}, {"timeRows": [row(), row()]})
    (went,) = told({"timeRows": [row(), row()]}, {"timeRows": [row()]})
    assert (came[1], went[2]) == (None, None)
    assert came[2] == went[1]


@pytest.mark.parametrize("change", OTHER)
def test_every_change_of_the_digest_is_shown(change: dict[str, Any]) -> None:
    assert told({}, change)


@pytest.mark.parametrize("change", SAME)
def test_fields_that_the_service_adds_are_no_difference(change: dict[str, Any]) -> None:
    """They do not change the digest either."""
    assert told({}, change) == []


@settings(deadline=None, max_examples=tried(25), suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING, ANYTHING)
def test_any_two_contents_can_be_compared(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two different digests have at least one difference, shown in printable lines of at most 80 columns."""
    found = changes(stored(one), stored(other))
    assert found or digest(read_group(one)) == digest(read_group(other))
    assert all(len(line) <= 80 and line.isprintable() for line in changes_lines(found))


def test_differences_fit_80_columns_and_hold_no_escapes() -> None:
    """Of a long text only the part that differs is shown; an added row is summarized."""
    found = (
        ContentChange("description", f"{LONG}as posted", f"{LONG}as changed"),
        ContentChange("timeRows[1]", None, {"activity": "\x1b[31mWord", "durationSecs": 60, "description": None}),
        ContentChange("totalDurationSecs", 60, float("nan")),
    )
    assert list(changes_lines(found)) == [
        '    description: …xaminer, as posted" → …xaminer, as changed"',
        '    timeRows[1]: none → activity "\\x1b[31mWord", durationSecs 60',
        "    totalDurationSecs: 60 → unreadable",
    ]


def test_only_the_first_20_differences_are_shown() -> None:
    """The last line says how many more there are."""
    found = tuple(ContentChange(f"timeRows[{at}].durationSecs", at, at + 1) for at in range(25))
    *told_of, last = changes_lines(found)
    assert (len(told_of), last) == (20, "    … and 5 more; `syncengine time show --format json` lists all of them")


def test_each_offer_is_compared_with_the_content_accepted_at_that_time(tmp_path: Path) -> None:
    """A revision replaces the content before it, and offers before the revision are no longer compared."""
    with open_inbox(str(tmp_path / "state.db"), write=True) as inbox:

        def offer(seconds: int) -> Offer:
            sent = raw("g1", totalDurationSecs=seconds)
            return Offer("g1", digest(read_group(sent)), stored(sent), "fetch")

        inbox.receive(offer(1))
        entry = inbox.receive(offer(2))
        assert _seconds(changes_of(entry, inbox.story("g1"))) == {1: (1, 2)}
        entry = inbox.revise(offer(2))
        inbox.receive(offer(2))
        entry = inbox.receive(offer(3))
        assert _seconds(changes_of(entry, inbox.story("g1"))) == {4: (2, 3)}
        assert _seconds({4: last_changes(entry, inbox.story("g1"))}) == {4: (2, 3)}
        inbox.receive(offer(2))
        assert last_changes(entry, inbox.story("g1")) == ()


def _seconds(found: dict[int, tuple[ContentChange, ...]]) -> dict[int, tuple[object, object]]:
    return {place: (one.before, one.after) for place, (one,) in found.items()}
