"""`drift` reads long, odd and endless lists of posted time, from a service that a test scripts."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from syncengine.posted_time.drift import MOST_UNKNOWN, Drift
from syncengine.posted_time.drift_reading import Window, drift_of
from syncengine.resource import Body, Key, Kind, Recorded, Status
from syncengine.service.client import Client, Conduct

from .lister import Group, Page, group, listing, obedient

pytestmark = pytest.mark.slow

NOW = 1_790_000_000_000
DAY = 86_400_000


class Recollection:
    """A state of these rows, all settled at the same time."""

    def __init__(self, *rows: Recorded, at: float = 0.0) -> None:
        self._rows = {row.key: row for row in rows}
        self._at = at

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        yield from self._rows.values()

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        return {key: self._rows[key] for key in keys if key in self._rows}

    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]:
        return dict.fromkeys(keys, self._at)

    def forgotten(self, keys: Iterable[Key]) -> set[Key]:
        return set()


def row(name: str, status: Status = Status.ACTIVE, **fields: Any) -> Recorded:
    return Recorded(Key(Kind.TAG, name), Body(fields), status, confirmed=True)


NOTHING = Recollection()


def read(page: Page, state: Recollection = NOTHING, since: float = 0.0, **more: Any) -> Drift:
    async def play(url: str) -> Drift:
        conduct = Conduct(first_wait=0.001, attempts=2)
        async with Client(url, lambda *, fresh=False: "key", conduct=conduct) as client:
            return await drift_of(client, state, Window(since, more.pop("unused_since", None)), **more)

    with listing(page) as lister:
        return asyncio.run(play(lister.url))


def found(drift: Drift) -> dict[str, tuple[str, int]]:
    return {finding.name: (finding.kind.value, finding.groups) for finding in drift.findings}


# --- pages


def test_a_list_that_cannot_be_read_to_its_end_is_incomplete() -> None:
    """Its groups are counted once, and no tag is reported as unused."""

    def endless(limit: int, before: int | None) -> list[Group]:
        first = NOW if before is None else before - 1
        return [group(first - n, first - n, "X") for n in range(limit)]

    many = [group(n, NOW - n, "X", "X") for n in range(900)]
    ignoring = read(lambda limit, _: obedient(many)(limit, None), Recollection(row("A")), unused_since=0.0)
    assert (ignoring.reading.groups, ignoring.reading.ignored, ignoring.reading.is_complete) == (500, True, False)
    assert found(ignoring) == {"X": ("unknown", 500)}
    going_on = read(endless, most=12)
    assert (going_on.reading.groups, going_on.reading.endless) == (500 + 11 * 499, True)
    hiding = read(obedient([*(group(n, NOW, "X") for n in range(600)), group(1_000, NOW - DAY, "Y")]))
    assert (hiding.reading.hidden, hiding.reading.groups) == ([NOW], 501)


def test_reading_ends_at_the_start_of_the_window() -> None:
    """The list is newest first, so one page is enough; in another order, groups behind older ones are found."""
    asked = []

    def page(limit: int, before: int | None) -> list[Group]:
        asked.append(before)
        return obedient([group(n, NOW - n * 1_000, "X") for n in range(900)])(limit, before)

    drift = read(page, since=(NOW - 100_000) / 1000)
    assert (len(asked), drift.reading.groups) == (1, 101)
    assert read(lambda *given: page(*given)[::-1], since=(NOW - 700_000) / 1000).reading.groups == 701


ODD: list[Any] = [7, None, "text", [], {}, {"submissionTime": "soon"}, {"submissionTime": True}, {"submissionTime": -1},
    *({"submissionTime": NOW, **more} for more in (
        {"tags": "X"}, {"tags": [7]}, {"tags": [{"name": ["X"]}]}, {"groupId": {"x": 1}}))]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_unreadable_item_does_not_affect_other_groups(odd: Any) -> None:
    """It is counted, and the reading is incomplete."""
    drift = read(lambda _, before: [] if before and before < NOW else [group(1, NOW, "X"), odd, group(2, NOW, "Y")])
    assert found(drift) == {"X": ("unknown", 1), "Y": ("unknown", 1)}
    assert (drift.reading.unreadable > 0, drift.reading.is_complete) == (True, False)


def test_groups_without_a_tag_are_counted() -> None:
    nameless = [None, [], [{}], [{"name": None}], [{"name": ""}], [{"description": "d"}]]
    groups = [{"groupId": str(n), "submissionTime": NOW - n, "tags": tags} for n, tags in enumerate(nameless)]
    drift = read(obedient(groups))
    assert (drift.reading.groups, drift.reading.is_complete, drift.findings) == (6, True, ())


@pytest.mark.parametrize("text", [rb"\ud83d", b"\xff", b"NaN", b"\x01"], ids=repr)
def test_bad_characters_in_one_group_do_not_affect_others(text: bytes) -> None:
    """For example half a surrogate pair, in a title that was cut off."""
    quote = b"" if text == b"NaN" else b'"'
    odd = b'{"groupId": "b", "submissionTime": %d, "tags": [{"name": "Y"}], "x": %b%b%b}' % (NOW, quote, text, quote)
    body = b'[{"groupId": "a", "submissionTime": %d, "tags": [{"name": "X"}]}, %b]' % (NOW, odd)
    drift = read(lambda _, before: [] if before and before <= NOW else body)
    assert "X" in found(drift)
    assert ("Y" in found(drift)) or drift.reading.unreadable


def numbered(count: int, tags: int, **more: Any) -> Page:
    """A list of so many groups, whose tags are T-0, T-1 and so on."""

    def page(limit: int, before: int | None) -> list[Group]:
        first = 0 if before is None else NOW - before + 1
        return [group(n, NOW - n, f"T-{n % tags}", **more) for n in range(first, min(first + limit, count))]

    return page


def peak(groups: int) -> int:
    """The peak memory in bytes for reading that many groups of 300 tags, each with a long narrative."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(100, 5, 5)  # so that uncollected garbage does not count
    tracemalloc.start()
    try:
        assert read(numbered(groups, 300, formattedNarrative="long " * 40)).reading.groups == groups
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*before)


def test_memory_does_not_grow_with_the_number_of_groups() -> None:
    """Six times as many groups need less than 1.2 times the memory."""
    few = peak(1_000)
    assert peak(6_000) < 1.2 * few


def test_the_number_of_listed_unknown_tags_is_bounded() -> None:
    """Each group has its own unknown tag: the first `MOST_UNKNOWN` are listed, the others only counted."""
    many = MOST_UNKNOWN + 700
    drift = read(numbered(many, many))
    assert (len(drift.findings), drift.unlisted) == (MOST_UNKNOWN, 700)


# --- comparison


def differing(recorded: dict[str, str], seen: dict[str, Any], *others: Group) -> dict[str, str] | None:
    """The seen values of tag A that are reported as different from the recorded ones."""
    groups = [group(1, NOW, {"name": "A", **seen}), *others]
    drift = read(obedient(groups), Recollection(row("A", **recorded)))
    return next((dict(each.seen) for each in drift.findings if each.name == "A"), None)


SEEN: list[tuple[dict[str, str], dict[str, Any], dict[str, str] | None]] = [
    ({"description": "d"}, {"description": "e"}, {"description": "e"}),
    ({"description": "d"}, {"description": ""}, {"description": ""}),
    ({"description": "d"}, {}, None),
    ({"description": "d"}, {"description": " d\n"}, None),
    ({"description": "é"}, {"description": "e\u0301"}, None),
    ({"description": "d"}, {"description": "D"}, {"description": "D"}),
    ({"description": ""}, {"description": "kept"}, None),
    ({}, {"description": "e", "path": "/x", "externalId": "1"}, None),
    ({"path": "/"}, {"path": ""}, None),
    ({"path": "/a"}, {"path": "/b"}, {"path": "/b"}),
    ({"externalId": "1"}, {"externalId": "2"}, {"externalId": "2"}),
    ({"externalId": "1"}, {"externalId": 1}, None),
    ({"externalId": ""}, {"externalId": "2"}, {"externalId": "2"}),
    ({"externalId": "1"}, {}, None),
]


def test_only_declared_fields_that_a_group_shows_are_compared() -> None:
    """Surrounding blanks and Unicode normalization forms are no difference."""
    assert [differing(recorded, seen) for recorded, seen, _ in SEEN] == [told for *_, told in SEEN]


IDENTIFIED = group(2, NOW - 5, {"name": "B", "externalId": "7"})


def test_a_missing_external_id_differs_if_other_tags_show_theirs() -> None:
    """The service sends the external id with each posted tag, so a tag without one has lost it."""
    assert differing({"externalId": "1"}, {}, IDENTIFIED) == {"externalId": ""}
    assert differing({"externalId": "1", "description": "d"}, {"description": "e"}) == {"description": "e"}


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        (Status.ACTIVE, {"differs"}),
        (Status.RETIRED, {"retired-in-use"}),
        (Status.DELETED, {"retired-in-use"}),
        (Status.RELEASED, set()),
    ],
)
def test_a_released_tag_and_one_in_doubt_are_left_alone(status: Status, kinds: set[str]) -> None:
    """A released tag may tag time, a retired or deleted one should not; what the service holds in doubt is unknown."""
    page = obedient([group(1, NOW, {"name": "A", "description": "e"})])
    drift = read(page, Recollection(row("A", status, description="d")))
    assert {finding.kind.value for finding in drift.findings} == kinds
    doubtful = Recorded(Key(Kind.TAG, "A"), Body({"description": "d"}), status, doubtful=True)
    assert read(page, Recollection(doubtful), unused_since=NOW / 1000 + 1).findings == ()


@pytest.mark.parametrize(("later", "count"), [(-1, 0), (0, 0), (1, 1)])
def test_only_groups_after_the_row_settled_count(later: int, count: int) -> None:
    """To the millisecond: an earlier group shows the tag as it was before the apply."""
    rows = Recollection(row("A", description="d"), row("B", Status.RETIRED), at=NOW / 1000)
    groups = [group(1, NOW + later, {"name": "A", "description": "e"}), group(2, NOW + later, "B")]
    assert found(read(obedient(groups), rows)) == ({"A": ("differs", 1), "B": ("retired-in-use", 1)} if count else {})


def test_a_newer_group_with_the_recorded_value_marks_the_finding_as_mended() -> None:
    """Somebody restored the value by hand."""
    groups = [group(1, NOW, {"name": "A", "description": "d"}), group(2, NOW - 1, {"name": "A", "description": "e"})]
    (finding,) = read(obedient(groups), Recollection(row("A", description="d"))).findings
    assert (finding.groups, finding.mended) == (1, True)


def test_a_name_in_another_unicode_form_is_another_tag() -> None:
    """The finding names the similar declared tag."""
    (finding,) = read(obedient([group(1, NOW, "acme-É")]), Recollection(row("ACME-e\u0301"))).findings
    assert (finding.kind.value, finding.similar) == ("unknown", "ACME-e\u0301")


def test_a_row_written_while_the_list_is_read_is_no_finding() -> None:
    """An apply ran meanwhile, so the list shows the tag as it was before."""

    class Moving(Recollection):
        def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
            return {key: row(key.name, description="now") for key in keys}

    groups = [group(1, NOW, {"name": "A", "description": "e"}), group(2, NOW, "NEW")]
    assert read(obedient(groups), Moving(row("A", description="d"))).findings == ()
