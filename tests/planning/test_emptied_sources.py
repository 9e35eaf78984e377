"""docs/planning.md 2.7: a source without rows is an error where there were some before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.losses import refuse_emptied
from syncengine.resource import Recorded, Row, Source, Status

from .estate import ask, row

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


@pytest.mark.parametrize(
    ("had", "why"), [(1, "had 1 row at the last apply"), (1200, "had 1,200 rows at the last apply")]
)
def test_a_source_that_had_rows_at_the_last_apply_may_not_be_empty(had: int, why: str) -> None:
    assert emptied(had=had) == why
    assert emptied(had=0) is None
    assert emptied(had=had, use=replace(USE, may_be_empty=True)) is None
    assert emptied(had=had, use=replace(USE, rows=1)) is None


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


def test_what_a_manifest_made_that_is_gone_counts_for_each_use_of_its_source() -> None:
    """The manifest may have been renamed."""
    renamed = replace(MADE, source=Source("manifests/old.yaml", 3, Row(DATA, 2)))
    assert emptied(renamed) == "1 resource was made from it before"


def test_a_text_template_is_its_own_data() -> None:
    template = "manifests/matters.yaml.j2"
    made = replace(MADE, source=Source(template, 3))
    assert emptied(made, use=replace(USE, file=template)) == "1 resource was made from it before"
