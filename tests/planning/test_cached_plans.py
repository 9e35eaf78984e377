"""A plan made with a cache is the plan that is made without one (docs/planning.md 2.8)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.engine import Application
from syncengine.plan.model import Plan
from syncengine.plan.planner import CACHE_FOLDER, make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.saved import load, save
from syncengine.render.documents import SHOWN
from syncengine.sandbox.app import running_sandbox
from syncengine.state.holder import Holder
from syncengine.state.store import open_state
from tests.applying.bench import Bench, Sandbox
from tests.support import loopback
from tests.support.profiles import tried

from .editing import Estate, edit, first
from .twice import Twice, planned


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox() as running, loopback.client(base_url=running.control_url) as control:
        yield Sandbox(running.url, control, running.api_key)


@contextmanager
def new_bench(sandbox: Sandbox) -> Iterator[Bench]:
    sandbox.reset()
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(Path(folder), sandbox)


@pytest.fixture
def bench(sandbox: Sandbox) -> Iterator[Bench]:
    with new_bench(sandbox) as made:
        yield made


def beginning() -> Estate:
    """Two files of tags, one of categories and types."""
    return Estate(
        {
            "1.yaml": {"tags": [{"name": "T-1", "keywords": ["Bolt"], "category": "c1"}, {"name": "T-2"}]},
            "2.yaml": {"tags": [{"name": "T-3", "keywords": ["Nut"], "externalId": "3"}, {"name": "T-4"}]},
            "3.yaml": {
                "tagCategories": [{"externalId": "c1", "label": "C1"}, {"externalId": "c2", "label": "C2"}],
                "activityTypes": [{"code": "A1", "label": "A1", "enableIfNew": True}],
            },
        }
    )


def settle(bench: Bench, estate: Estate) -> Twice:
    """Apply it: from here on the cache knows that nothing is to do."""
    estate.write(bench.folder / "manifests")
    assert bench.apply().exit_code == 0
    return Twice(bench.project)


def after(bench: Bench, estate: Estate) -> Plan:
    """The plan of the edited estate, which is the same both ways."""
    estate.write(bench.folder / "manifests")
    planned = Twice(bench.project).same()
    assert isinstance(planned, Plan)
    return planned


def addresses(planned: Plan) -> list[str]:
    return [str(change.key) for change in planned.changes]


# --- random estates, random edits


@settings(max_examples=tried(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_any_edit_gives_the_plan_that_is_made_without_a_cache(sandbox: Sandbox, seed: int) -> None:
    """Changes, notes, stages, records, gate, summary, diagnostics, prior digests; or the same problems."""
    random = Random(seed)
    estate = first(random)
    with new_bench(sandbox) as bench:
        twice = settle(bench, estate)
        for _ in range(5):
            before = estate.copy()
            for _ in range(random.randint(1, 3)):
                edit(estate, random)
            estate.write(bench.folder / "manifests")
            if not isinstance(twice.same(), Plan):
                estate = before
                estate.write(bench.folder / "manifests")
            elif random.random() < 0.7:
                bench.apply()
                twice.same()


# --- edits one by one


def test_a_settled_estate_has_an_empty_plan_with_all_counted(bench: Bench) -> None:
    planned = settle(bench, beginning()).same()
    assert isinstance(planned, Plan)
    assert (planned.changes, planned.records, planned.summary.unchanged) == ((), (), 8)


def test_a_changed_added_and_gone_tag_are_the_plan(bench: Bench) -> None:
    estate = beginning()
    settle(bench, estate)
    one, two = estate.files["1.yaml"]["tags"], estate.files["2.yaml"]["tags"]
    one[0]["keywords"] = ["another"]
    two.append({"name": "T-5", "category": "c2"})
    del two[1]
    assert sorted(addresses(after(bench, estate))) == ["tag/T-1", "tag/T-4", "tag/T-5"]


def test_a_tag_that_moves_to_another_file_is_only_recorded(bench: Bench) -> None:
    estate = beginning()
    settle(bench, estate)
    estate.files["2.yaml"]["tags"].append(estate.files["1.yaml"]["tags"].pop())
    planned = after(bench, estate)
    assert (planned.changes, [effect.key.name for effect in planned.records]) == ((), ["T-2"])


def test_of_two_alike_the_second_in_the_order_of_the_manifests_is_told_of(bench: Bench) -> None:
    """The same files in another order give another warning."""
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    bench.settings("manifests: [manifests/1.yaml, manifests/2.yaml, manifests/3.yaml, manifests/zz]")
    twice = settle(bench, estate)
    bench.settings("manifests: [manifests/2.yaml, manifests/1.yaml, manifests/3.yaml, manifests/zz]")
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert [d.file for d in planned.diagnostics] == ["manifests/1.yaml"]


def test_defaults_of_the_project_that_change_change_every_tag_under_them(bench: Bench) -> None:
    twice = settle(bench, beginning())
    bench.settings("defaults: {tags: {path: /all}}")
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert len(planned.changes) == 5


@pytest.mark.parametrize("level", ["off", "error"])
def test_another_level_of_a_warning_is_obeyed_at_once(bench: Bench, level: str) -> None:
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    twice = settle(bench, estate)
    bench.settings(f"policy: {{diagnostics: {{same-keyword: {level}}}}}")
    planned = twice.same()
    assert planned.diagnostics == () if isinstance(planned, Plan) else level == "error"


@pytest.mark.parametrize("request_", [{"reassert": True}, {"sweep": True}])
def test_what_is_asked_for_by_hand_is_planned_of_everything(bench: Bench, request_: dict[str, bool]) -> None:
    planned = settle(bench, beginning()).same(**request_)
    assert isinstance(planned, Plan)
    assert planned.changes or planned.sweep


# --- what is settled, and when


def settled_plan(bench: Bench, estate: Estate) -> Plan:
    """A plan that `plan --out` saved, as `apply` reads it."""
    estate.write(bench.folder / "manifests")
    project, path = bench.project(), bench.folder / "saved.plan"
    save(make_plan(project, PlanRequest("plan"), Runtime(bench.environ)), SHOWN, path)
    return load(path, SHOWN)


def is_settled(bench: Bench, twice: Twice) -> bool:
    """A plan has nothing to remember, and is empty."""
    known = twice.cache.read_bytes()
    planned = twice.same()
    assert isinstance(planned, Plan)
    make_plan(bench.project(), PlanRequest("plan"), Runtime(bench.environ))
    return not planned.changes and twice.cache.read_bytes() == known


def apply_saved(bench: Bench, saved: Plan) -> int:
    project = bench.project()
    request = PlanRequest("apply", approvals=(saved.gate.approve,) if saved.gate.approve else ())
    runtime = Runtime(bench.environ)
    done = Application(project, request, runtime, lambda: nullcontext(project.base_url())).execute(saved)
    return int(done.exit_code)


def test_after_a_saved_plan_the_next_one_is_made_of_everything_and_then_known(bench: Bench) -> None:
    """A file reads no manifests, so that it cannot tell what they are worth."""
    estate = beginning()
    twice = settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    assert apply_saved(bench, settled_plan(bench, estate)) == 0
    assert not is_settled(bench, twice)
    assert is_settled(bench, twice)


def test_a_saved_plan_is_applied_where_its_manifests_are_gone(bench: Bench) -> None:
    """It needs none, and leaves nothing settled that it cannot see."""
    estate = beginning()
    settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    saved = settled_plan(bench, estate)
    shutil.rmtree(bench.folder / "manifests")
    assert apply_saved(bench, saved) == 0


def test_an_apply_that_failed_in_part_settles_nothing(bench: Bench) -> None:
    estate = beginning()
    twice = settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    estate.write(bench.folder / "manifests")
    bench.sandbox.unavailable("upsertTags")
    assert bench.apply().exit_code != 0
    bench.sandbox.heal()
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert addresses(planned) == ["tag/T-1"]


def test_a_run_that_died_leaves_its_rows_in_doubt_and_nothing_settled(bench: Bench) -> None:
    estate = beginning()
    twice = settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    estate.write(bench.folder / "manifests")

    def dies(event: object) -> None:
        if type(event).__name__ == "ItemEnded":
            raise SystemExit  # an interrupt is reported instead

    with pytest.raises(BaseException):  # noqa: B017 - whatever wraps it
        bench.apply(tell=dies)
    twice.same()
    assert bench.apply().exit_code == 0
    twice.same()


def test_rows_that_another_run_doubts_are_seen_though_no_file_changed(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with open_state(bench.project().state, write=True) as state:
        state.lock(Holder.here("state import", {}), wait=5, request_timeout=0)
        state.doubt_all()
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert len(planned.changes) == 8


def test_a_state_restored_from_a_backup_is_planned_as_it_is(bench: Bench) -> None:
    """By a folder that does not know that there was a later one; others refuse it."""
    estate = beginning()
    twice = settle(bench, estate)
    state = Path(bench.project().state)
    backup = state.read_bytes()
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    settle(bench, estate)
    state.write_bytes(backup)
    shutil.rmtree(bench.folder / ".syncengine" / "seen")
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert addresses(planned) == ["tag/T-1"]


def test_a_state_that_is_gone_is_planned_anew(bench: Bench) -> None:
    """Where the project's folder no longer knows of it either."""
    twice = settle(bench, beginning())
    Path(bench.project().state).unlink()
    shutil.rmtree(bench.folder / ".syncengine" / "seen")
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert planned.summary.create == 8


def test_an_apply_without_changes_leaves_everything_settled(bench: Bench) -> None:
    twice = settle(bench, beginning())
    assert bench.apply().exit_code == 0
    known = twice.cache.read_bytes()
    assert twice.same() and make_plan(bench.project(), PlanRequest("plan"), Runtime({})).changes == ()
    assert twice.cache.read_bytes() == known


def test_manifests_that_became_invalid_begin_no_run(bench: Bench) -> None:
    """Known to be in order at one level, and not at another: the state is not even opened."""
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    settle(bench, estate)
    bench.settings("policy: {diagnostics: {same-keyword: error}}")
    state = Path(bench.project().state)
    state.unlink()
    project = bench.project()
    done = Application(project, PlanRequest("apply"), Runtime(bench.environ), lambda: pytest.fail("served")).execute()
    assert (done.exit_code != 0, state.exists()) == (True, False)


def test_the_cache_is_beside_the_state_and_may_always_be_deleted(bench: Bench) -> None:
    twice = settle(bench, beginning())
    assert (twice.cache.parent.name, twice.cache.exists()) == (CACHE_FOLDER, True)
    twice.cache.unlink()
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert planned.changes == ()


# --- a cache that is not what it was


def cut(cache: Path) -> None:
    cache.write_bytes(cache.read_bytes()[:9000])


def foreign(cache: Path) -> None:
    cache.write_bytes(b"something else " * 1000)


def without_entries(cache: Path) -> None:
    changed(cache, "DELETE FROM entry")


def with_readings_mixed_up(cache: Path) -> None:
    changed(cache, "UPDATE entry SET reading = substr(reading, 2)")


def of_another_version(cache: Path) -> None:
    changed(cache, "UPDATE basis SET name = 'x' || name, digest = 'x' || digest")
    changed(cache, "UPDATE entry SET digest = 'x' || digest")


def changed(cache: Path, sql: str) -> None:
    with closing(sqlite3.connect(cache)) as connection:
        connection.execute(sql)
        connection.commit()


@pytest.mark.parametrize("damage", [cut, foreign, without_entries, with_readings_mixed_up, of_another_version])
def test_a_damaged_cache_makes_no_other_plan(bench: Bench, damage: Callable[[Path], None]) -> None:
    estate = beginning()
    twice = settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    estate.files["2.yaml"]["tags"].append({"name": "T-9", "keywords": ["BOLT"]})
    damage(twice.cache)
    assert addresses(after(bench, estate)) == ["tag/T-1", "tag/T-9"]


def test_a_stale_cache_makes_no_other_plan(bench: Bench) -> None:
    """One from before other applies, put back."""
    estate = beginning()
    twice = settle(bench, estate)
    stale = twice.cache.read_bytes()
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    settle(bench, estate)
    twice.cache.write_bytes(stale)
    assert after(bench, estate).changes == ()
    twice.cache.write_bytes(stale)
    assert addresses(after(bench, beginning())) == ["tag/T-1"]


def test_a_cache_in_use_makes_no_other_plan(bench: Bench) -> None:
    estate = beginning()
    twice = settle(bench, estate)
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    estate.write(bench.folder / "manifests")
    with closing(sqlite3.connect(twice.cache, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        short = planned(bench.project())
        writer.execute("ROLLBACK")
    assert short == twice.same()


def test_two_files_whose_names_cannot_be_told_apart_are_planned_all_the_same(bench: Bench) -> None:
    """Neither name is UTF-8, and both are shown alike."""
    twice = settle(bench, beginning())
    for number, name in enumerate([b"\xfe.yaml", b"\xff.yaml"]):
        (bench.folder / "manifests" / os.fsdecode(name)).write_text(f"tags: [{{name: ODD-{number}}}]\n")
    planned = twice.same()
    assert isinstance(planned, Plan)
    assert addresses(planned) == ["tag/ODD-0", "tag/ODD-1"]
