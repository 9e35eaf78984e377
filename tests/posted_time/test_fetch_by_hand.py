"""time list, pull, register, unregister: as a process, against the sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from syncengine.state.inbox import open_inbox
from tests.cli.service import KEY
from tests.posted_time.receiver import Receiver, receiving
from tests.serve.world import LEDGER, World, eventually, world
from tests.settings.test_schema import judge
from tests.support import loopback

pytestmark = pytest.mark.slow


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def test_a_pull_fetches_delivers_and_acknowledges(estate: World) -> None:
    """One round: the row, the status with the reference, and what it says of both."""
    assert estate.project.run("time", "register").code == 0
    estate.post("a", "b")
    done = estate.project.run("time", "pull", "--format", "json")
    assert (done.code, estate.ledger()) == (0, ["a", "b"])
    judge("pull.schema.json").validate(done.document)
    assert [(g["groupId"], g["status"], g["acknowledged"]) for g in done.document["groups"]] == [
        ("a", "SUCCESS", True),
        ("b", "SUCCESS", True),
    ]
    assert set(estate.states().values()) == {"success"}


def test_a_pull_of_nothing_says_so(estate: World) -> None:
    """Exit 0; the fetch client is registered by the fetch itself."""
    done = estate.project.run("time", "pull")
    assert (done.code, done.out) == (0, "There is no posted time to fetch.\n")
    assert estate.connection()["mechanism"] == "fetch"


def test_a_pull_acknowledges_what_an_earlier_one_could_not(estate: World) -> None:
    """Exit 3 while the service was not told; the next pull tells it and delivers nothing twice."""
    estate.project.run("time", "register")
    estate.post("a")
    estate.service.choose(reofferSeconds=3600)
    estate.service.fault("updatePostedTimeStatus", times=None, status=400)
    assert estate.project.run("time", "pull").code == 3
    estate.service.heal()
    done = estate.project.run("time", "pull", "--format", "json")
    assert done.document["acknowledged"] == [{"groupId": "a", "status": "SUCCESS"}]
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})


def test_a_pull_takes_no_more_than_it_is_told(estate: World) -> None:
    """`--limit`; less than one is a usage error, and nothing is asked of the service."""
    estate.project.run("time", "register")
    estate.post("a", "b", "c")
    estate.project.run("time", "pull", "--limit", "2")
    assert estate.ledger() == ["a", "b"]
    before = len(estate.service.asked())
    assert estate.project.run("time", "pull", "--limit", "0").code == 64
    assert estate.project.run("time", "list", "--limit", "501").code == 64
    assert len(estate.service.asked()) == before


def test_a_pull_beside_a_serve_is_refused(estate: World) -> None:
    """Exit 6: the inbox is one process's at a time, and it says whose."""
    estate.serve().says("leading")
    done = estate.project.run("time", "pull")
    assert done.code == 6
    assert "serve" in done.err


@pytest.mark.parametrize("words", [("pull",), ("register",), ("retry", "a")])
def test_another_teams_time_is_left_alone(estate: World, words: tuple[str, ...]) -> None:
    """Exit 7, as `serve` has it: nothing is registered, fetched or delivered."""
    _refused(estate, "a")
    before = estate.service.asked()
    estate.settings(service=("team: Others",))
    done = estate.project.run("time", *words)
    assert (done.code, "Others" in done.err) == (7, True)
    assert set(estate.service.asked()[len(before) :]) == {"teamInfo"}
    assert estate.ledger() == []


@pytest.mark.parametrize("words", [("pull",), ("register",)])
def test_a_project_that_only_carries_time_has_a_team_too(estate: World, words: tuple[str, ...]) -> None:
    """The first one that it met: another one's time is left alone."""
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", *words).code == 0
    estate.service.choose(teamName="Others")
    estate.post("b")
    done = estate.project.run("time", "pull")
    assert (done.code, "Others" in done.err) == (7, True)
    assert "b" not in estate.ledger()


@pytest.mark.parametrize(
    "fault",
    [{"status": 204}, {"status": 200, "body": ""}, {"status": 200, "body": ["odd"]}, {"status": 400}, {"status": 500}],
    ids=["nothing said", "empty", "odd", "refused", "in trouble"],
)
def test_a_pull_goes_on_without_the_services_settings(estate: World, fault: dict[str, Any]) -> None:
    """Time is delivered all the same, as `serve` does."""
    estate.project.run("time", "register")
    estate.post("a")
    estate.service.fault("registerConnector", times=None, **fault)
    done = estate.project.run("time", "pull")
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})
    assert ("registration" in done.err) == (fault["status"] != 204 and fault.get("body") != "")


def test_a_pull_fetches_nothing_while_a_sink_is_down(estate: World) -> None:
    """Exit 3, and the sink is named: what nobody fetched, no user sees fail."""
    estate.project.run("time", "register")
    estate.post("a")
    pms = "    - {name: pms, http: {url: 'http://127.0.0.1:9/', json: {}}}\n"
    estate.settings(sinks=LEDGER + pms)
    done = estate.project.run("time", "pull")
    assert (done.code, done.out) == (3, "Nothing was fetched.\n")
    assert "pms" in done.err
    assert (estate.told("fetchPostedTime"), estate.ledger()) == (0, [])
    document = estate.project.run("time", "pull", "--format", "json").document
    judge("pull.schema.json").validate(document)
    assert (document["fetched"], "pms" in document["troubles"][0]) == (False, True)


@pytest.mark.parametrize("mode", ["off", "webhook"])
def test_a_pull_that_the_project_switched_off_is_refused(estate: World, mode: str) -> None:
    """A usage error that says what to write; the service is asked nothing, so that it records nothing for us."""
    hook = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
    estate.settings(posted=f"  mode: {mode}\n{hook}")
    done = estate.project.run("time", "pull", environ={"CALLER_KEY": "k-of-a-test"})
    assert (done.code, f"`postedTime.mode` is {mode}" in done.err, "mode: fetch" in done.err) == (64, True, True)
    assert (estate.service.asked(), estate.connection()["mechanism"]) == ([], None)


@contextmanager
def taking_nothing(estate: World) -> Iterator[Receiver]:
    """A receiver that answers 503 to what is posted, and is there for all else."""
    with receiving() as pms:
        pms.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
        estate.settings(sinks=f"    - {{name: pms, http: {{url: '{pms.url}', json: {{}}}}}}\n")
        estate.project.run("time", "register")
        yield pms


def test_pulls_fetch_nothing_while_a_sink_answers_503_and_report_it(estate: World) -> None:
    """Its address answers all the time. Whoever posts is told, and one group alone tries it, pull after pull."""
    with taking_nothing(estate) as pms:
        estate.post("a")
        assert estate.project.run("time", "pull").code == 3
        assert "pms" in (estate.health() or {})["userErrorMessage"]
        estate.post("b", "c", "d")
        outcomes = {estate.project.run("time", "pull").code for _ in range(4)}
        assert outcomes == {3}
        assert set(estate.states().values()) <= {"retrying", "posted", "offered"}
        offered = {id for id in "bcd" if estate.states()[id] != "posted"}
        assert len(offered) <= 1
        pms.answer = lambda got: (201, {})
        eventually(lambda: estate.project.run("time", "pull").code == 0 and not pms_lacks(estate))
        assert estate.health() is None


def pms_lacks(estate: World) -> set[str]:
    return {id for id, state in estate.states().items() if state != "success"}


def test_one_503_that_is_over_at_the_next_try_is_nobodys_business(estate: World) -> None:
    """The group is tried once more before the service hears of it; nothing is reported."""
    with taking_nothing(estate) as pms:
        answers = iter([503])
        pms.answer = lambda got: (next(answers, 201) if got.method == "POST" else 404, {})
        estate.post("a")
        done = estate.project.run("time", "pull", "--format", "json")
        assert (done.code, [group["status"] for group in done.document["groups"]]) == (0, ["SUCCESS"])
        assert [told["status"] for told in estate.posted()["a"]["told"]] == ["SUCCESS"]
    assert estate.told("reportHealthFailure") == 0


def test_a_pull_delivers_what_was_asked_for_and_reduces_what_is_old(estate: World) -> None:
    """Nobody else does where there is no `serve`."""
    _refused(estate, "a")
    estate.post("b")
    estate.settings(posted="  keep: 1s")
    assert estate.project.run("time", "pull").code == 0
    with open_inbox(str(estate.project.folder / ".syncengine/state.db"), write=True) as inbox:
        inbox.write(lambda tx: tx.ask(["a"]))
    assert estate.project.run("time", "pull").code == 0
    assert estate.ledger() == ["a", "b"]
    eventually(lambda: estate.project.run("time", "pull").code == 0 and _is_reduced(estate, "b"))


def _refused(estate: World, id: str) -> None:
    """A group in the inbox, refused by a rule that is gone afterwards."""
    estate.settings(posted="  refuse: [{when: tag, message: Not now.}]")
    estate.project.run("time", "register")
    estate.post(id)
    assert estate.project.run("time", "pull").code == 0
    estate.settings()


def _is_reduced(estate: World, id: str) -> bool:
    with open_inbox(str(estate.project.folder / ".syncengine/state.db"), write=False) as inbox:
        entry = inbox.entry(id)
    return entry is not None and entry.body is None


def test_a_retry_knows_the_services_settings(estate: World) -> None:
    """Registered where there is something to deliver; where the service is in trouble it delivers with those that it
    named last."""
    estate.service.choose(connectorConfiguration={"DESK": "desk 7"})
    _refused(estate, "a")
    estate.settings(sinks=LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK or 'none' }}"))
    assert estate.project.run("time", "retry", "a").code == 0
    before = estate.told("registerConnector")
    assert estate.project.run("time", "retry", "--state", "refused").code == 0
    assert estate.told("registerConnector") == before
    _refused(estate, "b")
    estate.settings(sinks=LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK or 'none' }}"))
    estate.service.fault("registerConnector", times=None, status=500)
    done = estate.project.run("time", "retry", "b")
    assert (done.code, "could not be registered" in done.err) == (0, True)
    assert estate.matters() == ["desk 7", "desk 7"]


def test_a_registration_by_hand_is_remembered_for_all_who_deliver(estate: World) -> None:
    """Whether our narrative ends in a summary is known without another answer: to a rehearsal, a pull, and until the
    service says otherwise."""
    estate.project.run("time", "register")
    noted = LEDGER.replace("{{ tag.name }}", "{{ narrative }}")
    estate.settings(sinks=noted)

    def rehearsed() -> bool:
        return "Worked:" in estate.project.run("time", "preview", "--sample").out

    def pulled(id: str) -> str:
        estate.post(id, description="Reply")
        assert estate.project.run("time", "pull").code in (0, 3)
        return estate.matters()[-1]

    assert not rehearsed()
    estate.service.choose(connectorConfiguration={"ADD_SUMMARY_TO_NARRATIVE": True})
    assert estate.project.run("connector", "register").code == 0
    estate.service.fault("registerConnector", times=None, status=500)
    assert (rehearsed(), "Worked:" in pulled("a")) == (True, True)
    estate.service.heal()
    estate.service.choose(connectorConfiguration={})
    assert "Worked:" not in pulled("b")
    assert not rehearsed()


def test_all_groups_are_listed_each_once(estate: World) -> None:
    """Posted and pending, in pages; since when may be said."""
    estate.project.run("time", "register")
    estate.post(*[f"g{number}" for number in range(7)])
    done = estate.project.run("time", "list", "--limit", "3", "--format", "json")
    assert sorted(group["groupId"] for group in done.document["groups"]) == [f"g{number}" for number in range(7)]
    estate.post("old", submissionTime=1_600_000_000_000)
    assert "old" in estate.project.run("time", "list").out
    assert "old" not in estate.project.run("time", "list", "--since", "30d").out


def test_the_other_mechanism_is_unregistered_first(estate: World) -> None:
    """By hand too: webhook after fetch after webhook."""
    hook = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
    estate.settings(posted=hook)
    environ = {"CALLER_KEY": "k-of-a-test"}
    for mechanism in ("webhook", "fetch", "webhook"):
        done = estate.project.run("time", "register", mechanism, "--format", "json", environ=environ)
        assert (done.code, done.document["registered"]) == (0, mechanism)
        judge("mechanism.schema.json").validate(done.document)
        assert estate.connection()["mechanism"] == mechanism


def test_a_client_that_is_registered_already_is_said_to_be(estate: World) -> None:
    """Plainly where this project registered it; with the service's words where another may have."""
    assert estate.project.run("time", "register").out == "Registered a fetch client.\n"
    again = estate.project.run("time", "register")
    assert (again.code, again.out) == (
        0,
        "Nothing changed: this project has already registered a fetch client.\n",
    )
    shutil.rmtree(estate.project.folder / ".syncengine")
    foreign = estate.project.run("time", "register")
    assert (foreign.code, foreign.out.startswith("Nothing changed: the team already has a fetch client")) == (0, True)
    assert "the team already has a fetch client" in foreign.out


def test_what_is_registered_is_unregistered(estate: World) -> None:
    """Without saying which; a second time there is nothing to end."""
    estate.project.run("time", "register")
    ended = estate.project.run("time", "unregister", "--format", "json")
    assert ended.document["unregistered"] == "fetch client"
    assert estate.connection()["mechanism"] is None
    again = estate.project.run("time", "unregister", "webhook", "--format", "json")
    assert (again.code, again.document["unregistered"]) == (0, None)
    for done in (ended, again):
        judge("mechanism.schema.json").validate(done.document)


def test_what_is_registered_instead_is_told(estate: World) -> None:
    """A webhook is nobody's fetch client: it stays, and how to end it is said."""
    hook = {"callbackUrl": "http://127.0.0.1:9/hook", "callerKey": "theirs"}
    loopback.post(f"{estate.service.url}/postedtime/subscribe", json=hook, headers={"x-api-key": KEY})
    done = estate.project.run("time", "unregister", "fetch")
    assert (done.code, "no fetch client" in done.out, "time unregister webhook" in done.out) == (0, True, True)
    assert estate.connection()["mechanism"] == "webhook"
    assert estate.project.run("time", "unregister", "webhook").out == "Unregistered the webhook.\n"


def test_a_webhook_in_the_way_is_explained(estate: World) -> None:
    """409 on a pull: what to do about it, and exit 1."""
    estate.service.fault("fetchPostedTime", status=409, body="has a webhook")
    done = estate.project.run("time", "pull")
    assert done.code == 1
    assert "unregister webhook" in done.err
