"""One plan with a call of every kind, whose run dies at each instant in turn, which a random sample may miss."""

from collections.abc import Iterator
from functools import cache
from itertools import count

import msgspec
import pytest

from syncengine.apply.report import RunStatus
from syncengine.resource import Key, Kind, Removal, Resource

from .crash_model import DEATHS, Ending, House, Manifest, Trouble, activity_type, category, declaring, tag
from .test_crashes import Snapshot, house, snapshot
from .truths import beyond_recorded, troubles_of

pytestmark = pytest.mark.slow

BEFORE = declaring(
    category("renamed-before"),
    category("emptied"),
    category("taken"),
    activity_type("A1"),
    activity_type("A9"),
    tag("moves", category="emptied"),
    tag("cascades", "some words", category="taken"),
    tag("edited", "first", "second", metadata={"Old": "1", "Kept": "2"}, url="https://a.example", category="taken"),
    tag("gains", category="renamed-before"),
    tag("cased", "Words"),
    tag("old-name"),
    tag("deleted"),
    tag("retired", "its words"),
    tag("forgotten"),
)
AFTER = declaring(
    category("renamed", was="renamed-before"),
    category("fresh"),
    activity_type("A1", description="new"),
    activity_type("A2"),
    tag("moves", category="fresh"),
    tag("edited", "first", metadata={"Kept": "3"}),
    tag("gains", "more", category="renamed"),
    tag("cased", "words"),
    tag("new-name", was="old-name"),
    tag("X-taken"),
    deleted=Removal.DELETE,
    retired=Removal.RETIRE,
)


def begun(home: House) -> None:
    """Set up the state before the plan, with tags of other people in categories that are renamed and deleted."""
    assert home.apply(BEFORE).status is RunStatus.COMPLETE
    home.others_act("tag", "renamed-before")
    home.others_act("tag", "taken")
    home.others_act("keyword", "edited")


@cache
def beginning() -> Snapshot:
    with house() as home:
        begun(home)
        return snapshot(home)


def applied(*wanted: Resource, theirs: str | None = None) -> Snapshot:
    """Return a house where these resources are applied, with a category of other people."""
    with house() as home:
        assert home.apply(declaring(*wanted)).status is RunStatus.COMPLETE
        if theirs is not None:
            home.others_act("category", theirs)
        return snapshot(home)


AT_ONCE = ("dies before", "dies and lands late")
"""A process that dies after an instant leaves what one leaves that dies before the next instant."""


def left_behind(begin: Snapshot, wanted: Manifest, how: str) -> Iterator[tuple[Snapshot, Ending]]:
    """Yield each different end of an apply with this trouble at an instant; it has a call of every kind."""
    kept = -1
    for instant in count():
        with house(begin) as home:
            ending = home.apply(wanted, [Trouble(instant, how)])
            assert list(beyond_recorded(home)) == []
            if not ending.troubles:
                assert instant > 14
                return
            if not ending.died or ending.kept != kept:
                kept = ending.kept
                yield snapshot(home), ending


@cache
def dead(how: str) -> tuple[tuple[Snapshot, Ending], ...]:
    return tuple(left_behind(beginning(), AFTER, how))


def deaths(how: str) -> Iterator[tuple[int, House, Ending]]:
    """Yield a house after a run that died, for each that leaves something else; they are numbered."""
    for instant, (death, ending) in enumerate(dead(how)):
        with house(death) as home:
            yield instant, home, ending


def assert_ended(home: House, instant: int) -> None:
    assert troubles_of(home, AFTER) == [], f"after death at instant {instant}"
    assert "X-renamed-before" in home.world.tags
    assert home.rests(AFTER), f"after death at instant {instant}"


@pytest.mark.parametrize("how", AT_ONCE)
def test_wherever_a_run_dies_one_more_apply_ends_it(how: str) -> None:
    """The next apply plans anew from the recorded state."""
    for instant, home, _ in deaths(how):
        assert home.apply(AFTER).status is RunStatus.COMPLETE, f"after death at instant {instant}"
        assert_ended(home, instant)


@pytest.mark.parametrize("how", AT_ONCE)
def test_wherever_a_run_of_a_saved_plan_dies_the_same_plan_ends_it(how: str) -> None:
    """The plan is not stale, sends what was not acknowledged, and reports all changes (docs/planning.md 6)."""
    for instant, home, ending in deaths(how):
        resumed = home.resume(ending)
        assert resumed is not None, f"stale after death at instant {instant}"
        assert resumed.status is RunStatus.COMPLETE, f"after death at instant {instant}"
        assert troubles_of(home, AFTER) == [], f"after death at instant {instant}"
        home.apply(AFTER)  # which may have to forget a tag whose category was found gone
        assert_ended(home, instant)


@pytest.mark.parametrize("how", AT_ONCE)
def test_a_second_death_at_any_instant_changes_nothing(how: str) -> None:
    """The run that repairs the first one may be killed too."""
    for instant, home, _ in deaths(how):
        home.apply(AFTER, [Trouble(instant // 2, how)])
        assert home.apply(AFTER).status is RunStatus.COMPLETE, f"after deaths at instants {instant} and {instant // 2}"
        assert_ended(home, instant)


def at_each_instant(begin: Snapshot, wanted: Manifest, how: str) -> Iterator[tuple[str, House]]:
    """Yield the house after an apply with this trouble at each instant in turn, and at last without any."""
    for instant in count():
        with house(begin) as home:
            troubles = home.apply(wanted, [Trouble(instant, how)]).troubles
            yield f"{how} at instant {instant}", home
        if not troubles:
            assert instant > 0, "there was to be a call and what is recorded of it"
            return


UNSURE = [*AT_ONCE, "unavailable", "refused", "answer lost"]
RENAMED = declaring(category("new", was="old"), tag("inside", category="new"))
BOTH, LAST = declaring(category("old"), category("new")), declaring(category("new"))
NEXT: dict[str, tuple[Manifest, list[Manifest]]] = {
    "it may be deleted, and is renamed": (declaring(tag("inside")), [RENAMED, RENAMED]),
    "its rename failed, and it is deleted": (RENAMED, [declaring(), declaring()]),
    "also with tags that left the manifests": (declaring(category("new", was="old")), [declaring(), declaring()]),
    "its old name is declared again, and the new one is another category": (RENAMED, [BOTH, LAST, LAST]),
}


@pytest.mark.parametrize("how", UNSURE)
@pytest.mark.parametrize(("disturbed", "then"), NEXT.values(), ids=NEXT)
def test_a_deleted_category_names_its_tags_whatever_its_name_may_be(
    disturbed: Manifest, then: list[Manifest], how: str
) -> None:
    """Its tags may be in the category under either name, including tags that are no longer declared."""
    for when, home in at_each_instant(applied(category("old"), tag("inside", category="old")), disturbed, how):
        for wanted in then:
            home.apply(wanted)
        assert troubles_of(home, then[-1]) == [], when
        assert home.rests(then[-1]), when


@pytest.mark.parametrize("how", DEATHS)
def test_a_category_that_is_kept_is_always_reported(how: str) -> None:
    """When a rename finds another category of that name."""
    new = declaring(category("new", was="old"))
    for when, home in at_each_instant(applied(category("old"), theirs="new"), new, how):
        assert home.apply(new).status is RunStatus.COMPLETE
        assert home.let_go == {Key(Kind.CATEGORY, "old")}, when
        assert troubles_of(home, new) == [], when


def test_a_tag_may_take_the_name_of_one_that_has_it_already() -> None:
    """No change shows such a rename; the plan that deletes the old category still names every deleted tag."""
    inside = declaring(category("gone"), tag("old", category="gone"))
    for earlier in (declaring(*inside.resources.values(), tag("new")), declaring(tag("old"), tag("new"))):
        for between in (earlier, declaring(*(r for r in earlier.resources.values() if r.key.name != "new"))):
            with house() as home:
                home.apply(earlier)
                home.apply(between)
                assert home.apply(declaring(tag("new", was="old"))).status is RunStatus.COMPLETE
                assert troubles_of(home, declaring(tag("new", was="old"))) == []


@pytest.mark.parametrize("places", [{"first": "", "second": "gone"}, {"first": "gone", "second": "gone"}])
def test_a_second_former_name_may_be_deleted_with_its_category(places: dict[str, str]) -> None:
    """The change shows only the first former name."""
    both = msgspec.structs.replace(tag("new"), previously=("first", "second"))
    with house() as home:
        home.apply(declaring(category("gone"), *(tag(name, category=place) for name, place in places.items())))
        assert home.apply(declaring(both)).status is RunStatus.COMPLETE
        assert troubles_of(home, declaring(both)) == []


def assert_ends_well(first: Manifest, second: Manifest, third: Manifest, last: Manifest, how: str) -> None:
    """Apply four manifests, with a call of unknown end in the second, and trouble at each instant of the third."""
    begin = applied(*first.resources.values())
    betweens = [(when, snapshot(home)) for when, home in at_each_instant(begin, second, "unavailable")]
    for before, between in betweens:
        for when, home in at_each_instant(between, third, how):
            home.apply(last)
            home.apply(last)
            assert troubles_of(home, last) == [], f"{before}, {when}"


@pytest.mark.parametrize("stays", [True, False])
def test_a_deleted_renamed_category_names_tags_that_may_still_be_in_it(stays: bool) -> None:
    """After a move of unknown outcome the tag may be in either category, one of which has a new name."""
    other, inside = category("other"), tag("moves", category="other")
    assert_ends_well(
        declaring(category("old"), other, tag("moves", category="old")),
        declaring(category("old"), other, inside),
        declaring(category("new", was="old"), other, *([inside] if stays else [])),
        declaring(other),
        "unavailable",
    )


@pytest.mark.parametrize("how", ["unavailable", "dies after"])
def test_no_tag_is_deleted_with_a_name_that_its_category_may_still_have(how: str) -> None:
    """After renames of unknown outcome the category may have any of its names, and only the last is declared."""
    assert_ends_well(
        declaring(category("first"), tag("inside", category="first")),
        declaring(category("second", was="first"), tag("inside", category="second")),
        declaring(category("third", was="second"), tag("inside", category="third")),
        declaring(category("third"), tag("inside", category="third")),
        how,
    )


def test_a_tag_that_moved_before_its_old_category_was_renamed_stays_where_it_is() -> None:
    """A rename that waits for an earlier call is sent after moves of tags that wait for nothing."""
    old = declaring(category("old"), category("other"), tag("moves", category="old"))
    changed = declaring(category("old", label="M"), category("other"), tag("moves", category="old"))
    renamed = declaring(category("new", was="old"), category("other"), tag("moves", category="other"))
    with house() as home:
        assert home.apply(old).status is RunStatus.COMPLETE
        instants = (i for i in count() if home.apply(changed, [Trouble(i, "unavailable and lands late")]).troubles)
        for _ in instants:
            if home.in_flight:
                break
            home.apply(old)
        assert home.apply(renamed).status is RunStatus.COMPLETE
        assert home.waits == 1
        assert home.rests(renamed)


@pytest.mark.parametrize("how", UNSURE)
@pytest.mark.parametrize("meets", [True, False])
def test_a_category_has_one_new_name(how: str, meets: bool) -> None:
    """This holds also when the rename has no known outcome and another category claims the old name."""
    renamed = declaring(category("B", was="A"), tag("T", category="B"))
    both = declaring(category("D", was="A"), category("B"), tag("T", category="B"))
    begin = applied(category("A"), tag("T", category="A"), theirs="B" if meets else None)
    for when, home in at_each_instant(begin, renamed, how):
        for _ in range(3):
            home.apply(both)
        assert home.violations == [], when
        assert home.rests(both), when
