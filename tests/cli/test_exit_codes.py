"""The exit codes of docs/commands.md: which of two reasons decides, and the message that goes with it."""

import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from syncengine.errors import REFUSALS, ExitCode
from syncengine.resource import Key, Kind, Recorded
from syncengine.state.history import write_undone
from syncengine.state.records import UndoneChange, made_of
from syncengine.state.store import open_state
from tests.manifest.loading import write

from .program import REPOSITORY, Ended, Project, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs/commands.md"
ROW = re.compile(r"\| (?P<code>[03-9]) \| (?P<reason>[^|]+) \| `(?P<name>[a-z0-9-]+)` \| (?P<next>[0-9]) \|")
NO_ROOM = {"index": 0, "errorDescription": "no room for it"}
HELD = [tag("HELD-1"), tag("HELD-2")]
DENIES = 'rules: [{name: no-new-tags, for: tag, deny: action == "create", message: "No new tags."}]\n'


class Scene:
    """An applied project with one new tag, and methods that each add a reason to refuse its apply."""

    def __init__(self, project: Project, service: Service) -> None:
        self.project, self.service = project, service
        self.tags = [*HELD, tag("NEW-1")]
        self.words: list[str] = []
        self.environ: dict[str, str] = {}
        self.is_ungated = False
        project.settle(tags=HELD)
        assert project.run("plan", "--format", "json", "--report", "json=reviewed.json").code == 0

    def locked(self) -> None:
        assert self.project.run("state", "lock").code == 0
        self.words += ["--lock-timeout", "0s"]

    def gate(self) -> None:
        self.is_ungated = True

    def undone(self) -> None:
        """Record that a run created the new tag and was undone."""
        key = Key(Kind.TAG, "NEW-1")
        change = UndoneChange(key, made_of(None, Recorded(key)), "a-run", "another")
        with (
            open_state(self.project.loaded().state, write=True) as state,
            state.database.transaction() as connection,  # needs no lock of the state
        ):
            write_undone(connection, (), [change])

    def quarantined(self) -> None:
        """Another tag was refused before and is in quarantine."""
        self.tags.insert(0, tag("ASIDE-1"))
        self.project.wants(tags=[*HELD, tag("ASIDE-1")])
        self.service.fault("upsertTags", itemErrors=[NO_ROOM])
        assert self.project.run("apply", "-y").code == 3
        assert self.project.run("state", "quarantine", "tag/ASIDE-1", "--reason", "no room").code == 0

    def apply(self) -> Ended:
        self.project.wants(tags=self.tags[-1:] if self.is_ungated else self.tags)
        self.project.environ |= self.environ
        return self.project.apply_unapproved(*self.words)


REASONS: dict[str, tuple[Callable[[Scene], None], int]] = {
    "unknown-field": (lambda scene: scene.project.wants("bad.yaml", tags=[tag("BAD-1", descripton="x")]), 8),
    "other-service": (lambda scene: scene.environ.update(SYNCENGINE_BASE_URL="http://127.0.0.1:9/connect/api"), 7),
    "locked": (Scene.locked, 6),
    "policy-denied": (lambda scene: write(scene.project.folder, {"policies/no.yaml": DENIES}), 4),
    "undone": (Scene.undone, 4),
    "gate": (Scene.gate, 4),
    "more-than-reviewed": (lambda scene: scene.words.extend(("--reviewed", "reviewed.json")), 5),
    "unreachable": (lambda scene: scene.service.unavailable("teamInfo", times=None), 9),
    "refused": (lambda scene: scene.service.fault("upsertTags", itemErrors=[NO_ROOM], times=None), 3),
    "quarantined": (Scene.quarantined, 0),
}
"""Reasons in order of precedence: the first one that applies decides the exit code."""


@pytest.fixture
def scene(project: Project, service: Service) -> Scene:
    return Scene(project, service)


ORDERED = list(REASONS)
OF_THE_PLAN = {"policy-denied", "undone", "gate", "more-than-reviewed"}
"""Reasons that are found together, and told together."""


@pytest.mark.parametrize(("first", "second"), list(pairwise(ORDERED)))
def test_the_reason_of_higher_precedence_decides_the_exit_code(scene: Scene, first: str, second: str) -> None:
    """With two reasons at once, nothing is applied."""
    for name in sorted((first, second), key="quarantined".__ne__):  # quarantine needs an apply, so it comes first
        REASONS[name][0](scene)
    done = scene.apply()
    assert done.code == REASONS[first][1], done.out
    if {first, second} <= OF_THE_PLAN:
        assert {first, second} <= {*done.codes}
        told = [(each["message"], each["address"]) for each in done.document["diagnostics"]]
        assert len(told) == len({*told}), "each reason is told once"
    assert scene.service.tags() == ["HELD-1", "HELD-2"]


@pytest.mark.parametrize("name", REASONS)
def test_the_table_says_the_exit_code_and_the_next_plan(scene: Scene, name: str) -> None:
    """The exit codes of `apply` and of the plan after it are those of the table in docs/commands.md."""
    rows = {row["name"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    assert list(rows) == list(REASONS)
    prepare, code = REASONS[name]
    prepare(scene)
    done = scene.apply()
    planned = scene.project.run("plan", "--detailed-exitcode", environ=scene.environ)
    assert (done.code, int(rows[name]["code"]), int(rows[name]["next"])) == (code, code, planned.code)
    assert code == 3 or name in done.codes


def test_every_refusal_stands_in_the_table_by_the_precedence_of_exit_codes() -> None:
    """The page shows some of them, in the same order."""
    order = (8, 7, 6, 4, 5, 9, 3)
    codes = [kind.exit_code for kind in REFUSALS.values()]
    assert codes == sorted(codes, key=order.index)
    shown = [row["name"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8")) if row["name"] in REFUSALS]
    assert shown == [code for code in REFUSALS if code in shown]
    assert {REFUSALS[name].exit_code for name in shown} == {*map(ExitCode, (7, 6, 4, 5, 9))}


def test_a_stale_plan_without_its_approval_asks_for_that_first(scene: Scene) -> None:
    """Both problems are reported, once each, and 4 takes precedence; with the approval, `apply` exits with 5."""
    scene.project.wants(tags=scene.tags[-1:])
    assert scene.project.run("plan", "--out", "saved.plan").code == 0
    approvals = scene.project.approvals()
    scene.project.settle(tags=[tag("HELD-1", description="edited meanwhile"), HELD[1]])
    done = scene.project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes) == (4, ["stale-plan", "gate"])
    message = done.document["diagnostics"][0]["message"]
    assert scene.project.run("apply", "saved.plan").err.count(message[:60]) == 1
    assert scene.project.run("apply", "saved.plan", *approvals).code == 5


# --- messages


@pytest.mark.parametrize("place", ["option", "variable", "file"])
def test_the_output_names_where_an_approval_was_given(project: Project, service: Service, place: str) -> None:
    """With a valid approval the plan is not shown as blocked; text and JSON name the place of the approval."""
    project.settle(tags=[tag("HELD-1"), tag("HELD-2"), tag("HELD-3")])
    project.wants(tags=[tag("HELD-1")])
    text = project.gate()["approve"]
    words = ("--approve-deletes", text) if place == "option" else ()
    environ = {"SYNCENGINE_APPROVE_DELETES": f"1@000000000000,{text}"} if place == "variable" else {}
    if place == "file":
        project.settings("approvals:", "  - 1@000000000000", f"  - {text}")
    by = {"option": "--approve-deletes", "variable": "SYNCENGINE_APPROVE_DELETES", "file": "syncengine.yaml"}[place]
    line = 9 if place == "file" else None
    project.environ |= environ
    gate = project.gate(*words)
    assert (gate["tripped"], gate["approved"]) == (False, {"by": by, "line": line})
    assert project.run("plan", *words, "--out", "saved.json", "--detailed-exitcode").code == 2
    shown = project.run("show", "saved.json").out
    done = project.run("apply", "-y", *words)
    said = f"Approved: {by}{f':{line}' if line else ''} approves these removals."
    assert (done.code, said in done.out, "Blocked" in done.out) == (0, True, False)
    assert done.out.index(said) < done.out.index("Applied 2 changes")
    assert (said in shown) == (place != "option")


def test_4_is_a_new_state_in_a_job(project: Project) -> None:
    """In CI, a runner that lost its state would send everything again (docs/planning.md 7)."""
    project.wants(tags=[tag("NEW-1")])
    for off in ("False", ""):
        assert project.run("apply", "-y", environ={"CI": off}).code == 0
        shutil.rmtree(project.folder / ".syncengine")
    refused = project.run("apply", "-y", environ={"CI": "true"})
    assert (refused.code, "--new-state" in refused.err) == (4, True)
    assert project.run("apply", "-y", "--new-state", environ={"CI": "true"}).code == 0


def test_8_is_a_project_without_a_base_url_or_key(project: Project) -> None:
    """The program never falls back to the sandbox (docs/project-file.md)."""
    project.wants(tags=[tag("NEW-1")])
    assert project.run("apply", "-y", environ={"SYNCENGINE_API_KEY": ""}).code == 8
    file = project.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("baseUrl", "concurrency: 1 # "))
    done = project.run("apply", "-y")
    assert (done.code, "error[missing-setting]" in done.err) == (8, True), done.err


# --- answers that come from elsewhere than the service


TO_LOGIN = {"Location": "https://u:s3cret@new.example.com/login?key=s3cret"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
MOVED = "the service has moved to https://new.example.com/login ({}): check `service.baseUrl`"
UNREACHED: dict[str, tuple[str, dict[str, Any], str]] = {
    "503": ("teamInfo", {"status": 503, "headers": AT_ONCE}, "answered 503"),
    "404": ("teamInfo", {"status": 404}, "answered 404"),
    "another document": ("teamInfo", {"status": 200, "body": "<html>"}, "does not name the team"),
    "a page": (
        "teamInfo",
        {"status": 200, "body": "<html>s3cret", "headers": HTML},
        "a login page, a proxy or a portal",
    ),
    "no answer": ("teamInfo", {"drop": "before"}, "cannot be reached"),
    "301": ("upsertTags", {"status": 301, "headers": TO_LOGIN}, MOVED.format(301)),
    "308": ("upsertTags", {"status": 308, "headers": TO_LOGIN}, MOVED.format(308)),
    "nowhere": ("upsertTags", {"status": 302}, "is redirected (302): check `service.baseUrl`"),
    "407": ("upsertTags", {"status": 407}, "a proxy on the way asks for a login (407)"),
    "511": ("upsertTags", {"status": 511}, "the network asks for a login (511)"),
}


@pytest.mark.parametrize(("operation", "fault", "words"), UNREACHED.values(), ids=UNREACHED)
def test_9_is_a_service_that_was_not_reached(
    project: Project, service: Service, operation: str, fault: dict[str, Any], words: str
) -> None:
    """The message says what answered instead; nothing counts as refused, so that nothing can be quarantined. A redirect
    or a proxy is not asked again. The unchanged command works once the service answers."""
    project.wants(tags=[tag("A-1"), tag("B-1")])
    service.fault(operation, times=None, **fault)
    done = project.apply_unapproved()
    assert (done.code, done.codes) == (9, ["no-state", "unreachable"]), done.out
    message = done.document["diagnostics"][-1]["message"]
    assert (words in message, message.count("repeat unchanged")) == (True, int(operation == "teamInfo")), message
    assert "s3cret" not in done.out + done.err
    assert {*service.asked()} == {"teamInfo", operation}
    assert service.asked().count(operation) <= (6 if operation == "teamInfo" else 1)
    set_aside = ("state", "quarantine", "tag/A-1", "--reason", "x", "--until", "2999-01-01")
    assert project.run(*set_aside).code == 1
    service.heal()
    assert project.run("apply", "-y").code == 0


def test_what_was_applied_before_a_redirect_stays_recorded(project: Project, service: Service) -> None:
    """The redirect is reported, and the next run applies the rest, as after an answer 303, which decides nothing."""
    project.wants(tagCategories=[{"externalId": "acme"}], tags=[tag("A-1", category="acme")])
    service.fault("teamInfo", **UNREACHED["308"][1])
    done = project.apply()
    assert (done.code, f"nothing was sent: {UNREACHED['308'][2]}" in done.out) == (9, True), done.out
    assert "repeat unchanged" not in done.out
    service.fault("upsertTags", **UNREACHED["308"][1])
    done = project.apply()
    assert (done.code, UNREACHED["308"][2] in done.out + done.err) == (3, True), done.out
    assert "rejected" not in done.out + done.err
    service.fault("upsertTags", status=303)
    done = project.apply()
    assert (done.code, done.outcomes()) == (3, {"tag/A-1": "unknown"})
    assert project.apply().code == 0
    assert project.plan().changes == ()


AROUND: dict[str, tuple[dict[str, str], int, str]] = {
    "exceptions alone": ({"NO_PROXY": "localhost,127.0.0.1,fd00::/8,[::1"}, 0, ""),
    "SOCKS for others": ({"ALL_PROXY": "socks4://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}, 0, ""),
    "SOCKS": ({"ALL_PROXY": "socks4://127.0.0.1:9"}, 64, "ALL_PROXY names a kind of proxy that is not supported"),
    "no URL": ({"http_proxy": "http://[::1"}, 64, "http_proxy names no valid URL"),
    "nobody there": ({"HTTP_PROXY": "127.0.0.1:9"}, 9, "the proxy 127.0.0.1:9 (HTTP_PROXY) cannot be reached"),
    "no authorities": (
        {"SYNCENGINE_BASE_URL": "https://127.0.0.1:9/connect/api", "SSL_CERT_FILE": "/no/such/ca.pem"},
        64,
        "SSL_CERT_FILE names /no/such/ca.pem, which does not exist",
    ),
}


@pytest.mark.parametrize("kind", AROUND)
def test_a_bad_proxy_or_certificate_of_the_environment_is_named(project: Project, kind: str) -> None:
    """The message has the name of the variable, and does not speak of a bug. What is not used does no harm."""
    variables, code, words = AROUND[kind]
    project.wants(tags=[tag("A-1")])
    done = project.apply(environ=variables)
    assert (done.code, words in done.out) == (code, True), done.out
    assert ("bug" in done.out, "repeat unchanged" in done.out) == (False, code == 9)


def test_the_embedded_sandbox_is_behind_no_proxy(project: Project) -> None:
    project.wants(tags=[tag("A-1")])
    assert project.run("apply", "-y", "--sandbox", environ={"HTTP_PROXY": "http://127.0.0.1:9"}).code == 0
