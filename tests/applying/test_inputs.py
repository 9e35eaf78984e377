"""An apply applies the inputs that it has read, whatever changes meanwhile (docs/planning.md 2.8)."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from syncengine.apply.report import Waiting
from syncengine.engine import Application, Applied
from syncengine.errors import Severity, StalePlan
from syncengine.plan import inputs
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.project.runner import Holder
from syncengine.state.store import State, open_state
from tests.cli.program import ended
from tests.manifest.loading import write
from tests.posted_time.receiver import Got, receiving
from tests.support.git import commit_all, git

from .bench import Bench, tag

Edit = Callable[[Bench], object]
STAYS = "  - {name: STAYS, keywords: [lasting words, lasting phrases, lasting names]}\n"
"""So that what the edits take is no more than half of all keywords, which would need an approval."""

PLAIN = f"tags:\n{STAYS}  - {{name: PLAIN, keywords: [first words]}}\n  - {{name: GOES, keywords: [other words]}}\n"
OTHER = f"tags:\n{STAYS}  - {{name: PLAIN, keywords: [second words]}}\n  - {{name: GOES}}\n"
TEMPLATE = "tags:\n{% include 'part.j2' %}\n"
BLOCK = (
    "generate:\n  - forEach: {csv: ../rows.csv}\n    tags: [{name: '{{ row.name }}', description: '{{ var.who }}'}]\n"
)


def rich(bench: Bench) -> Bench:
    """Set up and apply a project in which each kind of input is a file of its own; another is not yet applied."""
    write(
        bench.folder,
        {
            "manifests/plain.yaml": PLAIN,
            "manifests/block.yaml": BLOCK,
            "manifests/text.yaml.j2": TEMPLATE,
            "part.j2": "  - {name: INCLUDED, description: one}\n",
            "rows.csv": "name\nROW\n",
            "vars.yaml": "who: one\n",
        },
    )
    assert applied(bench).exit_code == 0
    write(bench.folder, {"manifests/extra.yaml": "tags: [{name: EXTRA}]\n"})
    return bench


def loaded(bench: Bench) -> Project:
    files = [bench.folder / "vars.yaml"] if (bench.folder / "vars.yaml").exists() else []
    return load_project(folder=bench.folder, environ=bench.environ, variable_files=files)


def applied(bench: Bench, **runtime: Any) -> Applied:
    project = loaded(bench)
    running = Runtime(bench.environ, **runtime)
    return Application(project, PlanRequest("apply"), running, lambda: nullcontext(project.base_url())).execute()


def planned(bench: Bench) -> list[str]:
    """Plan in this process, and return the names of what changes."""
    plan = make_plan(loaded(bench), PlanRequest("plan"), Runtime(bench.environ))
    return sorted(change.key.name for change in plan.changes)


def codes(done: Applied) -> list[str]:
    return [each.code for each in done.report.diagnostics if each.severity is Severity.ERROR]


def edit(name: str, text: str) -> Edit:
    return lambda bench: write(bench.folder, {name: text})


def confirming(bench: Bench, *edits: Edit) -> Callable[[object], bool]:
    """Confirm a plan after these edits."""

    def confirm(plan: object) -> bool:
        for change in edits:
            change(bench)
        return True

    return confirm


EDITS: dict[str, Edit] = {
    "a manifest": edit("manifests/plain.yaml", OTHER),
    "a new manifest": edit("manifests/new.yaml", "tags: [{name: NEW}]\n"),
    "a removed manifest": lambda bench: (bench.folder / "manifests/extra.yaml").unlink(),
    "a data file": edit("rows.csv", "name\nROW\nMORE\n"),
    "an included template": edit("part.j2", "  - {name: INCLUDED, description: two}\n"),
    "a variable file": edit("vars.yaml", "who: two\n"),
}


@contextmanager
def held(bench: Bench, meanwhile: Callable[[State], object]) -> Iterator[Callable[[Any], None]]:
    """Hold the lock as another run until the apply waits for it; then call `meanwhile` and free the lock."""
    with open_state(loaded(bench).state, write=True) as state:
        lease = state.lock(Holder.here("apply", {}), wait=1, request_timeout=1)
        lease.__enter__()
        free = threading.Event()

        def tell(event: Any) -> None:
            if isinstance(event, Waiting) and not free.is_set():
                meanwhile(state)
                free.set()
                lease.__exit__(None, None, None)

        yield tell
        assert free.is_set(), "nothing waited for the lock"


@contextmanager
def nothing_sent(bench: Bench) -> Iterator[None]:
    seen = bench.sandbox.last_request()
    yield
    assert {request["operation"] for request in bench.sandbox.requests(seen)} <= {"teamInfo"}


def test_what_changes_while_the_lock_is_waited_for_is_read_afterwards(bench: Bench) -> None:
    """A folder that is pulled while another run holds the lock is applied with the pulled files, of whatever kind."""
    rich(bench)
    with held(bench, confirming(bench, *EDITS.values())) as tell:
        assert applied(bench, tell=tell).exit_code == 0
    assert set(bench.sandbox.tags()) == {"STAYS", "PLAIN", "GOES", "INCLUDED", "ROW", "MORE", "NEW"}
    assert planned(bench) == []


@pytest.mark.parametrize(("before", "after"), [("retire", "forget"), ("forget", "retire")])
def test_the_project_file_counts_as_it_stands_after_the_wait(bench: Bench, before: str, after: str) -> None:
    """A policy and a removal from the same merge take effect together."""
    bench.settings(f"policy: {{tagRemoval: {before}}}")
    rich(bench)
    without = edit("manifests/plain.yaml", PLAIN.partition("  - {name: GOES")[0])
    merge = confirming(bench, without, lambda bench: bench.settings(f"policy: {{tagRemoval: {after}}}"))
    with held(bench, merge) as tell:
        assert applied(bench, tell=tell).exit_code == 0
    assert ("other words" in bench.sandbox.tag("GOES")["keywords"]) == (after == "forget")


@pytest.mark.parametrize(
    ("change", "code", "error"),
    [
        (edit("syncengine.yaml", "version: 1\nnonsense: true\n"), 8, "unknown-field"),
        (lambda bench: bench.settings("state: other.db"), 5, "inputs-changed"),
    ],
    ids=["invalid", "of another state"],
)
def test_a_project_file_that_cannot_count_after_the_wait_is_refused(
    bench: Bench, change: Edit, code: int, error: str
) -> None:
    """The run does not plan with the settings that it read before, and holds the lock of one state only."""
    rich(bench)
    with nothing_sent(bench), held(bench, confirming(bench, change)) as tell:
        done = applied(bench, tell=tell)
    assert (done.exit_code, error in codes(done), (bench.folder / "other.db").exists()) == (code, True, False)


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_what_a_person_confirmed_is_what_is_applied(bench: Bench, change: Edit) -> None:
    """An edit during the confirmation ends the run with exit 5, and nothing is sent."""
    rich(bench)
    with nothing_sent(bench):
        done = applied(bench, confirm=confirming(bench, change))
    assert (done.exit_code, codes(done)) == (5, ["inputs-changed"])
    assert applied(bench).exit_code == 0
    assert planned(bench) == []


def test_an_edit_that_does_not_change_the_plan_is_no_obstacle(bench: Bench) -> None:
    """A comment, a blank line or a resource in another file does not change the plan."""
    rich(bench)
    write(bench.folder, {"manifests/plain.yaml": OTHER})
    text = f"# moved\n\ntags:\n{STAYS}  - {{name: PLAIN, keywords: [second words]}}\n"
    moves = edit("manifests/plain.yaml", text), edit("manifests/other.yaml", "tags:\n  - {name: GOES}\n")
    assert applied(bench, confirm=confirming(bench, *moves)).exit_code == 0
    assert "second words" in bench.sandbox.tag("PLAIN")["keywords"]


def test_a_rule_that_is_added_during_the_confirmation_applies(bench: Bench) -> None:
    rich(bench)
    rule = "rules:\n  - {name: nothing-new, for: tag, deny: \"action == 'create'\"}\n"
    done = applied(bench, confirm=confirming(bench, edit("policies/rules.yaml", rule)))
    assert (done.exit_code, codes(done)) == (4, ["policy-denied"])
    assert "EXTRA" not in bench.sandbox.tags()


def test_after_the_wait_for_late_calls_the_files_are_compared_again(bench: Bench) -> None:
    """While the run waits for a late call, the plan may have become out of date."""
    bench.settle(tags=[tag("LATE", description="one")])
    bench.settings(service=("landing: 2s",))
    bench.sandbox.unavailable("upsertTags")
    assert bench.apply(tags=[tag("LATE", description="two")]).exit_code != 0
    bench.wants(tags=[tag("LATE", description="three")])
    waits = []

    def tell(event: Any) -> None:
        if isinstance(event, Waiting):
            waits.append(event)
            bench.wants(tags=[tag("LATE", description="four")])

    with nothing_sent(bench):
        done = applied(bench, tell=tell)
    assert (len(waits), done.exit_code, codes(done)) == (1, 5, ["inputs-changed"])
    assert applied(bench).exit_code == 0
    assert bench.sandbox.tag("LATE")["description"] == "four"


def test_of_two_applies_the_second_waits_and_finds_nothing_to_do(bench: Bench) -> None:
    """As processes: the lock is taken before planning, so that the second does not repeat the first one's work."""
    bench.wants(tags=[tag("T-1")])
    bench.sandbox.fault("upsertTags", delay=0.3)
    processes = [bench.program.fork("apply", "-y", "--format", "json") for _ in range(2)]
    requests = [ended(process).document["summary"]["requests"] for process in processes]
    assert sorted(requests) == [0, 1]
    bench.assert_at_rest()


# --- plans, which something changes while they are read


MATTERS = "generate:\n  - forEach: {http: {source: crm, path: m}}\n    tags: [{name: '{{ row.name }}'}]\n"
A_ROW = '[{"name": "ROW"}]'


@contextmanager
def asked(bench: Bench, answer: Callable[[int], str] = lambda number: A_ROW) -> Iterator[list[Got]]:
    """Serve a source of a manifest that gives its n-th answer to the n-th request, and record the requests."""
    write(bench.folder, {"manifests/m.yaml": MATTERS})
    with receiving() as receiver:
        receiver.answer = lambda got: (200, answer(len(receiver.got)).encode())
        receiver.headers["Content-Type"] = "application/json"
        bench.settings(f"sources: {{crm: {{http: {{url: '{receiver.url}'}}}}}}")
        yield receiver.got


def moved(bench: Bench, times: int) -> Callable[[int], str]:
    """Move a tag from a file that was read already to one that is read later, at each of the first requests."""
    write(bench.folder, {"manifests/a.yaml": "tags: [{name: MOVED}]\n"})

    def answer(number: int) -> str:
        if number <= times:
            left, found = ("a", "z") if number % 2 else ("z", "a")
            write(bench.folder, {f"manifests/{left}.yaml": f"tags: [{{name: STAYS-{left}-{number}}}]\n"})
            write(bench.folder, {f"manifests/{found}.yaml": "tags: [{name: MOVED}]\n"})
        return A_ROW

    return answer


def test_a_plan_is_made_again_while_files_move(bench: Bench) -> None:
    """Half of a checkout is never planned as the whole, and the source is queried once for each plan."""
    with asked(bench, moved(bench, times=1)) as questions:
        assert planned(bench) == ["MOVED", "ROW", "STAYS-a-1"]
    assert len(questions) == 2


def test_a_plan_of_files_that_keep_changing_is_refused(bench: Bench) -> None:
    """The run gives up after four plans."""
    refused = pytest.raises(StalePlan, match=r"manifests/a\.yaml")
    with asked(bench, moved(bench, times=99)) as questions, refused as refusal:
        planned(bench)
    assert (refusal.value.code, len(questions)) == ("inputs-changed", 4)


def test_files_that_keep_changing_without_changing_the_plan_are_no_obstacle(bench: Bench) -> None:
    """A program that exports the same rows again and again does not stop the run."""

    def answer(number: int) -> str:
        write(bench.folder, {"manifests/a.yaml": f"# export {number}\ntags: [{{name: SAME}}]\n"})
        return A_ROW

    answer(0)
    with asked(bench, answer) as questions:
        assert planned(bench) == ["ROW", "SAME"]
    assert len(questions) == 4


@pytest.mark.parametrize(("text", "code"), [("# a comment\n", 0), ("tags: [{name: MORE}]\n", 5)])
def test_a_service_is_queried_anew_where_files_change_before_the_first_call(bench: Bench, text: str, code: int) -> None:
    """The rows of the source are compared too; the apply goes on, or is refused with an explanation."""
    with asked(bench) as questions:
        done = applied(bench, confirm=confirming(bench, edit("manifests/more.yaml", text)))
    assert (done.exit_code, len(questions)) == (code, 2)


@pytest.mark.parametrize("writes", [False, True])
def test_a_source_is_queried_anew_after_another_run(bench: Bench, writes: bool) -> None:
    """Older rows could undo what the other run applied; if that run wrote nothing, they are still used."""

    def other_run(state: State) -> None:
        facts = state.facts()
        if writes:
            state.set_facts(base_url=str(facts.base_url), team=str(facts.team))

    with asked(bench, lambda number: json.dumps([{"name": f"ROW-{n}"} for n in range(number)])) as questions:
        assert (applied(bench).exit_code, len(questions)) == (0, 1)
        with held(bench, other_run) as tell:
            assert applied(bench, tell=tell).exit_code == 0
    assert len(questions) == (3 if writes else 2)


# --- Git


def under_git(bench: Bench) -> None:
    write(bench.folder, {".gitignore": ".syncengine/\n", "manifests/a.yaml": "tags: [{name: A}]\n"})
    git(bench.folder, "init", "-q", "-b", "main")
    commit_all(bench.folder)


def test_a_plan_waits_while_git_updates_the_work_tree(bench: Bench) -> None:
    """Git's lock file exists until all files are in place."""
    under_git(bench)
    lock = bench.folder / ".git" / "index.lock"
    lock.touch()

    def finish() -> None:
        write(bench.folder, {"manifests/z.yaml": "tags: [{name: Z}]\n"})
        lock.unlink()

    updating = threading.Timer(0.5, finish)
    updating.start()
    assert planned(bench) == ["A", "Z"]
    updating.join()


def test_an_update_that_was_killed_is_not_applied(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run exits with 5 and names Git's lock file, which is to be removed."""
    under_git(bench)
    (bench.folder / ".git" / "index.lock").touch()
    monkeypatch.setattr(inputs, "GIT_SECONDS", 0.2)
    done = applied(bench)
    assert (done.exit_code, codes(done)) == (5, ["inputs-changed"])
    assert "index.lock" in done.report.diagnostics[0].message
    assert bench.sandbox.requests() == []


def test_errors_of_a_half_updated_tree_are_not_reported(bench: Bench) -> None:
    """A tag that is in two files only during a checkout is not reported as a mistake."""
    under_git(bench)

    def answer(asked: int) -> str:
        if asked == 1:  # a checkout begins and ends while the source is queried
            write(bench.folder, {"manifests/z.yaml": "tags: [{name: Z}]\n", "manifests/a.yaml": "tags: [{name: B}]\n"})
            git(bench.folder, "add", "-A")
            return '[{"name": "A"}]'
        return A_ROW

    with asked(bench, answer) as questions:
        assert planned(bench) == ["B", "ROW", "Z"]
    assert len(questions) == 2


def test_a_commit_that_is_checked_out_meanwhile_is_noticed(bench: Bench) -> None:
    """The plan names the tree from which its files were read."""
    under_git(bench)

    def answer(number: int) -> str:
        if number == 1:
            write(bench.folder, {"readme.txt": "more"})
            commit_all(bench.folder)
        return A_ROW

    with asked(bench, answer) as questions:
        commit_all(bench.folder)
        plan = make_plan(loaded(bench), PlanRequest("plan"), Runtime(bench.environ))
    assert (getattr(plan.basis.tree, "id", None), len(questions)) == (git(bench.folder, "rev-parse", "HEAD:./"), 2)
