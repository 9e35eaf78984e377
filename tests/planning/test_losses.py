"""docs/planning.md 2.7 and 5: what earlier runs took without an approval, and sources that have no rows any more."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.losses import recent_losses, refuse_emptied
from syncengine.resource import Key, Recorded, Row, Source, Status
from syncengine.state.codec import Detail, RemovalLine
from syncengine.state.records import ApprovalRecord, Loss

from .estate import ask, row

# --- what the journal tells of the last 24 hours

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
    """One that came back is none."""
    ways = [line(left(status), at=at) for at, status in enumerate((Status.RELEASED, Status.RETIRED, Status.DELETED))]
    assert recent_losses(ways, []) == {GONE: 2.0}
    assert recent_losses([line(Detail(status=(Status.RETIRED, Status.ACTIVE)))], []) == {}


def test_losses_of_an_approved_run_do_not_count() -> None:
    assert recent_losses([line(approved=True), line(left(Status.RETIRED), approved=True)], []) == {}


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


# --- sources without rows


MANIFEST, DATA = "manifests/matters.yaml", "data/matters.csv"
USE = SourceUse(DATA, "csv:matters", 0, False, MANIFEST, 3, 5)
MADE = row("tag/M-1", source=Source(MANIFEST, 3, Row(DATA, 2)))


def emptied(*recorded: Recorded, had: int | None = None, use: SourceUse = USE, manifests: str = "{}") -> str | None:
    """Return the words of the error, or `None` when there is none."""
    wanted = ask(manifests)
    desired = Desired(wanted.resources, files={use.file: ""}, sources=(use,))
    try:
        refuse_emptied(desired, {each.key: each for each in recorded}, {} if had is None else {use.identity: had})
    except Problems as problems:
        (found,) = problems.found
        assert (found.code, found.file, found.line, found.column) == ("source-empty", use.file, 3, 5)
        return found.message.removeprefix(f"{DATA} has no rows, but ").partition(";")[0]
    return None


def test_a_source_that_had_rows_at_the_last_apply_may_not_be_empty() -> None:
    assert emptied(had=1) == "had 1 row at the last apply"
    assert emptied(had=1200) == "had 1,200 rows at the last apply"
    assert emptied(had=0) is None
    assert emptied(had=1200, use=replace(USE, may_be_empty=True)) is None
    assert emptied(had=1200, use=replace(USE, rows=1)) is None


def test_without_a_count_the_resources_that_were_made_from_it_decide() -> None:
    """As in an adopted or rebuilt state. Those made from another source, or by hand, say nothing."""
    other = row("tag/M-2", source=Source(MANIFEST, 3, Row("data/other.csv", 2)))
    assert emptied() is None
    assert emptied(other, row("tag/M-3", source=Source(MANIFEST, 3))) is None
    assert emptied(MADE) == "1 resource was made from it before"
    assert emptied(MADE, replace(MADE, key=other.key)) == "2 resources were made from it before"
    assert emptied(MADE, had=0) is None


def test_what_is_declared_elsewhere_or_no_longer_managed_was_not_lost_with_the_rows() -> None:
    assert emptied(MADE, manifests="tags: [{name: M-1}]") is None
    for status in (Status.RELEASED, Status.RETIRED, Status.DELETED):
        assert emptied(replace(MADE, status=status)) is None


def test_what_was_made_from_it_counts_whatever_became_of_its_manifest() -> None:
    """The manifest may have been renamed. A text template is its own data."""
    renamed = replace(MADE, source=Source("manifests/old.yaml", 3, Row(DATA, 2)))
    assert emptied(renamed) == "1 resource was made from it before"
    template = "manifests/matters.yaml.j2"
    made = replace(MADE, source=Source(template, 3))
    assert emptied(made, use=replace(USE, file=template)) == "1 resource was made from it before"
