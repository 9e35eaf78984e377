"""A receiver that ignores Idempotency-Key is searched with `find` before a group is sent again: nothing is lost or
doubled."""

from __future__ import annotations

import asyncio
import os
import random
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from syncengine.posted_time.build_route import build, warnings_of_sinks
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.retry import deliver_again
from syncengine.state.database import open_database
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE
from tests.posted_time.forgetful import FIND, Forgetful, finding_sink, forgetting
from tests.posted_time.mortal import Dead, Fate, MortalInbox
from tests.posted_time.projects import problems, project
from tests.posted_time.receiver import Got
from tests.posted_time.samples import raw
from tests.support import warm

GROUPS = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "40"))
"""The number of groups; 1,000 take some minutes."""


class Clock:
    def __init__(self) -> None:
        self.at = 1_714_000_000.0

    def __call__(self) -> float:
        return self.at


class Connector:
    """A connector that may die at any transaction of its inbox, and then starts again."""

    def __init__(self, folder: Path, deliver: str, clock: Clock) -> None:
        self.project = project(folder, f"deliver:\n{textwrap.indent(deliver, '  ')}")
        self.clock, self.fate = clock, Fate()
        open_inbox(self.project.state, write=True).close()

    def take(self, *groups: dict[str, object], deaths: int | None = None) -> list[Verdict]:
        """The verdicts until it died."""
        state = open_database(self.project.state, write=True)
        inbox = MortalInbox(state, self.clock)
        inbox.fate = self.fate
        delivery = Delivery(build(self.project, {}, now=self.clock), inbox, keep=1e9, now=self.clock, clock=self.clock)
        self.fate.left = deaths
        verdicts = list[Verdict]()

        async def living() -> None:
            try:
                for group in groups:
                    verdicts.append(await delivery.take(group, mechanism="fetch"))
            finally:
                for sink in delivery.route.sinks:
                    await sink.close()

        try:
            asyncio.run(living())
        except Dead:
            pass
        finally:
            self.fate.left = None
            inbox.close()
        return verdicts


@pytest.mark.parametrize("seed", range(2))
def test_each_group_is_there_once_whatever_is_cut_late_or_killed(seed: int, tmp_path: Path) -> None:
    """The service offers each group until it gets SUCCESS, and FAILURE is only sent for a group that the receiver does
    not have."""
    chance, clock = random.Random(seed), Clock()
    usual = ("take", "take", "cut", "lost", "gateway", "late", "down", "refuse")
    with forgetting(clock, seed, usual=usual, asking=("answer",) * 3 + ("cut", "down", "odd")) as pms:
        connector = Connector(tmp_path, finding_sink(pms.receiver.url), clock)
        waiting = [f"g{number}" for number in range(GROUPS)]
        told = dict[str, str | None]()
        while waiting:
            clock.at += chance.random() * 90
            chance.shuffle(waiting)
            deaths = chance.randrange(20) if chance.random() < 0.5 else None
            verdicts = connector.take(*map(raw, waiting[:10]), deaths=deaths)
            for id, verdict in zip(waiting[:10], verdicts, strict=False):
                if verdict.outcome is SUCCESS:
                    told[id] = verdict.external_id
                if verdict.outcome is REFUSED:
                    assert pms.has(id) == []
            waiting = [id for id in waiting if id not in told]
        assert Counter(one.reference for one in pms.entries) == Counter(told.keys())
        numbers = {one.reference: {f"E{one.number}", f"E{one.number + 1}"} for one in pms.entries}
        assert all(external in numbers[id] for id, external in told.items())


class Case(NamedTuple):
    """A receiver that ignores keys, and a connector whose sink looks groups up there."""

    clock: Clock
    pms: Forgetful
    connector: Connector

    def loses(self, mood: str = "lost", group: str = "g1") -> None:
        """Deliver a group whose outcome stays unknown."""
        self.pms.moods.append(mood)
        (verdict,) = self.connector.take(raw(group))
        assert verdict.outcome is TROUBLE

    def lists(self, status: int, answer: object) -> None:
        """Give this answer whenever the list of entries is asked for."""
        pms = self.pms
        pms.receiver.answer = lambda got: (status, answer) if got.method == "GET" else pms.answer(got)


@contextmanager
def finding(folder: Path, find: str = FIND) -> Iterator[Case]:
    clock = Clock()
    with forgetting(clock) as pms:
        yield Case(clock, pms, Connector(folder, finding_sink(pms.receiver.url, find), clock))


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with finding(tmp_path) as case:
        yield case


def test_a_receiver_that_wants_ten_years_without_questions_has_a_day(case: Case) -> None:
    """The process that was told so goes on; its clock or the receiver's may be wrong."""

    async def story() -> list[PostedTimeStatus]:
        async with Delivery.of(case.connector.project, {}, now=case.clock, clock=case.clock) as opened:

            async def offered_after(seconds: float) -> PostedTimeStatus:
                case.clock.at += seconds
                return (await opened.take(raw("g1"), mechanism="fetch")).outcome

            case.pms.moods.append("lost")
            first = await offered_after(0)
            case.pms.receiver.headers = {"Retry-After": "315360000"}
            case.lists(503, {})
            asked = await offered_after(80)
            case.pms.receiver.headers, case.pms.receiver.answer = {}, case.pms.answer
            return [first, asked, await offered_after(86_390), await offered_after(11)]

    assert asyncio.run(story()) == [TROUBLE, TROUBLE, TROUBLE, SUCCESS]


def test_find_asks_only_after_an_unclear_attempt_and_a_wait(case: Case) -> None:
    """During the wait nothing is sent, and the trouble is explained in the note that `time show` prints."""
    assert case.connector.take(raw("g0"))[0].outcome is SUCCESS
    case.loses()
    assert case.pms.questions == []
    case.clock.at += 59
    (verdict,) = case.connector.take(raw("g1"))
    assert (verdict.outcome, case.pms.questions) == (TROUBLE, [])
    assert verdict.message is not None
    assert verdict.message.startswith("pms may already have this time.")
    with open_inbox(case.connector.project.state, write=False) as inbox:
        entry = inbox.entry("g1")
        assert entry is not None
        assert (entry.note or "").startswith("perhaps taken: ")
    case.clock.at += 20
    assert case.connector.take(raw("g1")) == [Verdict(SUCCESS, None, "E1")]
    assert len(case.pms.questions) == 1
    assert len(case.pms.has("g1")) == 1


@pytest.mark.parametrize("mood", ["cut", "late"])
def test_a_group_that_is_not_found_is_sent_again(mood: str, case: Case) -> None:
    """An entry that is made late is found, because `find` asks after the wait."""
    case.loses(mood)
    case.clock.at += 61
    assert case.connector.take(raw("g1"))[0].outcome is SUCCESS
    assert len(case.pms.has("g1")) == 1


def test_find_without_after_waits_for_the_timeout_and_a_minute(tmp_path: Path) -> None:
    with finding(tmp_path, FIND.replace(", after: 60s}", "}, timeout: 7s")) as case:
        case.loses()
        case.clock.at += 66
        assert case.connector.take(raw("g1"))[0].outcome is TROUBLE
        case.clock.at += 2
        assert case.connector.take(raw("g1"))[0].outcome is SUCCESS


def test_find_reads_every_page_and_matches_the_whole_reference(case: Case) -> None:
    """The first pages hold entries whose references have the same prefix."""
    case.connector.take(*(raw(f"g1{number}") for number in range(7)))
    case.loses()
    case.clock.at += 80
    assert case.connector.take(raw("g1")) == [Verdict(SUCCESS, None, "E7")]
    assert len(case.pms.questions) == 3


def test_a_requested_repeat_is_sent_only_if_the_entry_is_missing(case: Case) -> None:
    """`time retry --sink` is for a receiver that was restored from a backup: what it has is not sent once more, and a
    receiver that cannot be asked gets nothing."""

    def asked_again() -> str:
        with open_inbox(case.connector.project.state, write=True) as inbox:
            inbox.write(lambda tx: tx.ask(["g0", "g1"], "pms"))
        deliver_again(case.connector.project, {}, ["g0", "g1"], lambda: None)
        with open_inbox(case.connector.project.state, write=False) as inbox:
            return " ".join(found.status for entry in inbox.entries() for found in entry.deliveries)

    case.connector.take(raw("g0"), raw("g1"))
    case.clock.at += 60
    case.pms.asking = ("down",)
    assert asked_again() == "again again"
    case.pms.asking = ("answer",)
    assert asked_again() == "accepted accepted"
    assert len(case.pms.entries) == 2
    case.pms.entries[:] = case.pms.has("g0")
    assert asked_again() == "accepted accepted"
    assert sorted(entry.reference for entry in case.pms.entries) == ["g0", "g1"]


def test_two_entries_of_a_group_are_a_conflict(case: Case) -> None:
    case.loses()
    case.pms.entries.append(case.pms.entries[0])
    case.pms.usual = ("refuse",)
    case.clock.at += 80
    case.pms.entries[1] = type(case.pms.entries[0])("g1", 3600, 9, case.clock.at - 50, case.clock.at - 50)
    (verdict,) = case.connector.take(raw("g1"))
    assert verdict.outcome is REFUSED
    assert "more than once" in (verdict.message or "")
    with open_inbox(case.connector.project.state, write=False) as inbox:
        entry = inbox.entry("g1")
        assert entry is not None
        assert entry.state == "conflict"


ANSWERS = {
    "no list of entries": {"data": {}},
    "no readable reference": {"data": {"entries": [{"id": 1}]}},
    "a reference that is no text": {"data": {"entries": [{"id": 1, "external": {"ref": ["g1"]}}]}},
    "a next page": {"data": {"entries": []}, "next_page": "/more"},
    "a larger total": {"data": {"entries": [], "total": 4}},
    "no object": [],
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_proves_nothing_is_trouble(answer: object, tmp_path: Path) -> None:
    with finding(tmp_path, FIND.replace(" paging: {cursor: at, at: next_cursor},", "")) as case:
        case.loses("cut")
        case.clock.at += 80
        case.lists(200, answer)
        assert case.connector.take(raw("g1"))[0].outcome is TROUBLE
        assert case.pms.entries == []
        case.pms.receiver.answer = case.pms.answer
        assert case.connector.take(raw("g1"))[0].outcome is SUCCESS


Pages = Callable[[str], dict[str, object]]
"""The token of a page → the answer, whose first page has the token "0"."""


def page(*references: str, following: str | None = None, **more: object) -> dict[str, object]:
    items = [{"id": f"{reference}-{following}", "external": {"ref": reference}} for reference in references]
    return {"data": {"entries": items, **more}, "next_cursor": following}


INCOMPLETE: dict[str, Pages] = {
    "each page is the first one": lambda at: {**page("x", "y", following="1"), "next_cursor": f"{at}1"},
    "its tokens go round": lambda at: page(f"x{at}", following={"0": "1", "1": "2", "2": "1"}[at]),
    "it never ends": lambda at: page(f"x{at}", following=str(int(at) + 1)),
    "it has fewer entries than it says": lambda at: page("x", "y", "z", total=5),
    "its second page has no list": lambda at: page("x", following="1") if at == "0" else {"error": "busy"},
    "its token is no text": lambda at: {**page("x"), "next_cursor": {"at": 3}},
}
"""Lists that are never whole; the group that is asked for may be in what is missing."""


@pytest.mark.parametrize("pages", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_of_a_list_that_is_not_whole_nothing_is_said_to_be_missing(
    pages: Pages, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends after a bounded number of pages, and nothing is sent."""
    monkeypatch.setattr("syncengine.posted_time.sinks.find.MOST_PAGES", 20)
    case.loses()
    case.clock.at += 80
    sent = 0

    def answer(got: Got) -> tuple[int, object] | None:
        nonlocal sent
        sent += got.method == "POST"
        case.pms.questions.append(got.path)
        return 200, pages(parse_qs(urlsplit(got.path).query).get("at", ["0"])[0])

    case.pms.receiver.answer = answer
    assert case.connector.take(raw("g1"))[0].outcome is TROUBLE
    assert (sent, len(case.pms.questions) <= 20) == (0, True)


def test_a_group_on_the_last_page_is_found(case: Case) -> None:
    case.loses()
    case.clock.at += 80
    last = {
        "0": page("x", following="1", total=3),
        "1": page("y", following="2", total=3),
        "2": page("g1", total=3),
    }
    case.pms.receiver.answer = lambda got: (200, last[parse_qs(urlsplit(got.path).query).get("at", ["0"])[0]])
    assert case.connector.take(raw("g1")) == [Verdict(SUCCESS, None, "Eg1-None")]


WITHOUT_VALUE = {
    "a null": {"id": 0, "ref": None},
    "nothing": {"id": 0},
    "a null entry": None,
    "a null above": {"id": 0, "ref": None, "inner": None},
}
COMPOSITES = [
    "ref eq '{{ entry.ref }}'",
    "ref eq '{{ entry['ref'] | trim }}'",
    "ref eq '{{ entry.inner.ref }}'",
    "ref eq '{{ entry.get('ref') | upper }}'",
    "{{ 'ref eq ' ~ entry.ref }}",
    "{{ 'ref eq %s' % entry.ref }}",
    "{{ [entry] | map(attribute='ref') | join('/') }}/",
    "{% for one in [entry.ref] %}{{ one }}{% endfor %}/",
]


@pytest.mark.parametrize(
    ("entry", "reference"),
    [
        *(pytest.param(entry, COMPOSITES[0], id=name) for name, entry in WITHOUT_VALUE.items()),
        *((WITHOUT_VALUE["a null above"], reference) for reference in COMPOSITES[1:]),
    ],
)
def test_a_composite_reference_without_a_value_of_the_entry_is_not_readable(
    entry: object, reference: str, tmp_path: Path
) -> None:
    """A null is not taken for a reference unlike the group's, by which the group would be sent twice."""
    assert _asked(entry, reference, tmp_path) == (TROUBLE, 1)


@pytest.mark.parametrize(
    "reference",
    [
        "ref eq '{{ entry.ref or entry.note }}'",
        "ref eq '{{ entry.inner.ref or entry.note }}'",
        "ref eq '{{ entry.note if entry.ref is none else entry.ref }}'",
        "ref eq '{{ entry.note if entry.ref == none else entry.ref }}'",
        "ref eq '{{ (entry.fields | selectattr('name', 'equalto', 'ref') | first).value }}'",
    ],
)
def test_a_null_that_a_reference_does_not_write_is_none(reference: str, tmp_path: Path) -> None:
    fields = [{"name": None, "value": None}, {"name": "ref", "value": "g1"}]
    entry = {"ref": None, "inner": None, "note": "g1", "fields": fields}
    assert _asked(entry, reference, tmp_path) == (SUCCESS, 1)


def test_blanks_around_the_value_that_is_asked_for_do_not_count(tmp_path: Path) -> None:
    """Nor do they around the reference of an entry: else the group would be sent twice."""
    with finding(tmp_path, FIND.replace("'{{ group.groupId }}'", "' {{ group.groupId }} '")) as case:
        case.loses()
        case.clock.at += 80
        case.lists(200, {"data": {"entries": [{"id": 1, "external": {"ref": "g1"}}]}})
        (verdict,) = case.connector.take(raw("g1"))
        assert (verdict.outcome, len(case.pms.entries)) == (SUCCESS, 1)


def _asked(entry: object, reference: str, folder: Path) -> tuple[PostedTimeStatus, int]:
    """The outcome of a group that is taken while its answer is lost, if the list has only this entry; and the POSTs."""
    asked, read = "filter: \"ref eq '{{ group.groupId }}'\"", f'"{reference}"'
    find = FIND.replace("ref: '{{ group.groupId }}'", asked).replace("'{{ entry.external.ref }}'", read)
    find = find.replace(" externalId: 'E{{ entry.id }}', paging: {cursor: at, at: next_cursor},", "")
    with finding(folder, find) as case:
        case.loses()
        case.clock.at += 80
        case.lists(200, {"data": {"entries": [entry]}})
        (verdict,) = case.connector.take(raw("g1"))
        return verdict.outcome, len(case.pms.entries)


@pytest.mark.parametrize(("status", "outcome"), [(404, SUCCESS), (401, TROUBLE), (500, TROUBLE), (302, TROUBLE)])
def test_only_a_404_of_find_means_that_the_entry_is_missing(status: int, outcome: PostedTimeStatus, case: Case) -> None:
    case.loses("cut")
    case.clock.at += 80
    case.lists(status, {})
    assert case.connector.take(raw("g1"))[0].outcome is outcome
    assert len(case.pms.entries) == (outcome is SUCCESS)


def test_changed_content_is_sent_only_if_the_first_is_not_found(case: Case) -> None:
    """Otherwise it is a conflict, and an offer of the first content is answered with SUCCESS."""
    case.loses("cut", "g0")
    case.loses("lost", "g1")
    other = [raw(id, totalDurationSecs=7200) for id in ("g0", "g1")]
    assert [one.outcome for one in case.connector.take(*other)] == [TROUBLE, TROUBLE]
    case.clock.at += 80
    assert [one.outcome for one in case.connector.take(*other)] == [SUCCESS, REFUSED]
    assert [one.secs for one in case.pms.has("g0")] == [7200]
    assert [one.secs for one in case.pms.has("g1")] == [3600]
    assert case.connector.take(raw("g1"))[0].outcome is SUCCESS
    assert len(case.pms.entries) == 2


def test_a_refused_repeat_is_a_success_if_the_entry_exists_by_then(case: Case) -> None:
    """`find` asks once more after a 409, as the first request may have been executed before the repeat."""
    case.loses("cut")
    case.clock.at += 80

    def executed_then_refused(got: object) -> tuple[int, object] | None:
        if getattr(got, "method", "") == "POST":
            case.pms.moods.append("take")
            case.pms.answer(got)  # type: ignore[arg-type] # as a test calls it
            case.pms.entries[-1] = type(case.pms.entries[-1])("g1", 3600, 0, case.clock.at, case.clock.at)
            return 409, {}
        return case.pms.answer(got)  # type: ignore[arg-type] # as a test calls it

    case.pms.receiver.answer = executed_then_refused
    assert case.connector.take(raw("g1")) == [Verdict(SUCCESS, None, "E0")]
    assert len(case.pms.entries) == 1


def test_each_tag_has_a_reference_of_its_own(tmp_path: Path) -> None:
    clock = Clock()
    with forgetting(clock) as pms:
        sink = finding_sink(pms.receiver.url, more="  each: tag\n").replace(
            "{{ group.groupId }}", "{{ group.groupId }}/{{ tag.name }}"
        )
        connector = Connector(tmp_path, sink, clock)
        both = raw("g1", tags=[{"name": "A"}, {"name": "B"}])
        pms.moods += ["lost", "gateway"]
        assert connector.take(both)[0].outcome is TROUBLE
        clock.at += 80
        assert connector.take(both)[0].outcome is TROUBLE
        clock.at += 80
        assert connector.take(both)[0].outcome is SUCCESS
        assert Counter(one.reference for one in pms.entries) == Counter(["g1/A", "g1/B"])


def test_a_reference_in_the_path_below_a_source(tmp_path: Path) -> None:
    clock = Clock()
    with forgetting(clock) as pms:
        find = "find: {path: '/entries/{{ group.groupId }}', entries: '{{ [response] }}', reference: '{{ entry.ref }}'}"
        deliver = (
            f"- name: pms\n  http: {{source: crm, path: /time, json: {{ref: '{{{{ group.groupId }}}}'}}, {find}}}\n"
        )
        sources = f"ledger: {{sql: ledger.db}}\ncrm: {{http: '{pms.receiver.url}/v1'}}"
        found = project(tmp_path, f"deliver:\n{textwrap.indent(deliver, '  ')}", sources)
        connector = Connector.__new__(Connector)
        connector.project, connector.clock, connector.fate = found, clock, Fate()
        open_inbox(found.state, write=True).close()
        pms.receiver.answer = lambda got: None
        connector.take(raw("g 1"))
        clock.at += 100
        pms.receiver.answer = lambda got: (200, {"ref": "g 1"}) if got.method == "GET" else None
        assert connector.take(raw("g 1"))[0].outcome is SUCCESS
        assert pms.receiver.got[-1].path == "/v1/entries/g%201"


WRONG = {
    "another field": (FIND.replace("groupId", "groupName"), "asks for nothing"),
    "two addresses": (FIND.replace("url:", "path: /x, url:"), "needs a `url`"),
    "no address": (FIND.replace("url: 'URL/entries', ", ""), "needs a `url`"),
    "a constant query": (FIND.replace("{{ group.groupId }}", "all"), "asks for nothing"),
    "two values": (FIND.replace("kind: time", "other: '{{ group.groupId }}'"), "several parameters"),
    "a lookup": (FIND.replace("kind: time", "kind: '{{ lookup.matter.id }}'"), "lookup"),
}


@pytest.mark.parametrize(("find", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_find_that_cannot_find_a_group_is_an_error_at_start(find: str, told: str, tmp_path: Path) -> None:
    deliver = textwrap.indent(finding_sink("http://127.0.0.1:1", find), "  ")
    found = problems(tmp_path, f"deliver:\n{deliver}")
    assert any(told in problem.message for problem in found), found


def test_validate_and_preview_warn_once_of_a_sink_without_find(tmp_path: Path) -> None:
    """With `mode: off` there is no warning."""
    plain = "deliver: [{name: pms, http: {url: 'https://pms.example.com'}}]"
    assert warnings_of_sinks(project(tmp_path, f"mode: off\n{plain}")) == []
    found = warnings_of_sinks(project(tmp_path, plain))
    assert [(each.code, each.line) for each in found] == [("sink-at-least-once", 5)]
    for command in (["validate"], ["time", "preview", "--sample"]):
        ran = warm.run(["-C", str(tmp_path), *command], folder=tmp_path, environ={})
        assert (ran.out + ran.err).count("sink-at-least-once") == 1


def test_each_tag_needs_a_reference_with_the_tag(tmp_path: Path) -> None:
    """Otherwise `find` would take the entry of the first tag for that of the second, whose time would be lost."""
    deliver = finding_sink("http://127.0.0.1:1", more="  each: tag\n")
    (found,) = problems(tmp_path, f"deliver:\n{textwrap.indent(deliver, '  ')}")
    assert "each: tag" in found.message
