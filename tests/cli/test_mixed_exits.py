"""The exit code of an apply that has two reasons to fail, and of the plan after it (table in docs/commands.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from syncengine.errors import REFUSALS, ExitCode
from syncengine.resource import Key, Kind, Recorded
from syncengine.state.history import write_undone
from syncengine.state.records import UndoneChange, made_of
from syncengine.state.store import open_state

from .program import REPOSITORY, Ended, Project, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs/commands.md"
ROW = re.compile(r"\| (?P<code>[03-9]) \| (?P<reason>[^|]+) \| `(?P<name>[a-z0-9-]+)` \| (?P<next>[0-9]) \|")
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

    def invalid(self) -> None:
        self.project.wants("bad.yaml", tags=[tag("BAD-1", descripton="x")])

    def other_service(self) -> None:
        self.environ["SYNCENGINE_BASE_URL"] = "http://127.0.0.1:9/connect/api"

    def locked(self) -> None:
        assert self.project.run("state", "lock").code == 0
        self.words += ["--lock-timeout", "0s"]

    def gate(self) -> None:
        self.is_ungated = True

    def policy_denied(self) -> None:
        folder = self.project.folder / "policies"
        folder.mkdir()
        (folder / "no.yaml").write_text(DENIES, encoding="utf-8")

    def undone(self) -> None:
        """Record that a run created the new tag and was undone."""
        key = Key(Kind.TAG, "NEW-1")
        change = UndoneChange(key, made_of(None, Recorded(key)), "a-run", "another")
        with (
            open_state(self.project.loaded().state, write=True) as state,
            state.database.transaction() as connection,  # needs no lock of the state
        ):
            write_undone(connection, (), [change])

    def more_than_reviewed(self) -> None:
        self.words += ["--reviewed", "reviewed.json"]

    def unreachable(self) -> None:
        self.service.fault("teamInfo", status=503, headers=AT_ONCE, times=None)

    def rejected(self) -> None:
        self.service.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "no room for it"}], times=None)

    def quarantined(self) -> None:
        """Another tag was refused before and is in quarantine."""
        self.tags.insert(0, tag("ASIDE-1"))
        self.project.wants(tags=[*HELD, tag("ASIDE-1")])
        self.service.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "no room for it"}])
        assert self.project.run("apply", "-y").code == 3
        assert self.project.run("state", "quarantine", "tag/ASIDE-1", "--reason", "no room").code == 0

    def apply(self) -> Ended:
        self.project.wants(tags=self.tags[-1:] if self.is_ungated else self.tags)
        return self.project.run("apply", "-y", "--format", "json", *self.words, environ=self.environ)


REASONS: dict[str, tuple[Callable[[Scene], None], int]] = {
    "unknown-field": (Scene.invalid, 8),
    "other-service": (Scene.other_service, 7),
    "locked": (Scene.locked, 6),
    "policy-denied": (Scene.policy_denied, 4),
    "undone": (Scene.undone, 4),
    "gate": (Scene.gate, 4),
    "more-than-reviewed": (Scene.more_than_reviewed, 5),
    "unreachable": (Scene.unreachable, 9),
    "refused": (Scene.rejected, 3),
    "quarantined": (Scene.quarantined, 0),
}
"""Reasons in order of precedence: the first one that applies decides the exit code."""


@pytest.fixture
def scene(project: Project, service: Service) -> Iterator[Scene]:
    yield Scene(project, service)
    service.heal()


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
    if code != 3:
        assert name in done.codes


def test_every_refusal_stands_in_the_table_by_the_precedence_of_exit_codes() -> None:
    """The page shows some of them, in the same order."""
    order = (8, 7, 6, 4, 5, 9, 3)
    codes = [kind.exit_code for kind in REFUSALS.values()]
    assert codes == sorted(codes, key=order.index)
    shown = [row["name"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8")) if row["name"] in REFUSALS]
    assert shown == [code for code in REFUSALS if code in shown]
    assert {REFUSALS[name].exit_code for name in shown} == {*map(ExitCode, (7, 6, 4, 5, 9))}


def test_a_stale_plan_without_its_approval_asks_for_that_first(scene: Scene) -> None:
    """Both problems are reported and 4 takes precedence; with the approval, `apply` exits with 5."""
    scene.project.wants(tags=scene.tags[-1:])
    assert scene.project.run("plan", "--out", "saved.plan").code == 0
    approvals = scene.project.approvals()
    scene.project.wants(tags=[tag("HELD-1", description="edited meanwhile"), HELD[1]])
    assert scene.project.run("apply", "-y").code == 0
    done = scene.project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes) == (4, ["stale-plan", "gate"])
    message = done.document["diagnostics"][0]["message"]
    done = scene.project.run("apply", "saved.plan")
    assert (done.code, done.err.count(message[:60])) == (4, 1), done.err
    assert scene.project.run("apply", "saved.plan", *approvals).code == 5
