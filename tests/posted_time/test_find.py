"""`find` looks for a group at a receiver that ignores Idempotency-Key, so that nothing is there twice."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from syncengine.posted_time.build_route import build, warnings_of_sinks
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.project.model import Project
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import PostedTimeStatus
from syncengine.tools.posted_time import deliver_again
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work
from tests.posted_time.forgetful import FIND, Entry, Forgetful, finding_sink, forgetting
from tests.posted_time.mortal import Fate, lives
from tests.posted_time.projects import entries, into, problems, project, project_into
from tests.posted_time.receiver import Got
from tests.posted_time.samples import raw
from tests.support import warm

GROUPS = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "40"))
"""The number of groups; 1,000 take some minutes."""


@dataclass
class Clock:
    at: float = 1_714_000_000.0

    def __call__(self) -> float:
        return self.at


@dataclass(frozen=True)
class Case:
    """A receiver that ignores keys, and a connector that may die at any transaction of its inbox and starts again."""

    clock: Clock
    pms: Forgetful
    project: Project

    def takes(self, *groups: dict[str, object], deaths: int | None = None) -> list[Verdict]:
        verdicts = list[Verdict]()

        async def work(delivery: Delivery) -> None:
            for group in groups:
                verdicts.append(await delivery.take(group, mechanism="fetch"))

        lives(self.project.state, Fate(deaths), build(self.project, {}, now=self.clock), work, self.clock)
        return verdicts

    def take(self, group: str = "g1", wait: float = 0.0, **given: object) -> Verdict:
        """The verdict on a group that is offered after so many seconds."""
        self.clock.at += wait
        (verdict,) = self.takes(raw(group, **given))
        return verdict

    def loses(self, mood: str = "lost", group: str = "g1") -> None:
        """Deliver a group whose outcome stays unknown."""
        self.pms.moods.append(mood)
        assert self.take(group).outcome is TROUBLE

    def lists(self, status: int, answer: object) -> None:
        """Give this answer whenever the list of entries is asked for."""
        self.pms.receiver.answer = lambda got: (status, answer) if got.method == "GET" else self.pms.answer(got)


@contextmanager
def finding(
    folder: Path, sink: str = finding_sink("URL"), sources: str = "ledger: {sql: ledger.db}", **given: Any
) -> Iterator[Case]:
    """A case with this sink; in both texts, URL stands for the receiver's."""
    clock = Clock()
    with forgetting(clock, **given) as pms:
        sink, sources = (text.replace("URL", pms.receiver.url) for text in (sink, sources))
        project = project_into(folder, sink, "", sources)
        open_inbox(project.state, write=True).close()
        yield Case(clock, pms, project)


@pytest.mark.parametrize("seed", range(2))
def test_each_group_is_there_once_whatever_is_cut_late_or_killed(seed: int, tmp_path: Path) -> None:
    """The service offers each until it gets SUCCESS; FAILURE is only sent for what the receiver does not have."""
    chance = random.Random(seed)
    usual = ("take", "take", "cut", "lost", "gateway", "late", "down", "refuse")
    asking = ("answer",) * 3 + ("cut", "down", "odd")
    with finding(tmp_path, seed=seed, usual=usual, asking=asking) as case:
        waiting = [f"g{number}" for number in range(GROUPS)]
        told = dict[str, str | None]()
        while waiting:
            case.clock.at += chance.random() * 90
            chance.shuffle(waiting)
            deaths = chance.randrange(20) if chance.random() < 0.5 else None
            verdicts = case.takes(*map(raw, waiting[:10]), deaths=deaths)
            for id, verdict in zip(waiting[:10], verdicts, strict=False):
                if verdict.outcome is SUCCESS:
                    told[id] = verdict.external_id
                if verdict.outcome is REFUSED:
                    assert case.pms.has(id) == []
            waiting = [id for id in waiting if id not in told]
        assert Counter(one.reference for one in case.pms.entries) == Counter(told.keys())
        numbers = {one.reference: {f"E{one.number}", f"E{one.number + 1}"} for one in case.pms.entries}
        assert all(external in numbers[id] for id, external in told.items())


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with finding(tmp_path) as case:
        yield case


def test_a_receiver_that_wants_ten_years_without_questions_has_a_day(case: Case) -> None:
    """The process that was told so goes on; its clock or the receiver's may be wrong."""
    case.pms.moods.append("lost")
    with at_work(Delivery.of(case.project, {}, now=case.clock, clock=case.clock)) as desk:
        assert desk.take(raw()).outcome is TROUBLE
        case.pms.receiver.headers = {"Retry-After": "315360000"}
        case.lists(503, {})
        case.clock.at += 80
        assert desk.take(raw()).outcome is TROUBLE
        case.pms.receiver.headers, case.pms.receiver.answer = {}, case.pms.answer
        for wait, outcome in ((86_390, TROUBLE), (11, SUCCESS)):
            case.clock.at += wait
            assert desk.take(raw()).outcome is outcome


@pytest.mark.parametrize(("after", "wait"), [("after: 60s}", 60), ("}, timeout: 7s", 67)], ids=["set", "default"])
def test_find_asks_only_after_an_unclear_attempt_and_a_wait(after: str, wait: int, tmp_path: Path) -> None:
    """Of the timeout and a minute, unless `after` is set. Meanwhile nothing is sent; a note explains the trouble."""
    with finding(tmp_path, finding_sink("URL", FIND.replace(" after: 60s}", after).replace(",}", "}"))) as case:
        assert case.take("g0").outcome is SUCCESS
        case.loses()
        assert case.pms.questions == []
        verdict = case.take(wait=wait - 1)
        assert (verdict.outcome, case.pms.questions) == (TROUBLE, [])
        assert (verdict.message or "").startswith("pms may already have this time.")
        assert (entries(tmp_path)["g1"].note or "").startswith("perhaps taken: ")
        assert case.take(wait=20) == Verdict(SUCCESS, None, "E1")
        assert (len(case.pms.questions), len(case.pms.has("g1"))) == (1, 1)


@pytest.mark.parametrize("mood", ["cut", "late"])
def test_a_group_that_is_not_found_is_sent_again(mood: str, case: Case) -> None:
    """An entry that is made late is found, because `find` asks after the wait."""
    case.loses(mood)
    assert case.take(wait=61).outcome is SUCCESS
    assert len(case.pms.has("g1")) == 1


def test_find_reads_every_page_and_matches_the_whole_reference(case: Case) -> None:
    """The first pages hold entries whose references have the same prefix."""
    case.takes(*(raw(f"g1{number}") for number in range(7)))
    case.loses()
    assert case.take(wait=80) == Verdict(SUCCESS, None, "E7")
    assert len(case.pms.questions) == 3


def test_a_requested_repeat_is_sent_only_if_the_entry_is_missing(case: Case) -> None:
    """After a restored backup, `time retry --sink` sends nothing that is there or cannot be asked for."""
    case.takes(raw("g0"), raw("g1"))
    case.clock.at += 60
    for asking, kept, status in (("down", 2, "again"), ("answer", 2, "accepted"), ("answer", 1, "accepted")):
        case.pms.asking = (asking,)
        case.pms.entries[:] = case.pms.entries[:kept]
        with open_inbox(case.project.state, write=True) as inbox:
            inbox.write(lambda tx: tx.ask(["g0", "g1"], "pms"))
        deliver_again(case.project, {}, ["g0", "g1"], lambda: None)
        with open_inbox(case.project.state, write=False) as inbox:
            assert [found.status for entry in inbox.entries() for found in entry.deliveries] == [status] * 2
        assert [entry.reference for entry in case.pms.entries] == ["g0", "g1"]


def test_two_entries_of_a_group_are_a_conflict(case: Case, tmp_path: Path) -> None:
    case.loses()
    case.pms.entries.append(replace(case.pms.entries[0], number=9))
    verdict = case.take(wait=80)
    assert (verdict.outcome, "more than once" in (verdict.message or "")) == (REFUSED, True)
    assert entries(tmp_path)["g1"].state == "conflict"


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
    with finding(tmp_path, finding_sink("URL", FIND.replace(" paging: {cursor: at, at: next_cursor},", ""))) as case:
        case.loses("cut")
        case.lists(200, answer)
        assert (case.take(wait=80).outcome, case.pms.entries) == (TROUBLE, [])
        case.pms.receiver.answer = case.pms.answer
        assert case.take().outcome is SUCCESS


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
def test_a_list_that_is_not_whole_proves_nothing(pages: Pages, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after a bounded number of pages, and nothing is sent."""
    monkeypatch.setattr("syncengine.posted_time.sinks.find.MOST_PAGES", 20)
    case.loses()
    before = len(case.pms.receiver.got)
    case.pms.receiver.answer = lambda got: (200, pages(parse_qs(urlsplit(got.path).query).get("at", ["0"])[0]))
    assert case.take(wait=80).outcome is TROUBLE
    asked = case.pms.receiver.got[before:]
    assert ({got.method for got in asked}, len(asked) <= 20) == ({"GET"}, True)


NULLS = {"id": 0, "ref": None, "inner": None}
COMPOSITES = [
    "ref eq '{{ entry.ref }}'",
    "ref eq '{{ entry.inner.ref }}'",
    "ref eq '{{ entry.get('ref') | upper }}'",
    "{{ 'ref eq ' ~ entry.ref }}",
    "{% for one in [entry.ref] %}{{ one }}{% endfor %}/",
]


@pytest.mark.parametrize(
    ("entry", "reference"),
    [(None, COMPOSITES[0]), ({"id": 0}, COMPOSITES[0]), *((NULLS, reference) for reference in COMPOSITES)],
)
def test_a_composite_reference_without_a_value_is_not_readable(entry: object, reference: str, tmp_path: Path) -> None:
    """A null is not taken for a reference unlike the group's, by which the group would be sent twice."""
    assert _asked(entry, reference, tmp_path) == (TROUBLE, 1)


@pytest.mark.parametrize(
    "reference",
    [
        "ref eq '{{ entry.ref or entry.note }}'",
        "ref eq '{{ entry.inner.ref or entry.note }}'",
        "ref eq '{{ entry.note if entry.ref is none else entry.ref }}'",
        "ref eq '{{ (entry.fields | selectattr('name', 'equalto', 'ref') | first).value }}'",
    ],
)
def test_a_null_that_a_reference_does_not_write_is_none(reference: str, tmp_path: Path) -> None:
    """Blanks around a value do not count, neither around that of an entry nor around the one that is asked for."""
    fields = [{"name": None, "value": None}, {"name": "ref", "value": "g1"}]
    entry = {"ref": None, "inner": None, "note": "g1", "fields": fields}
    assert _asked(entry, f" {reference}  ", tmp_path, blanks=" ") == (SUCCESS, 1)


def _asked(entry: object, reference: str, folder: Path, *, blanks: str = "") -> tuple[PostedTimeStatus, int]:
    """The outcome of a group that is taken while its answer is lost, if the list has only this entry; and the POSTs."""
    asked = f"filter: \"{blanks}ref eq '{{{{ group.groupId }}}}'{blanks}\""
    find = FIND.replace("ref: '{{ group.groupId }}'", asked).replace("'{{ entry.external.ref }}'", f'"{reference}"')
    find = find.replace(" externalId: 'E{{ entry.id }}', paging: {cursor: at, at: next_cursor},", "")
    with finding(folder, finding_sink("URL", find)) as case:
        case.loses()
        case.lists(200, {"data": {"entries": [entry]}})
        return case.take(wait=80).outcome, len(case.pms.entries)


@pytest.mark.parametrize(("status", "outcome"), [(404, SUCCESS), (401, TROUBLE), (500, TROUBLE), (302, TROUBLE)])
def test_only_a_404_of_find_means_that_the_entry_is_missing(status: int, outcome: PostedTimeStatus, case: Case) -> None:
    case.loses("cut")
    case.lists(status, {})
    assert case.take(wait=80).outcome is outcome
    assert len(case.pms.entries) == (outcome is SUCCESS)


def test_changed_content_is_sent_only_if_the_first_is_not_found(case: Case) -> None:
    """Otherwise it is a conflict, and an offer of the first content is answered with SUCCESS."""
    case.loses("cut", "g0")
    case.loses("lost", "g1")
    for wait, expected in ((0, (TROUBLE, TROUBLE)), (80, (SUCCESS, REFUSED))):
        found = (case.take("g0", wait, totalDurationSecs=7200), case.take("g1", totalDurationSecs=7200))
        assert (found[0].outcome, found[1].outcome) == expected
    assert [one.secs for one in case.pms.has("g0") + case.pms.has("g1")] == [7200, 3600]
    assert case.take().outcome is SUCCESS
    assert len(case.pms.entries) == 2


def test_a_refused_repeat_is_a_success_if_the_entry_exists_by_then(case: Case) -> None:
    """`find` asks once more after a 409, as the first request may have been executed before the repeat."""
    case.loses("cut")

    def executed_then_refused(got: Got) -> tuple[int, object] | None:
        if got.method == "GET":
            return case.pms.answer(got)
        case.pms.entries.append(Entry("g1", 3600, 0, case.clock.at, case.clock.at))
        return 409, {}

    case.pms.receiver.answer = executed_then_refused
    assert case.take(wait=80) == Verdict(SUCCESS, None, "E0")
    assert len(case.pms.entries) == 1


def test_each_tag_has_a_reference_of_its_own(tmp_path: Path) -> None:
    sink = finding_sink("URL", more="  each: tag\n")
    with finding(tmp_path, sink.replace("{{ group.groupId }}", "{{ group.groupId }}/{{ tag.name }}")) as case:
        case.pms.moods += ["lost", "gateway"]
        outcomes = [case.take(wait=80, tags=[{"name": "A"}, {"name": "B"}]).outcome for _ in range(3)]
        assert outcomes == [TROUBLE, TROUBLE, SUCCESS]
        assert Counter(one.reference for one in case.pms.entries) == Counter(["g1/A", "g1/B"])


def test_a_reference_in_the_path_below_a_source(tmp_path: Path) -> None:
    find = "find: {path: '/entries/{{ group.groupId }}', entries: '{{ [response] }}', reference: '{{ entry.ref }}'}"
    sink = f"- name: pms\n  http: {{source: crm, path: /time, json: {{ref: '{{{{ group.groupId }}}}'}}, {find}}}\n"
    with finding(tmp_path, sink, "ledger: {sql: ledger.db}\ncrm: {http: 'URL/v1'}") as case:
        case.pms.receiver.answer = lambda got: (200, {"ref": "g 1"}) if got.method == "GET" else None
        assert case.take("g 1").outcome is TROUBLE
        assert case.take("g 1", wait=100).outcome is SUCCESS
        assert case.pms.receiver.got[-1].path == "/v1/entries/g%201"


ASKS_FOR = "ref: '{{ group.groupId }}', kind: time"
WRONG = {
    "another field": (FIND.replace("groupId", "groupName"), "", "asks for nothing"),
    "two addresses": (FIND.replace("url:", "path: /x, url:"), "", "needs a `url`"),
    "no address": (FIND.replace("url: 'URL/entries', ", ""), "", "needs a `url`"),
    "a constant query": (FIND.replace(ASKS_FOR, "ref: all"), "", "asks for nothing"),
    "two values": (FIND.replace("kind: time", "other: '{{ group.groupId }}'"), "", "several parameters"),
    "a lookup": (FIND.replace("kind: time", "kind: '{{ lookup.matter.id }}'"), "", "lookup"),
    # It would take the entry of the first tag for that of the second, whose time would be lost.
    "one reference for each tag": (FIND, "  each: tag\n", "each: tag"),
}


@pytest.mark.parametrize(("find", "more", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_find_that_cannot_find_a_group_is_an_error_at_start(find: str, more: str, told: str, tmp_path: Path) -> None:
    found = problems(tmp_path, into(finding_sink("http://127.0.0.1:1", find, more=more)))
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
