"""docs/planning.md 5 and 2.7: what needs an approval, what one is for, and losses that count again or are refused."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.gate import Approval, StateRecords
from syncengine.plan.losses import recent_losses, refuse_emptied
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.project.model import Limit
from syncengine.resource import Key, Recorded, Removal, Row, Source, Status
from syncengine.state.codec import Detail, RemovalLine
from syncengine.state.records import ApprovalRecord, Loss

from .estate import FILE, ask, planned, row


def tags(count: int, *keywords: str, **fields: object) -> list[Recorded]:
    return [row(f"tag/ACME-{n}", *keywords, **fields) for n in range(count)]


def declared(count: int, fields: str = "") -> str:
    """Return a manifest of the first `count` of those tags."""
    return "tags:\n" + "".join(f"  - {{name: ACME-{n}{fields}}}\n" for n in range(count)) if count else "{}"


ALL = ", but removing all always needs an approval"


@pytest.mark.parametrize(
    ("total", "going", "limit", "words"),
    [
        (3, 1, None, ""),
        (8, 2, None, ""),
        (8, 3, None, "25%"),
        (2, 1, None, ""),
        (3, 2, None, "25%"),
        (1, 1, None, "25%" + ALL),
        (2, 2, None, "25%"),
        (10, 2, Limit(count=2), ""),
        (10, 3, Limit(count=2), "2"),
        (10, 1, Limit(count=0), "0"),
        (3, 3, Limit(percent=100), "100%" + ALL),
        (3, 3, Limit(count=99), "99" + ALL),
        (3, 3, Limit(count=99, percent=100), "99 and 100%" + ALL),
    ],
)
def test_a_share_trips_from_two_on_a_count_at_once_and_all_always(
    total: int, going: int, limit: Limit | None, words: str
) -> None:
    gate = planned(declared(total - going), tags(total), limits={"tags": limit} if limit else None).gate
    said = f"{going} of {total} {'tag' if total == 1 else 'tags'} forgotten, retired or deleted (limit {words})"
    assert (gate.tripped, gate.reasons) == ((True, (said,)) if words else (False, ()))


@pytest.mark.parametrize("policy", Removal)
def test_forgotten_retired_and_deleted_tags_count_alike(policy: Removal) -> None:
    plan = planned(declared(2), tags(4), tag_removal=policy, deletes_tags=True)
    assert plan.gate.reasons == ("2 of 4 tags forgotten, retired or deleted (limit 25%)",)


def test_cascaded_tags_count() -> None:
    plan = planned(declared(2), [row("category/acme"), *tags(4, category="acme")])
    assert plan.gate.reasons == ("1 of 1 category deleted (limit 0)",)
    assert [unit.lost for unit in plan.gate.units if unit.asks] == [(("categories", 1), ("tags", 2))]


def listed(section: str, key: str, count: int, rest: str = "") -> str:
    return f"{section}:\n" + "".join(f"  - {{{key}: '{n}'{rest}}}\n" for n in range(count))


ASKS: dict[str, tuple[str, list[Recorded], str]] = {
    "a category": (
        listed("tagCategories", "externalId", 50),
        [row(f"category/{n}") for n in range(51)],
        "1 of 51 categories deleted (limit 0)",
    ),
    "an opened tag": (
        "tagCategories: [{externalId: c}]\n"
        + declared(1, ", visibility: PUBLIC")
        + "  - {name: ACME-1, visibility: PRIVATE}",
        [row("category/c"), *tags(2, visibility="PRIVATE")],
        "1 of 2 private tags made public (limit 0)",
    ),
    "activity types": (
        listed("activityTypes", "code", 2, ", label: L"),
        [row(f"activity-type/{n}", label="L") for n in range(4)],
        "2 of 4 activity types deleted (limit 25%)",
    ),
    "some fields, but no description": (
        declared(2),
        tags(2, url="http://u", externalId="x", managedBy="me", description="d"),
        "6 of 8 fields cleared (limit 50%)",
    ),
}


@pytest.mark.parametrize(("manifest", "recorded", "reason"), ASKS.values(), ids=ASKS)
def test_what_goes_is_counted_by_its_kind(manifest: str, recorded: list[Recorded], reason: str) -> None:
    assert planned(manifest, recorded).gate.reasons == (reason,)


def test_the_parts_of_what_leaves_are_not_counted_again() -> None:
    manifest = "tags:\n" + "".join(f"  - name: ACME-{n}\n" for n in range(1, 8))
    plan = planned(manifest, [row("tag/ACME-0", *"abcdefgh"), *tags(8)[1:]], tag_removal=Removal.RETIRE)
    assert (plan.gate.tripped, plan.summary.keyword_deletes) == (False, 9)


def test_shares_are_of_all_managed_rows_never_of_the_selection() -> None:
    """Released and deleted rows would otherwise hide that all other tags go."""
    plan = planned("{}", tags(8), scope=Scope(targets=("tag/ACME-0", "tag/ACME-1")))
    assert (plan.summary.forget, plan.gate.tripped) == (2, False)
    for status in (Status.RELEASED, Status.DELETED):
        left = [replace(before, status=status) for before in tags(20)[4:]]
        assert planned(declared(2), [*tags(4), *left]).gate.tripped


# --- sweeps


TYPES = listed("activityTypes", "code", 8, ", label: L")


@pytest.mark.parametrize("swept_before", [False, True])
def test_the_first_sweep_of_a_state_and_one_of_everything_always_ask(swept_before: bool) -> None:
    types = [row(f"activity-type/{n}", label="L") for n in range(9)]
    said = "first sweep of this state: it deletes everything that this project does not know among the team's"
    for how in ({"recorded": types}, {"recorded": types[:8], "sweep": True}):
        reasons = planned(TYPES, swept_before=swept_before, **how).gate.reasons
        assert reasons == (() if swept_before else (f"{said} activity types",))
    assert planned("{}", sweep=True, swept_before=swept_before).gate.approve is not None


# --- approvals


def plan_of(manifest: str, recorded: list[Recorded], **how: object) -> Plan:
    plan = planned(manifest, recorded, **how)
    assert plan.gate.tripped
    return plan


BASE = plan_of(declared(2), tags(4))


def closed(plan: Plan, *approvals: str) -> bool:
    return plan.gate.with_approvals(Approval(text, "somebody") for text in approvals).is_closed


def test_an_approval_is_for_just_these_losses() -> None:
    """It names their number, and a digest of them."""
    approval = str(BASE.gate.approve)
    count, _, digest = approval.partition("@")
    assert (count, len(digest), digest.isalnum()) == ("2", 20, True)
    assert not closed(BASE, "1@000000000000", approval)
    for other in ((), (approval[:-1],), (f"3@{digest}",)):
        assert closed(BASE, *other)


def test_a_gate_that_is_not_tripped_refuses_nothing() -> None:
    unharmed = planned(declared(20, ", keywords: [new]"), tags(4))
    assert not closed(unharmed)
    assert (unharmed.gate.tripped, unharmed.gate.reasons, unharmed.gate.approve) == (False, (), None)
    assert unharmed.gate.with_approvals([Approval("None", "somebody")]).approved is None


def test_the_gate_names_the_first_approval_that_fits() -> None:
    text = str(BASE.gate.approve)
    found = [Approval("1@00", "--approve-deletes"), Approval(text, "syncengine.yaml", 14), Approval(text, "VARIABLE")]
    gate = BASE.gate.with_approvals(found)
    assert (str(gate.approved), gate.tripped, gate.is_closed) == ("syncengine.yaml:14", True, False)
    assert gate.with_approvals([]).is_closed


SAME: Mapping[str, Plan] = {
    "an addition": plan_of(declared(2) + "  - name: NEW-1\n", tags(4)),
    "an update": plan_of(declared(2, ", url: http://u"), tags(4)),
    "moved lines": plan_of("# moved\n\n" + declared(2), tags(4)),
    "rows in another order": plan_of(declared(2), tags(4)[::-1]),
    "more of the estate": plan_of(declared(2) + "  - name: ZETA-1\n", [*tags(4), row("tag/ZETA-1")]),
    "other limits": plan_of(declared(2), tags(4), limits={"tags": Limit(count=0)}),
}
OTHERS: Mapping[str, Plan] = {
    "one more removal": plan_of(declared(1), tags(4)),
    "one less": plan_of("tags: [{name: ACME-0}]", [*tags(3)[:2], row("tag/ACME-2")]),
    "another tag": plan_of("tags: [{name: ACME-0}, {name: ACME-2}]", tags(4)),
    "another way": plan_of(declared(2), tags(4), tag_removal=Removal.RETIRE),
    "a lost keyword": plan_of(declared(2), [row("tag/ACME-0", "k"), *tags(4)[1:]]),
    "a sweep": plan_of(declared(2), tags(4), sweep=True),
}


@pytest.mark.parametrize("name", [*SAME, *OTHERS])
def test_an_approval_survives_what_takes_nothing_else(name: str) -> None:
    plan = {**SAME, **OTHERS}[name]
    assert (plan.gate.approve == BASE.gate.approve) is (name in SAME)


def test_an_approval_is_for_names_and_not_for_values() -> None:
    """Losses with similar names, or of another kind, have other approvals."""
    limits = {name: Limit(count=0) for name in ("keywords", "metadata")}
    entries = [row("tag/ACME-0", metadata={"x": value}) for value in "12"]
    rows = [*entries, row("tag/ACME-0", "x"), row("tag/ACME-0", "x", "y"), row("tag/ACME-0", "x y")]
    one, same, *others = (planned(declared(1), [each], limits=limits).gate.approve for each in rows)
    assert one == same
    assert len({one, *others}) == 4


# --- what earlier runs took


NOON = 43_200.0
"""In words: 1970-01-01 12:00 UTC."""


def tags_lost(*numbers: int) -> dict[Loss, float]:
    return {Loss("tags", Key.parse(f"tag/ACME-{n}")): NOON + n for n in numbers}


def after(recent: Mapping[Loss, float], manifest: str, recorded: Sequence[Recorded]) -> Plan:
    """Return a plan of a state whose recent runs took these losses without an approval."""
    return planned(manifest, recorded, records=StateRecords(recent=lambda: recent))


def test_recent_losses_without_an_approval_count() -> None:
    """They are read only where something goes, and the approval of what goes does not depend on them."""
    unread = StateRecords(recent=lambda: pytest.fail("nothing goes"))
    assert not planned(declared(3), tags(2), records=unread).gate.tripped
    assert not after({}, declared(19), tags(21)).gate.tripped
    judged = after(tags_lost(19, 20, 21, 22, 23), declared(17), tags(19)).gate
    assert judged.reasons == (
        "7 of 24 tags forgotten, retired or deleted, 5 of them in runs since 1970-01-01 12:00 UTC (limit 25%)",
    )
    assert judged.approve == plan_of(declared(17), tags(19), limits={"tags": Limit(count=0)}).gate.approve


def test_a_removal_that_is_planned_again_counts_once() -> None:
    assert not after(tags_lost(6, 7), declared(6), tags(8)).gate.tripped
    assert after(tags_lost(6, 7, 8), declared(6), tags(8)).gate.reasons[0].startswith("3 of 9 tags")


def test_earlier_losses_of_a_tag_that_is_removed_now_do_not_count() -> None:
    """A tag that is removed today counts once, without the keywords that it lost yesterday."""
    key = Key.parse("tag/ACME-7")
    recent = {Loss("keywords", key, word): NOON for word in "abcdefgh"}
    recorded = [row(f"tag/ACME-{n}", "k") for n in range(8)]
    keeping = declared(6, ", keywords: [k]") + "  - {name: ACME-6}\n"
    assert not after(recent, keeping, recorded).gate.tripped
    lost = {Loss("keywords", Key.parse("tag/ACME-5"), word): NOON for word in "abcdefghijklmnopq"}
    assert after(lost, keeping, recorded).gate.reasons[0].startswith("18 of 25 keywords deleted, 17 of them in runs")


# --- shares are of what was declared


FIELDS, WORDS = "8 of 8 fields cleared", "8 of 8 keywords deleted"
ENTRIES = "8 of 8 metadata entries deleted or blanked"
DESCRIBED = {"label": "L", "description": "d"}
EVERYTHING_LOST: dict[str, tuple[list[Recorded], str, str]] = {
    "the only field of each": (tags(8, url="http://u"), declared(8), FIELDS),
    "the only field, written out as empty": (tags(8, url="http://u"), declared(8, ", url: ''"), FIELDS),
    "a list, written out": (tags(8, assigneeExternalIds=("jd",)), declared(8, ", assigneeExternalIds: []"), FIELDS),
    "spaces are nothing": (tags(8, managedBy="me"), declared(8, ", managedBy: '  '"), FIELDS),
    "a description made blank": (tags(8, description="d"), declared(8, ", description: ' '"), FIELDS),
    "all keywords but the names": (tags(8, "k"), declared(8), WORDS),
    "the names as keywords": (tags(8), declared(8, ", excludeTagNameKeyword: true"), WORDS),
    "all metadata": (tags(8, metadata={"A": "1"}), declared(8), ENTRIES),
    "all metadata blanked": (tags(8, metadata={"A": "1"}), declared(8, ", metadata: {A: ''}"), ENTRIES),
    "all that was not blank before": (
        tags(8, metadata={"A": "1", "B": "", "C": " "}),
        declared(8, ", metadata: {A: ' ', B: '', C: ''}"),
        ENTRIES,
    ),
    "a label and a false flag dilute nothing of types": (
        [row(f"activity-type/{n}", enableIfNew=False, **DESCRIBED) for n in range(8)],
        listed("activityTypes", "code", 8, ", label: L, enableIfNew: false"),
        FIELDS,
    ),
    "nor a label and empty keywords of categories": (
        [row(f"category/{n}", keywords=(), **DESCRIBED) for n in range(8)],
        listed("tagCategories", "externalId", 8, ", label: L"),
        FIELDS,
    ),
}


@pytest.mark.parametrize(("rows", "manifest", "reason"), EVERYTHING_LOST.values(), ids=EVERYTHING_LOST)
def test_losing_all_that_was_declared_asks(rows: list[Recorded], manifest: str, reason: str) -> None:
    assert [each.partition(" (")[0] for each in planned(manifest, rows).gate.reasons] == [reason]


def test_a_blank_entry_that_goes_is_no_loss() -> None:
    plan = planned(declared(8), tags(8, metadata={"A": ""}))
    assert (plan.gate.tripped, plan.summary.metadata_deletes) == (False, 8)


def test_no_delete_keeps_what_would_come_out_blank() -> None:
    rows = tags(2, "k", managedBy="me", metadata={"A": "1", "B": ""})
    plan = planned(declared(2, ", managedBy: ' ', metadata: {A: '', B: ''}"), rows, scope=Scope(no_delete=True))
    assert plan.changes == ()
    assert {note.kind for note in plan.notes} == {"left-out"}


def test_generated_tags_that_are_merged_into_one_are_not_lost() -> None:
    """Only a tag that is neither declared nor a former name counts as lost."""
    rows = [row(f"tag/M-{n}", source=Source(FILE, 1, Row("m.csv", n))) for n in range(7)]
    others = "".join(f"  - {{name: M-{n}}}\n" for n in range(3, 7))
    merged = planned(f"tags:\n  - {{name: NEW, previously: [M-0, M-1, M-2]}}\n{others}", rows)
    assert not any("made from it" in reason for reason in merged.gate.reasons)
    lost = planned(f"tags:\n  - {{name: NEW, previously: [M-0]}}\n{others}", rows)
    assert any("made from it" in reason for reason in lost.gate.reasons)


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


def used(*covers: Loss, at: float = 5.0, used: float | None = None) -> list[ApprovalRecord]:
    return [ApprovalRecord("1@ab", "r", None, at, covers, remaining=(), used=used)]


VALUES: dict[str, str | None] = {"Client": "ACME", "Empty": "", "New": None}
BLANKED = Detail(metadata_set={"Client": "", "New": ""}, metadata_deleted=("Empty",), metadata_before=VALUES)
BACK = Detail(status=(Status.RETIRED, Status.ACTIVE))
WAYS = [line(left(status), at=at) for at, status in enumerate((Status.RELEASED, Status.RETIRED, Status.DELETED))]
ALL = {WORD, OTHER, NAME, URL}
TOLD: dict[str, tuple[list[RemovalLine], list[ApprovalRecord], set[Loss]]] = {
    "each part that a call took, but no field with a new value": ([line()], [], ALL),
    "a value that was blanked, but not an empty one": ([line(BLANKED)], [], {Loss("metadata", TAG, "Client")}),
    "nothing that was only recorded": ([line(is_sent=False)], [], set()),
    "but a tag that is forgotten leaves without any call": ([line(left(Status.RELEASED), is_sent=False)], [], {GONE}),
    "a resource once, whichever way it left": (WAYS, [], {GONE}),
    "nothing that came back": ([line(BACK)], [], set()),
    "nothing of an approved run": ([line(approved=True), line(left(Status.RETIRED), approved=True)], [], set()),
    "nothing that an approval covers": ([line()], used(WORD), ALL - {WORD}),
    "an approval covers nothing of another kind": ([line()], used(Loss("metadata", TAG, "word")), ALL),
    "that of a whole resource covers each of its parts": ([line()], used(Loss("tags", TAG, "delete")), set()),
    "but not another's": ([line()], used(Loss("tags", Key.parse("tag/ACME-2"), "delete")), ALL),
    "an approval counts from its first use": ([line()], used(WORD, at=11.0), ALL),
    "until it is used up": ([line()], used(WORD, used=9.0), ALL),
    "that instant included": ([line()], used(WORD, used=10.0), ALL - {WORD}),
}


@pytest.mark.parametrize(("lines", "approvals", "losses"), TOLD.values(), ids=TOLD)
def test_what_the_journal_tells_of_losses(
    lines: list[RemovalLine], approvals: list[ApprovalRecord], losses: set[Loss]
) -> None:
    found = recent_losses(lines, approvals)
    assert (found.keys(), {*found.values()} <= {lines[-1].at}) == (losses, True)


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


OTHERS_MADE = row("tag/M-2", source=Source(MANIFEST, 3, Row("data/other.csv", 2)))
TEMPLATE = "manifests/matters.yaml.j2"
OF_TEMPLATE = {"use": replace(USE, file=TEMPLATE)}
EMPTIED: dict[str, tuple[list[Recorded], dict[str, Any], str | None]] = {
    "one row before": ([], {"had": 1}, "had 1 row at the last apply"),
    "rows before": ([], {"had": 1200}, "had 1,200 rows at the last apply"),
    "none before": ([MADE], {"had": 0}, None),
    "it may be empty": ([], {"had": 1200, "use": replace(USE, may_be_empty=True)}, None),
    "it has rows": ([], {"had": 1200, "use": replace(USE, rows=1)}, None),
    # Without a count, as in an adopted or rebuilt state, the resources that were made from it decide.
    "nothing known": ([], {}, None),
    "others made from other data or by hand": ([OTHERS_MADE, row("tag/M-3", source=Source(MANIFEST, 3))], {}, None),
    "one made from it": ([MADE], {}, "1 resource was made from it before"),
    "two made from it": ([MADE, replace(MADE, key=OTHERS_MADE.key)], {}, "2 resources were made from it before"),
    "it is declared elsewhere": ([MADE], {"manifests": "tags: [{name: M-1}]"}, None),
    "released": ([replace(MADE, status=Status.RELEASED)], {}, None),
    "retired": ([replace(MADE, status=Status.RETIRED)], {}, None),
    "deleted": ([replace(MADE, status=Status.DELETED)], {}, None),
    "its manifest was renamed": (
        [replace(MADE, source=Source("manifests/old.yaml", 3, Row(DATA, 2)))],
        {},
        "1 resource was made from it before",
    ),
    "a text template is its own data": (
        [replace(MADE, source=Source(TEMPLATE, 3))],
        OF_TEMPLATE,
        "1 resource was made from it before",
    ),
}


@pytest.mark.parametrize(("rows", "how", "words"), EMPTIED.values(), ids=EMPTIED)
def test_a_source_that_lost_all_its_rows_is_an_error(
    rows: list[Recorded], how: dict[str, Any], words: str | None
) -> None:
    assert emptied(*rows, **how) == words
