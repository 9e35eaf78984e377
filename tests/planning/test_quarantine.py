"""What a quarantine leaves alone: which entries are in effect, and what waits with them (docs/repair.md)."""

from collections.abc import Iterable
from typing import Any

import pytest

from syncengine.plan.model import Plan, Quarantine
from syncengine.plan.quarantine import ENDED, QUARANTINED, SWEEP_LEFT_OUT, UNUSED
from syncengine.plan.request import Scope
from syncengine.project.model import DAY, QuarantineEntry
from syncengine.resource import Key, Recorded, Status
from syncengine.state.records import REMOVAL, QuarantineRecord, Refusal, content_of

from .estate import actions, ask, notes, planned, row

NOW = 1000 * DAY
SOON = NOW + 10 * DAY
BAD = Key.parse("tag/BAD")
DECLARED = "tags: [{name: BAD, description: new}, {name: GOOD, description: new}]"
ROWS = (row("tag/BAD", description="old"), row("tag/GOOD", description="old"))


def asked(manifest: str, key: Key, removal: str = "delete") -> str:
    """Return the content that a manifest asks for: of a resource, or the way in which it is removed."""
    resource = ask(manifest).resources.get(key)
    return content_of(resource.body) if resource else REMOVAL + removal


def with_aside(manifest: str, rows: Iterable[Recorded], address: str, *, removal: str = "delete", **how: Any) -> Plan:
    """Plan with a resource in quarantine whose last call was refused, with what is asked for now."""
    key = Key.parse(address)
    content = asked(manifest, key, removal)
    return planned(manifest, rows, quarantine=quarantine(key, content, SOON), **how)


def quarantine(key: Key, content: str, until: float | None, **more: Any) -> Quarantine:
    refusal = Refusal(key=key, times=1, since=NOW, at=NOW, message="no", content=content, **more)
    record = QuarantineRecord(key=key, reason="ticket", until=until, at=NOW, content=content)
    return Quarantine(NOW, records=(record,), refusals={key: refusal})


# --- when an entry is in effect

WANTED, OTHER = asked(DECLARED, BAD), asked("tags: [{name: BAD, description: other}]", BAD)
REFUSED = quarantine(BAD, WANTED, None)
EARLIER = QuarantineRecord(key=BAD, reason="ticket", until=None, at=NOW, content="earlier")
PAST = QuarantineEntry(BAD, "ticket", NOW, 7)
"""An entry of the project file, of which nothing recorded says that it ever was in effect."""
ENTRIES = {
    "without a date": (REFUSED, QUARANTINED),
    "before its date": (quarantine(BAD, WANTED, NOW + 1), QUARANTINED),
    "at its date": (quarantine(BAD, WANTED, NOW), ENDED),
    "after its date": (quarantine(BAD, WANTED, NOW - DAY), ENDED),
    "other content is asked for": (quarantine(BAD, OTHER, None), ENDED),
    "other content was refused since": (Quarantine(NOW, records=(EARLIER,), refusals=REFUSED.refusals), ENDED),
    "a later call has no outcome yet": (quarantine(BAD, WANTED, None, is_last=False), UNUSED),
    "in the project file, too late": (Quarantine(NOW, "a.yaml", (PAST,), refusals=REFUSED.refusals), UNUSED),
}


@pytest.mark.parametrize(("entry", "code"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry_sets_aside_what_was_refused_until_its_date_or_other_content(entry: Quarantine, code: str) -> None:
    """Nobody has set the new content aside."""
    plan = planned(DECLARED, ROWS, quarantine=entry)
    assert (BAD in plan.set_aside, [each.code for each in plan.diagnostics]) == (code == QUARANTINED, [code])
    assert actions(plan).keys() == ({"tag/GOOD"} if code == QUARANTINED else {"tag/GOOD", "tag/BAD"})


@pytest.mark.parametrize(
    ("manifest", "rows", "address"),
    [(DECLARED, ROWS, BAD), (DECLARED, (), BAD), ("{}", ROWS, BAD), (DECLARED, ROWS, Key.parse("tag/NOBODY"))],
)
def test_an_entry_of_what_was_never_refused_is_unused(manifest: str, rows: tuple[Recorded, ...], address: Key) -> None:
    entry = QuarantineEntry(address, "ticket", None, 7)
    plan = planned(manifest, rows, quarantine=Quarantine(NOW, "syncengine.yaml", (entry,)))
    (said,) = plan.diagnostics
    assert (plan.set_aside, said.code, said.line) == ((), UNUSED, 7)
    assert ("was not refused" if address == BAD else "no manifest declares it") in said.message


@pytest.mark.parametrize(
    ("until", "now", "is_aside"),
    # The 30 days begin when it was set aside, and a clock that was set back gives no more.
    [(None, 0, 0), (30, 0, 1), (31, 0, 1), (32, 0, 0), (30.5, 0, 0), (40, 20, 0), (20, -20, 0)],
)
def test_a_removal_waits_for_30_days_at_most(until: float | None, now: float, is_aside: int) -> None:
    """In days. A date ends with its last day; an instant counts by the second."""
    held = quarantine(BAD, REMOVAL + "forget", None if until is None else NOW + until * DAY)
    later = Quarantine(NOW + now * DAY, records=held.records, refusals=held.refusals)
    assert (BAD in planned("tags: []", ROWS, quarantine=later).set_aside) == is_aside


@pytest.mark.parametrize(
    ("manifest", "refused", "is_aside"),
    [
        ("tags: []", "forget", True),
        ("tags: []", "retire", True),  # as by a rename, whatever the policy is
        ("tags: []", "delete", False),
        ("removed: [{tag: BAD, as: delete}]", "delete", True),
        ("removed: [{tag: BAD, as: delete}]", "forget", False),
        ("removed: [{tag: BAD, as: delete}]", "retire", False),
    ],
)
def test_a_removal_waits_while_it_is_asked_for_in_that_way(manifest: str, refused: str, is_aside: bool) -> None:
    held = quarantine(BAD, REMOVAL + refused, SOON)
    plan = planned(manifest, ROWS, deletes_tags=True, quarantine=held)
    assert (BAD in plan.set_aside) is is_aside


# --- what waits with it

MEMBERS = (
    row("category/acme", label="Acme"),
    row("tag/IN", category="acme"),
    row("tag/BY-ID", tagCategoryId="id-acme"),
    row("tag/OUT"),
)
CATEGORY = "tagCategories: [{externalId: acme, label: New}]\n"
TAGS = "tags: [{name: IN, category: acme, url: 'https://a.example'}, {name: OUT, url: 'https://a.example'}]"
RENAMED = "tagCategories: [{externalId: new, label: Acme, previously: [acme]}]\n"


def waiting(plan: Plan) -> set[str]:
    return set(map(str, plan.set_aside))


GONE = row("tag/IN", category="acme", status=Status.DELETED)
ACME, OTHERS = "category/acme", MEMBERS[1:]
RENAMED_IN_DOUBT = row("category/other", server_id="id-acme", doubtful=True)
TWO_NAMES = (row(ACME, doubtful=True), RENAMED_IN_DOUBT, MEMBERS[1])


@pytest.mark.parametrize(
    ("manifest", "rows", "address", "waits"),
    [
        (CATEGORY + TAGS, MEMBERS, ACME, {ACME, "tag/IN"}),
        (CATEGORY + TAGS, MEMBERS, "tag/IN", {"tag/IN"}),
        # A category that would be deleted waits with those of its members that would go with it.
        ("tags: []", MEMBERS, ACME, {ACME, "tag/IN", "tag/BY-ID"}),
        ("tags: [{name: IN}]", MEMBERS, ACME, {ACME, "tag/BY-ID"}),
        ("tags: [{name: IN}]", MEMBERS, "tag/IN", {"tag/IN", ACME, "tag/BY-ID"}),
        ("tags: [{name: BY-ID}]", MEMBERS, "tag/BY-ID", {"tag/BY-ID", ACME, "tag/IN"}),
        # One that stays for a reason of its own needs nobody to wait.
        ("tags: [{name: IN}]", (row(ACME, protect=True), *OTHERS), "tag/IN", {"tag/IN"}),
        ("tags: [{name: IN}]", (row(ACME, status=Status.RELEASED), *OTHERS), "tag/IN", {"tag/IN"}),
        # Nor is a former name, or a tag that is gone, a member that would go with the category.
        ("tags: [{name: NEW, previously: [IN]}]", MEMBERS, ACME, {ACME, "tag/BY-ID"}),
        ("tags: []", (MEMBERS[0], GONE), ACME, {ACME}),
        (RENAMED + "tags: [{name: IN, category: new}]", MEMBERS[:2], "tag/IN", {"tag/IN"}),
        # Two names of one category wait together: a tag that is in the one may be in the other.
        ("tags: [{name: IN}]", TWO_NAMES, "tag/IN", {"tag/IN", ACME, "category/other"}),
        # Both names of a rename wait.
        ("tags: [{name: NEW, previously: [OUT]}]", MEMBERS[3:], "tag/NEW", {"tag/NEW", "tag/OUT"}),
        ("tags: [{name: NEW, previously: [OUT]}]", MEMBERS[3:], "tag/OUT", {"tag/NEW", "tag/OUT"}),
    ],
)
def test_what_depends_on_it_waits_with_it(
    manifest: str, rows: tuple[Recorded, ...], address: str, waits: set[str]
) -> None:
    plan = with_aside(manifest, rows, address, removal="retire" if "OUT" in address else "delete")
    assert waiting(plan) == waits
    (said,) = (each for each in plan.diagnostics if each.code == QUARANTINED)
    assert [name for name in waits - {address} if name not in said.message.partition('"no"; ')[2]] == []
    assert not waits & actions(plan).keys()
    assert ((ACME, "left-out") in notes(plan)) is (ACME in waits - {address})


def test_a_category_stays_while_a_tag_waits_that_may_be_in_it() -> None:
    """Also one that waits for another category, which is in quarantine."""
    new = "tagCategories: [{externalId: b}]\ntags: [{name: NEW, category: b}]"
    for manifest, address, why in (
        ("tags: [{name: NEW}]", "tag/NEW", "is in quarantine"),
        (new, "category/b", "waits for category/b"),
    ):
        (note,) = [each for each in with_aside(manifest, MEMBERS[:1], address).notes if str(each.key) == ACME]
        assert (note.kind, note.message) == ("left-out", f"not deleted: tag NEW may be in it and {why}")


TYPES = (row("activity-type/A1", label="L"), row("activity-type/A9", label="L"))
KEEPS = "activityTypes: [{code: A1, label: L, description: new}]\n"


BAD_TAG = KEEPS + "tags: [{name: BAD}]"


def holding(code: str | None, **more: Any) -> Recorded:
    return row("tag/BAD", **more, **({"defaultActivityTypeCode": code} if code else {}))


@pytest.mark.parametrize(
    ("manifest", "rows", "address", "sweeps"),
    [
        (KEEPS, TYPES, "activity-type/A1", False),
        (KEEPS, TYPES, "activity-type/A9", False),
        (BAD_TAG, (*TYPES, ROWS[0]), "tag/BAD", True),
        # A tag that asks for a code to delete, holds it, or may hold it.
        (KEEPS + "tags: [{name: BAD, defaultActivityTypeCode: A9}]", (*TYPES, ROWS[0]), "tag/BAD", False),
        (BAD_TAG, (*TYPES, holding("A9")), "tag/BAD", False),
        (BAD_TAG, (*TYPES, holding("A1", doubtful=True)), "tag/BAD", False),
        (BAD_TAG, (*TYPES, holding("A1")), "tag/BAD", True),
        (BAD_TAG, (*TYPES, holding(None, doubtful=True)), "tag/BAD", True),
        (BAD_TAG, (*TYPES, holding("A9", status=Status.DELETED)), "tag/BAD", True),
    ],
)
def test_no_activity_type_is_deleted_that_what_waits_may_need(
    manifest: str, rows: tuple[Recorded, ...], address: str, sweeps: bool
) -> None:
    plan = with_aside(manifest, rows, address)
    assert (plan.sweep is not None) is sweeps
    assert ("activity-type/A9" in waiting(plan)) is not sweeps
    assert not waiting(plan) & actions(plan).keys()
    assert (address, "left-out") not in notes(plan)
    warning = next(each for each in plan.diagnostics if each.code == QUARANTINED)
    assert warning.message.endswith("no activity type is deleted meanwhile") is not sweeps


def test_a_sweep_by_hand_is_left_out_with_a_warning_unless_it_takes_no_code_from_what_waits() -> None:
    """A tag in doubt that waits cannot lose its code where no type is to be deleted."""
    plan = with_aside(KEEPS, TYPES[:1], "activity-type/A1", sweep=True)
    assert (plan.sweep, SWEEP_LEFT_OUT in [each.code for each in plan.diagnostics]) == (None, True)
    assert with_aside(BAD_TAG, (TYPES[0], holding("A1", doubtful=True)), "tag/BAD", sweep=True).sweep is not None


def test_a_quarantine_is_no_selection() -> None:
    """The sweep of other activity types goes on, which a selection would leave out."""
    rows = (*TYPES, ROWS[0])
    manifest = KEEPS + "tags: [{name: BAD, description: new}]"
    assert with_aside(manifest, rows, "tag/BAD").sweep is not None
    assert planned(manifest, rows, scope=Scope(excludes=("tag/BAD",))).sweep is None
