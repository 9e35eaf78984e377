"""`time list`, `pull`, `register` and `unregister` as processes, against the sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from syncengine.state.inbox import open_inbox
from tests.cli.service import AT_ONCE, KEY
from tests.posted_time.receiver import Receiver, receiving
from tests.serve.world import LEDGER, World, eventually, world
from tests.settings.test_schema import judge
from tests.support import loopback

pytestmark = pytest.mark.slow


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.service.choose(holdSeconds=0)
        yield made


def test_a_pull_fetches_delivers_and_acknowledges(estate: World) -> None:
    """The group is in the ledger, the service has the status, and the JSON document reports both.

    The fetch itself registers the fetch client.
    """
    done = estate.project.run("time", "pull")
    assert (done.code, done.out) == (0, "There is no posted time to fetch.\n")
    assert estate.connection()["mechanism"] == "fetch"
    estate.post("a", "b")
    done = estate.project.run("time", "pull", "--format", "json")
    assert (done.code, estate.ledger()) == (0, ["a", "b"])
    judge("pull.schema.json").validate(done.document)
    assert [(g["groupId"], g["status"], g["acknowledged"]) for g in done.document["groups"]] == [
        ("a", "SUCCESS", True),
        ("b", "SUCCESS", True),
    ]
    assert set(estate.states().values()) == {"success"}


def test_a_pull_acknowledges_what_an_earlier_one_could_not(estate: World) -> None:
    """`pull` exits with 3 while the service accepts no status; the next pull sends it and delivers nothing twice."""
    estate.project.run("time", "register")
    estate.post("a")
    estate.service.choose(reofferSeconds=3600)
    estate.service.fault("updatePostedTimeStatus", times=None, status=400)
    assert estate.project.run("time", "pull").code == 3
    estate.service.heal()
    done = estate.project.run("time", "pull", "--format", "json")
    assert done.document["acknowledged"] == [{"groupId": "a", "status": "SUCCESS"}]
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})


def test_a_pull_takes_at_most_limit_groups(estate: World) -> None:
    """A limit out of range is a usage error, and no request is sent."""
    estate.project.run("time", "register")
    estate.post("a", "b", "c")
    estate.project.run("time", "pull", "--limit", "2")
    assert estate.ledger() == ["a", "b"]
    before = len(estate.service.asked())
    assert estate.project.run("time", "pull", "--limit", "0").code == 64
    assert estate.project.run("time", "list", "--limit", "501").code == 64
    assert len(estate.service.asked()) == before


def test_a_pull_while_serve_runs_exits_with_6(estate: World) -> None:
    """Only one process may hold the inbox; the message names the holder."""
    estate.serve().says("leading")
    done = estate.project.run("time", "pull")
    assert done.code == 6
    assert "serve" in done.err


@pytest.mark.parametrize("words", [("pull",), ("register",), ("retry", "a")])
def test_a_team_other_than_the_configured_one_exits_with_7(estate: World, words: tuple[str, ...]) -> None:
    """Nothing is registered, fetched or delivered."""
    _refused(estate, "a")
    before = estate.service.asked()
    estate.settings(service=("team: Others",))
    done = estate.project.run("time", *words)
    assert (done.code, "Others" in done.err) == (7, True)
    assert set(estate.service.asked()[len(before) :]) == {"teamInfo"}
    assert estate.ledger() == []


@pytest.mark.parametrize("words", [("pull",), ("register",)])
def test_a_project_without_manifests_remembers_its_team(estate: World, words: tuple[str, ...]) -> None:
    """The project belongs to the first team that it met; the time of another team is not fetched."""
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
    [{"status": 204}, {"status": 200, "body": ["odd"]}, {"status": 500, "headers": AT_ONCE}],
    ids=["204", "invalid", "500"],
)
def test_a_pull_goes_on_without_the_connector_configuration(estate: World, fault: dict[str, Any]) -> None:
    """Time is delivered even if the registration fails, as with `serve`."""
    estate.project.run("time", "register")
    estate.post("a")
    estate.service.fault("registerConnector", times=None, **fault)
    done = estate.project.run("time", "pull")
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})
    assert ("registration" in done.err) == (fault["status"] != 204)


def test_a_pull_fetches_nothing_while_a_sink_is_down(estate: World) -> None:
    """It exits with 3 and names the sink. A group that is not fetched does not fail for its user."""
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
def test_a_pull_with_mode_off_or_webhook_is_a_usage_error(estate: World, mode: str) -> None:
    """The message says which setting to change, and no request is sent to the service."""
    hook = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
    estate.settings(posted=f"  mode: {mode}\n{hook}")
    done = estate.project.run("time", "pull", environ={"CALLER_KEY": "k-of-a-test"})
    assert (done.code, f"`postedTime.mode` is {mode}" in done.err, "mode: fetch" in done.err) == (64, True, True)
    assert (estate.service.asked(), estate.connection()["mechanism"]) == ([], None)


@contextmanager
def taking_nothing(estate: World) -> Iterator[Receiver]:
    """A receiver that answers 503 to each POST and 404 to other requests."""
    with receiving() as pms:
        pms.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
        estate.settings(sinks=f"    - {{name: pms, http: {{url: '{pms.url}', json: {{}}}}}}\n")
        estate.project.run("time", "register")
        yield pms


def test_pulls_fetch_nothing_while_a_sink_answers_503_and_report_it(estate: World) -> None:
    """Probes of its address succeed, but deliveries fail: health is reported, and each pull tries one group only."""
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


def test_a_single_503_is_retried_and_not_reported(estate: World) -> None:
    """The group is tried once more before the service gets its status."""
    with taking_nothing(estate) as pms:
        answers = iter([503])
        pms.answer = lambda got: (next(answers, 201) if got.method == "POST" else 404, {})
        estate.post("a")
        done = estate.project.run("time", "pull", "--format", "json")
        assert (done.code, [group["status"] for group in done.document["groups"]]) == (0, ["SUCCESS"])
        assert [told["status"] for told in estate.posted()["a"]["told"]] == ["SUCCESS"]
    assert estate.told("reportHealthFailure") == 0


def test_a_pull_delivers_queued_retries_and_reduces_old_groups(estate: World) -> None:
    """Without a `serve`, no other process would do that."""
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
    """Put a group into the inbox that a rule refuses, and then remove the rule."""
    estate.settings(posted="  refuse: [{when: tag, message: Not now.}]")
    estate.project.run("time", "register")
    estate.post(id)
    assert estate.project.run("time", "pull").code == 0
    estate.settings()


def _is_reduced(estate: World, id: str) -> bool:
    with open_inbox(str(estate.project.folder / ".syncengine/state.db"), write=False) as inbox:
        entry = inbox.entry(id)
    return entry is not None and entry.body is None


def test_a_retry_uses_the_connector_configuration(estate: World) -> None:
    """It registers only if there is something to deliver; if that fails, it uses the last known configuration."""
    estate.service.choose(connectorConfiguration={"DESK": "desk 7"})
    _refused(estate, "a")
    estate.settings(sinks=LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK or 'none' }}"))
    assert estate.project.run("time", "retry", "a").code == 0
    before = estate.told("registerConnector")
    assert estate.project.run("time", "retry", "--state", "refused").code == 0
    assert estate.told("registerConnector") == before
    _refused(estate, "b")
    estate.settings(sinks=LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK or 'none' }}"))
    estate.service.fault("registerConnector", times=None, status=500, headers=AT_ONCE)
    done = estate.project.run("time", "retry", "b")
    assert (done.code, "could not be registered" in done.err) == (0, True)
    assert estate.matters() == ["desk 7", "desk 7"]


def test_register_stores_the_connector_configuration(estate: World) -> None:
    """`preview` and `pull` use the stored configuration until the service sends another one."""
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
    estate.service.fault("registerConnector", times=None, status=500, headers=AT_ONCE)
    assert (rehearsed(), "Worked:" in pulled("a")) == (True, True)
    estate.service.heal()
    estate.service.choose(connectorConfiguration={})
    assert "Worked:" not in pulled("b")
    assert not rehearsed()


def test_all_groups_are_listed_each_once(estate: World) -> None:
    """Posted and pending groups are listed across pages; `--since` leaves out older ones."""
    estate.project.run("time", "register")
    estate.post(*[f"g{number}" for number in range(7)])
    done = estate.project.run("time", "list", "--limit", "3", "--format", "json")
    assert sorted(group["groupId"] for group in done.document["groups"]) == [f"g{number}" for number in range(7)]
    estate.post("old", submissionTime=1_600_000_000_000)
    assert "old" in estate.project.run("time", "list").out
    assert "old" not in estate.project.run("time", "list", "--since", "30d").out


def test_the_other_mechanism_is_unregistered_first(estate: World) -> None:
    """`register` changes from webhook to fetch and back."""
    hook = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
    estate.settings(posted=hook)
    environ = {"CALLER_KEY": "k-of-a-test"}
    for mechanism in ("webhook", "fetch", "webhook"):
        done = estate.project.run("time", "register", mechanism, "--format", "json", environ=environ)
        assert (done.code, done.document["registered"]) == (0, mechanism)
        judge("mechanism.schema.json").validate(done.document)
        assert estate.connection()["mechanism"] == mechanism


def test_register_says_if_a_client_is_already_registered(estate: World) -> None:
    """If this project did not register it, the output repeats the answer of the service."""
    assert estate.project.run("time", "register").out == "Registered a fetch client.\n"
    again = estate.project.run("time", "register")
    assert (again.code, again.out) == (0, "Nothing changed: this project has already registered a fetch client.\n")
    shutil.rmtree(estate.project.folder / ".syncengine")
    foreign = estate.project.run("time", "register")
    assert (foreign.code, foreign.out.startswith("Nothing changed: the team already has a fetch client")) == (0, True)
    assert "the team already has a fetch client" in foreign.out


def test_unregister_finds_the_registered_mechanism(estate: World) -> None:
    """A second `unregister` changes nothing and exits with 0."""
    estate.project.run("time", "register")
    ended = estate.project.run("time", "unregister", "--format", "json")
    assert ended.document["unregistered"] == "fetch client"
    assert estate.connection()["mechanism"] is None
    again = estate.project.run("time", "unregister", "webhook", "--format", "json")
    assert (again.code, again.document["unregistered"]) == (0, None)
    for done in (ended, again):
        judge("mechanism.schema.json").validate(done.document)


def test_unregister_names_the_mechanism_that_is_registered_instead(estate: World) -> None:
    """The webhook stays registered, and the output says how to unregister it."""
    hook = {"callbackUrl": "http://127.0.0.1:9/hook", "callerKey": "theirs"}
    loopback.post(f"{estate.service.url}/postedtime/subscribe", json=hook, headers={"x-api-key": KEY})
    done = estate.project.run("time", "unregister", "fetch")
    assert (done.code, "no fetch client" in done.out, "time unregister webhook" in done.out) == (0, True, True)
    assert estate.connection()["mechanism"] == "webhook"
    assert estate.project.run("time", "unregister", "webhook").out == "Unregistered the webhook.\n"


def test_a_pull_explains_a_webhook_that_prevents_fetching(estate: World) -> None:
    """On a 409 it exits with 1 and names the command that unregisters the webhook."""
    estate.service.fault("fetchPostedTime", status=409, body="has a webhook")
    done = estate.project.run("time", "pull")
    assert done.code == 1
    assert "unregister webhook" in done.err
