"""docs/planning.md 5: what the journal tells of the last 24 hours, and which of it had an approval."""

from __future__ import annotations

from typing import Any

from syncengine.plan.losses import recent_losses
from syncengine.resource import Key, Status
from syncengine.state.codec import Detail, RemovalLine
from syncengine.state.records import ApprovalRecord, Loss

TAG = Key.parse("tag/ACME-1")
WORD, OTHER = Loss("keywords", TAG, "word"), Loss("keywords", TAG, "other")
NAME, URL = Loss("metadata", TAG, "Name"), Loss("fields", TAG, "url")
GONE = Loss("tags", TAG)

PARTS = Detail(
    keywords_deleted=("word", "other"),
    metadata_deleted=("Name",),
    metadata_before={"Name": "old"},
    fields={"url": ("https://old.example", None), "description": ("old", "new")},
)


def line(detail: Detail = PARTS, *, at: float = 10.0, is_sent: bool = True, approved: bool = False) -> RemovalLine:
    return RemovalLine(at, is_sent, TAG, detail, approved)


def left(status: Status) -> Detail:
    return Detail(status=(Status.ACTIVE, status), keywords_deleted=("word",))


def approval(*covers: Loss, **more: Any) -> ApprovalRecord:
    return ApprovalRecord(
        **{"text": "1@ab", "run": "r", "plan": None, "at": 5.0, "covers": covers, **more}, remaining=()
    )


def test_each_part_that_a_call_took_is_a_loss() -> None:
    """A field with a new value is none."""
    assert recent_losses([line()], []) == dict.fromkeys((WORD, OTHER, NAME, URL), 10.0)


def test_a_value_that_was_blanked_is_a_loss_and_an_empty_one_is_none() -> None:
    values = {"Client": "ACME", "Empty": "", "New": None}
    detail = Detail(metadata_set={"Client": "", "New": ""}, metadata_deleted=("Empty",), metadata_before=values)
    assert recent_losses([line(detail)], []) == {Loss("metadata", TAG, "Client"): 10.0}


def test_what_was_only_recorded_took_nothing_from_the_service() -> None:
    """But a tag that is forgotten leaves without any call."""
    assert recent_losses([line(is_sent=False)], []) == {}
    assert recent_losses([line(left(Status.RELEASED), is_sent=False)], []) == {GONE: 10.0}


def test_a_resource_that_left_is_one_loss_whichever_way_it_left() -> None:
    ways = [line(left(status), at=at) for at, status in enumerate((Status.RELEASED, Status.RETIRED, Status.DELETED))]
    assert recent_losses(ways, []) == {GONE: 2.0}


def test_a_resource_that_came_back_is_no_loss() -> None:
    assert recent_losses([line(Detail(status=(Status.RETIRED, Status.ACTIVE)))], []) == {}


def test_losses_of_an_approved_run_do_not_count() -> None:
    assert recent_losses([line(approved=True)], []) == {}
    assert recent_losses([line(left(Status.RETIRED), approved=True)], []) == {}


def test_an_approval_counts_for_what_it_covers_alone() -> None:
    """That of a whole resource covers each of its parts."""
    assert recent_losses([line()], [approval(WORD)]) == dict.fromkeys((OTHER, NAME, URL), 10.0)
    assert recent_losses([line()], [approval(Loss("metadata", TAG, "word"))]).keys() == {WORD, OTHER, NAME, URL}
    assert recent_losses([line()], [approval(Loss("tags", TAG, "delete"))]) == {}
    assert recent_losses([line()], [approval(Loss("tags", Key.parse("tag/ACME-2"), "delete"))]).keys() >= {WORD}


def test_an_approval_counts_from_its_first_use_until_it_is_used_up() -> None:
    for at, used, counts in ((11.0, None, False), (5.0, None, True), (5.0, 9.0, False), (5.0, 10.0, True)):
        remaining = recent_losses([line()], [approval(WORD, at=at, used=used)])
        assert (WORD not in remaining) is counts, (at, used)
