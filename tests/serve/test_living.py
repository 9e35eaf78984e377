"""`serve` as a long-running process: it reconciles, reloads, stands by, answers probes, and ends."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import tag
from tests.posted_time.receiver import receiving
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

from .test_webhook import HOOK
from .world import CALLER_KEY, LEDGER, World

pytestmark = pytest.mark.slow

# --- reconciling


def test_manifests_are_applied_on_the_interval_and_what_may_not_be_is_logged(estate: World) -> None:
    """`serve` may start before the folder of manifests exists. Nothing is applied of an invalid manifest, of a plan
    that needs an approval, and of one that a new rule denies; delivery goes on, and what is corrected is applied."""
    estate.settings(every="1s", more="policy: {tagRemoval: retire}")
    began = time.time()
    served = estate.serve()
    served.says("no-manifests")

    def applied(*names: str, **given: str) -> None:
        estate.project.wants(tags=[tag(name, **given) for name in names])
        eventually(lambda: estate.service.tags() == list(names))

    applied("A", "B", "C", "D")
    estate.project.wants(tags=[tag("A", nmae="x")])
    assert "manifests/all.yaml:2:" in served.says("not-reconciled")[0]
    estate.project.wants(tags=[tag("D")])
    assert "--approve-deletes" in served.says("not-reconciled", 2)[1]
    (estate.project.folder / "policies").mkdir()
    rule = "rules: [{name: named, for: tag, deny: after.description is none}]"
    (estate.project.folder / "policies" / "all.yaml").write_text(rule, encoding="utf-8")
    estate.project.wants(tags=[tag(name) for name in "ABCDE"])
    assert "(rule named, policies/all.yaml:1)" in served.says("not-reconciled", 3)[2]
    eventually(estate.ready)
    estate.deliver("a")
    assert estate.ledger() == ["a"]
    assert estate.service.tags() == ["A", "B", "C", "D"]
    assert estate.told("deleteKeyword") == 0
    applied("A", "B", "C", "D", "E", description="e")
    eventually(lambda: float(estate.figures()["syncengine_reconciled_timestamp_seconds"]) >= began)
    assert any(message.endswith("; the next apply is in 1 s") for message in served.messages("reconciled"))


def test_a_warning_is_given_once_however_often_manifests_are_applied(estate: World) -> None:
    """Neither later rounds nor a reload repeat a warning that was logged."""
    estate.settings(every="1s", service=("endpoints: {deleteKeyword: {path: /wrong}}",))
    estate.project.wants(tags=[tag("A", keywords=["one", "two", "three", "four"])])
    url = estate.service.url.replace("127.0.0.1", "0.0.0.0")
    served = estate.serve(environ={"SYNCENGINE_BASE_URL": url})
    eventually(lambda: estate.service.tags() == ["A"])
    for keywords in (["one", "two", "three"], ["one", "two"]):
        rounds = len(served.messages("reconciled"))
        estate.project.wants(tags=[tag("A", keywords=keywords, description=str(keywords))])
        served.says("reconciled", rounds + 1)
    served.process.send_signal(signal.SIGHUP)
    served.says("configuration")
    served.says("leading", 2)
    codes = [line["code"] for line in served.lines() if line["event"] == "remark"]
    assert (codes.count("insecure-url"), len(codes)) == (1, len(set(codes)))


def test_changes_that_were_undone_are_told_once_and_not_made_again(estate: World) -> None:
    """Each round refuses them, until a person reverts the manifests."""
    estate.settings(every="500ms")
    for text in ("one", "two"):
        estate.project.settle(tags=[tag("A", description=text)])
    for words in (("plan", "--undo", "last", "--out", "undo.plan"), ("apply", "undo.plan")):
        assert estate.project.run(*words).code == 0
    served = estate.serve_ready()
    eventually(lambda: float(estate.figures().get('syncengine_reconciles_total{outcome="gate"}', 0)) >= 3)
    assert [served.events().count(event) for event in ("reconciled", "not-reconciled")] == [1, 1]


def test_a_reload_that_is_asked_for_during_the_start_ends_nothing(estate: World) -> None:
    """SIGHUP never ends the process, even while it still imports its libraries."""
    estate.settings(every="30s")
    command = [sys.executable, "-m", "syncengine", "serve"]
    environ = estate.project.surroundings({"CALLER_KEY": CALLER_KEY})
    with subprocess.Popen(command, cwd=estate.project.folder, env=environ, stderr=subprocess.DEVNULL) as process:
        eventually(lambda: "msgspec" in Path(f"/proc/{process.pid}/maps").read_text())  # while it imports the rest
        while not estate.ready():
            assert process.poll() is None
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        process.terminate()
        assert process.wait(30) == 0


def test_a_stop_in_the_middle_of_an_apply_waits_for_its_answer(estate: World) -> None:
    """The answer is recorded and the lock released, so that the next plan is empty."""
    estate.project.wants(tags=[tag("A")])
    estate.service.fault("upsertTags", delay=1)
    estate.service.fault("upsertTag", delay=1)
    served = estate.serve()
    eventually(lambda: estate.told("upsertTags") + estate.told("upsertTag") == 1)
    assert served.stop() == 0
    assert estate.service.tags() == ["A"]
    assert not estate.project.is_locked()
    assert estate.project.plan().changes == ()


@pytest.mark.parametrize("is_off", [True, False], ids=["mode: off", "no postedTime"])
def test_manifests_alone_need_no_inbox(estate: World, is_off: bool) -> None:
    """Manifests are reconciled, and nothing is registered or fetched. `off` is a string."""
    if is_off:
        estate.settings(posted="  mode: off", every="1s")
    else:
        estate.project.settings(f"serve: {{every: 1s, listen: '127.0.0.1:{estate.port}'}}")
    estate.project.wants(tags=[tag("A")])
    served = estate.serve()
    eventually(lambda: estate.service.tags() == ["A"])
    eventually(estate.ready)
    assert served.stop() == 0
    asked = set(estate.service.asked())
    assert not asked & {"fetchPostedTime", "registerFetchClient", "registerWebhook", "registerConnector"}
    assert estate.connection()["mechanism"] is None


# --- reloading


def test_a_changed_configuration_takes_effect_unless_it_is_invalid(estate: World) -> None:
    """A template in a file of its own counts, too. The log names file and line of an error, but quotes no new setting;
    the old configuration stays in use, also if only the service refuses the new one."""
    template = estate.project.folder / "narrative.j2"
    template.write_text("one")
    sinks = LEDGER.replace("{{ tag.name }}", "{{ narrative }}")
    narrated = "  narrative: {template: narrative.j2}"
    estate.settings(sinks=sinks, posted=narrated)
    served = estate.serve_ready()
    estate.deliver("a")
    template.write_text("two")
    served.says("leading", 2)
    estate.deliver("b")
    assert estate.matters() == ["one", "two"]
    for mistake in ("unmatched: perhaps", 'refuse: [{when: "tga", message: No.}]'):
        before = len(served.messages("configuration"))
        estate.settings(sinks=sinks, posted=f"{narrated}\n  {mistake}")
        message = served.says("configuration", before + 1)[before]
        assert "the old one stays in use" in message
        assert "syncengine.yaml:" in message
        estate.deliver(mistake[:3])
        assert estate.answer("/readyz")["configuration"]
    before = len(served.messages("configuration"))
    estate.settings(sinks=sinks, posted=narrated, service=("team: Others",))
    assert "service.team" in served.says("configuration", before + 2)[before + 1]
    eventually(estate.ready)
    estate.deliver("c")
    before = len(served.messages("configuration"))
    estate.settings(posted='  refuse: [{when: "not tag", message: New rule.}]')
    message = served.says("configuration", before + 1)[before]
    assert "refuse[0].message was added" in message, message
    assert "New rule" not in message
    eventually(estate.ready)
    estate.post("d", tag=None, tags=[])
    eventually(lambda: estate.states()["d"] == "failed")
    assert estate.posted()["d"]["message"] == "New rule."
    assert estate.ledger() == ["a", "b", "c", "ref", "unm"]


def test_a_reload_in_an_outage_keeps_the_reported_failure(estate: World) -> None:
    """The service and the log are not told that the sink has recovered until it takes a group."""
    with receiving() as pms:
        pms.answer = lambda got: (500 if got.method == "POST" else 200, {})
        sink = f"    - {{name: pms, http: {{url: '{pms.url}', json: {{}}}}}}\n"
        estate.settings(sinks=sink)
        served = estate.serve_ready()
        rescinded = estate.told("rescindHealthFailure")
        estate.post("a")
        eventually(estate.health)
        estate.settings(sinks=sink, posted="  unmatched: accept")
        served.says("leading", 2)
        eventually(lambda: estate.told("reportHealthFailure") == 2)
        assert estate.told("rescindHealthFailure") == rescinded
        assert "sink-up" not in served.events()
        pms.answer = lambda got: (201, {})
        eventually(lambda: estate.health() is None)
        estate.all_succeed()


def test_a_reload_to_another_target_waits_for_no_time_that_the_former_asked_for(estate: World) -> None:
    sink = "    - {{name: pms, http: {{url: '{url}', json: {{}}}}}}\n"
    with receiving() as busy, receiving() as well:
        busy.answer, busy.headers["Retry-After"] = lambda got: (429 if got.method == "POST" else 200, {}), "240"
        estate.settings(sinks=sink.format(url=busy.url))
        served = estate.serve_ready()
        estate.post("a")
        eventually(lambda: busy.got)
        estate.settings(sinks=sink.format(url=well.url))
        served.says("leading", 2)
        estate.all_succeed()


# --- standing by


def test_a_second_serve_stands_by_and_takes_over_when_the_first_is_killed(estate: World) -> None:
    """Only one `serve` works on an inbox: the second delivers nothing until the first is gone. A standby that is
    stopped ends at once."""
    first = estate.serve()
    first.says("leading")
    second, third = (estate.serve("--listen", f"127.0.0.1:{unused_port()}") for _ in range(2))
    assert "process" in second.says("standby")[0]
    third.says("standby")
    assert third.stop() == 0
    eventually(estate.ready)
    estate.deliver("a")
    assert "taken" not in second.events()
    first.stop(signal.SIGKILL)
    second.says("leading")
    estate.deliver("b")
    assert estate.ledger() == ["a", "b"]


# --- probes


def test_tags_that_drift_are_counted_and_not_named(estate: World) -> None:
    """Drift is counted from delivered groups, without extra requests; a tag that is sent again no longer counts."""
    estate.project.settle(tags=[tag("ACME", description="declared"), tag("BASF")])
    estate.serve_ready()
    estate.post("a", tag=None, tags=[{"name": "ACME", "description": "edited"}])
    estate.post("b", tag=None, tags=[{"name": "NEW-7"}])
    estate.deliver("c", tag=None, tags=[{"name": "BASF"}])
    counted = [f'syncengine_drift_tags{{kind="{kind}"}}' for kind in ("unknown", "retired-in-use", "differs")]
    figures = estate.figures()
    assert [figures[name] for name in counted] == ["1.0", "0.0", "1.0"]
    assert "NEW-7" not in "".join(figures)
    assert estate.project.run("apply", "-y", "--reassert").code == 0
    assert [estate.figures()[name] for name in counted] == ["1.0", "0.0", "0.0"]
    assert estate.told("listPostedTime") == 0


@pytest.mark.parametrize("setting", ["serve.listen", "postedTime.webhook.bind"])
def test_an_address_that_is_taken_ends_the_start(estate: World, setting: str) -> None:
    """The error names the address and its setting; nothing is registered or applied."""
    taken = {"serve.listen": estate.port, "postedTime.webhook.bind": unused_port()}[setting]
    estate.settings(posted=HOOK.format(port=taken) if taken != estate.port else "")
    with socket.create_server(("127.0.0.1", taken)):
        served = estate.serve()
        assert served.ends() == 1
        assert f"cannot listen on 127.0.0.1:{taken}" in served.messages("ended")[0]
        assert setting in served.messages("ended")[0]
    assert [estate.told(each) for each in ("registerConnector", "registerWebhook", "upsertTags")] == [0, 0, 0]
    assert estate.project.run("serve", "--listen", "nowhere").code == 64


def test_another_address_of_the_probes_counts_from_the_next_start(estate: World) -> None:
    """The other new settings count at once, and the log says so."""
    served = estate.serve_ready()
    before, estate.port = estate.port, unused_port()
    estate.settings()
    assert served.says("address") == ["the changed `serve.listen` counts from the next start"]
    after, estate.port = estate.port, before
    served.says("leading", 2)
    eventually(estate.ready)
    estate.port = after
    assert served.stop() == 0
    estate.serve_ready()


# --- answers of the service


ENDS: dict[str, tuple[dict[str, Any], dict[str, str], int, str]] = {
    "a foreign webhook": ({}, {}, 1, "unregister webhook"),
    "a foreign webhook for a webhook": ({"posted": HOOK.format(port=unused_port())}, {}, 1, "did not register"),
    "another team": ({"service": ("team: Others",)}, {}, 7, "Others"),
    "another key": ({}, {"SYNCENGINE_API_KEY": "another-key"}, 7, "key"),
    "an unknown name": ({"sinks": LEDGER.replace("tag.name", "tag.nmae")}, {}, 8, "syncengine.yaml:"),
}


@pytest.mark.parametrize(("settings", "environ", "code", "words"), ENDS.values(), ids=ENDS)
def test_a_start_that_can_lead_to_nothing_ends(
    estate: World, settings: dict[str, Any], environ: dict[str, str], code: int, words: str
) -> None:
    """A team has one webhook, and that of another connector stays registered. Another team's time does not get into
    this ledger. A template is checked before any group is fetched."""
    estate.subscribe_another()
    estate.settings(**settings)
    served = estate.serve(environ=environ)
    assert served.ends() == code
    assert words in served.messages("ended")[0]
    assert code == 1 or estate.told("registerFetchClient") == 0
    assert estate.connection()["callbackUrl"] == "http://127.0.0.1:9/theirs"


def test_nothing_is_applied_while_the_project_file_on_disk_is_invalid(estate: World) -> None:
    """While the project file is invalid, manifests are not applied and posted time is still delivered; once it is
    valid, the new policy counts."""
    estate.settings(every="500ms", more="policy: {tagRemoval: retire}")
    estate.project.wants(tags=[tag("ACME", keywords=["acme words"]), tag("GOES", keywords=["other words"])])
    served = estate.serve()
    eventually(lambda: "GOES" in estate.service.tags())
    estate.settings(every="500ms", more="policy: {tagRemoval: nonsense}")
    estate.project.wants(tags=[tag("ACME", keywords=["acme words"])])
    (message,) = served.says("configuration")
    assert "manifests are not applied until it is valid" in message
    eventually(lambda: float(estate.figures().get('syncengine_reconciles_total{outcome="configuration"}', 0)) >= 2)
    readiness = estate.answer("/readyz")
    assert (readiness["reconciled"], readiness["configuration"] is None) == ("configuration", False)
    estate.post("g-1")
    eventually(lambda: estate.ledger() == ["g-1"])
    estate.settings(every="500ms", more="policy: {tagRemoval: forget}")
    eventually(lambda: estate.project.rows()["tag/GOES"]["status"] == "released")
    assert "other words" in {word for held in estate.service.state()["tags"] for word in held["keywords"]}
    eventually(lambda: estate.answer("/readyz")["configuration"] is None)
    assert served.stop() == 0
