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
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.saved import load, save
from syncengine.project.files import OWN_FOLDER
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
    """Apply the estate, after which the cache knows that nothing is to do."""
    estate.write(bench.folder / "manifests")
    assert bench.apply().exit_code == 0
    return Twice(bench.project)


def same(twice: Twice, **request: bool) -> Plan:
    """Return the plan, which is the same with the cache and without."""
    planned = twice.same(**request)
    assert isinstance(planned, Plan)
    return planned


def after(bench: Bench, estate: Estate) -> Plan:
    """Return the plan of the edited estate, which is the same with the cache and without."""
    estate.write(bench.folder / "manifests")
    return same(Twice(bench.project))


def with_path() -> Estate:
    """Return the first estate with another path on one tag."""
    estate = beginning()
    estate.files["1.yaml"]["tags"][0]["path"] = "/a"
    return estate


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


def test_an_estate_without_changes_has_an_empty_plan_that_counts_everything(bench: Bench) -> None:
    planned = same(settle(bench, beginning()))
    assert (planned.changes, planned.records, planned.summary.unchanged) == ((), (), 8)


def test_the_order_of_files_decides_which_of_two_alike_is_warned_of(bench: Bench) -> None:
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    bench.settings("manifests: [manifests/1.yaml, manifests/2.yaml, manifests/3.yaml, manifests/zz]")
    twice = settle(bench, estate)
    bench.settings("manifests: [manifests/2.yaml, manifests/1.yaml, manifests/3.yaml, manifests/zz]")
    assert [d.file for d in same(twice).diagnostics] == ["manifests/1.yaml"]


def test_changed_defaults_of_the_project_change_every_tag(bench: Bench) -> None:
    twice = settle(bench, beginning())
    bench.settings("defaults: {tags: {path: /all}}")
    assert len(same(twice).changes) == 5


@pytest.mark.parametrize("level", ["off", "error"])
def test_a_changed_level_of_a_warning_counts_at_once(bench: Bench, level: str) -> None:
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    twice = settle(bench, estate)
    bench.settings(f"policy: {{diagnostics: {{same-keyword: {level}}}}}")
    planned = twice.same()
    assert planned.diagnostics == () if isinstance(planned, Plan) else level == "error"


@pytest.mark.parametrize("request_", [{"reassert": True}, {"sweep": True}])
def test_reassert_and_sweep_are_planned_without_the_cached_answer(bench: Bench, request_: dict[str, bool]) -> None:
    planned = same(settle(bench, beginning()), **request_)
    assert planned.changes or planned.sweep


# --- what is settled, and when


def settled_plan(bench: Bench, estate: Estate) -> Plan:
    """A plan that `plan --out` saved, as `apply` reads it."""
    estate.write(bench.folder / "manifests")
    project, path = bench.project(), bench.folder / "saved.plan"
    save(make_plan(project, PlanRequest("plan"), Runtime(bench.environ)), SHOWN, path)
    return load(path, SHOWN)


def is_settled(bench: Bench, twice: Twice) -> bool:
    """Return whether a plan is empty and changes nothing in the cache."""
    known = twice.cache.read_bytes()
    planned = same(twice)
    make_plan(bench.project(), PlanRequest("plan"), Runtime(bench.environ))
    return not planned.changes and twice.cache.read_bytes() == known


def apply_saved(bench: Bench, saved: Plan) -> int:
    project = bench.project()
    request = PlanRequest("apply", approvals=(saved.gate.approve,) if saved.gate.approve else ())
    runtime = Runtime(bench.environ)
    done = Application(project, request, runtime, lambda: nullcontext(project.base_url())).execute(saved)
    return int(done.exit_code)


def test_after_a_saved_plan_the_second_plan_is_answered_from_the_cache(bench: Bench) -> None:
    """A saved plan reads no manifests, so its apply cannot tell which of them it settles."""
    twice = settle(bench, beginning())
    assert apply_saved(bench, settled_plan(bench, with_path())) == 0
    assert not is_settled(bench, twice)
    assert is_settled(bench, twice)


def test_a_saved_plan_is_applied_where_its_manifests_are_gone(bench: Bench) -> None:
    settle(bench, beginning())
    saved = settled_plan(bench, with_path())
    shutil.rmtree(bench.folder / "manifests")
    assert apply_saved(bench, saved) == 0


def test_an_apply_that_failed_in_part_settles_nothing(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with_path().write(bench.folder / "manifests")
    bench.sandbox.unavailable("upsertTags")
    assert bench.apply().exit_code != 0
    bench.sandbox.heal()
    assert addresses(same(twice)) == ["tag/T-1"]


def test_a_run_that_died_settles_nothing(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with_path().write(bench.folder / "manifests")

    def dies(event: object) -> None:
        if type(event).__name__ == "ItemEnded":
            raise SystemExit  # an interrupt is reported instead

    with pytest.raises(BaseException):  # noqa: B017 - whatever wraps it
        bench.apply(tell=dies)
    twice.same()
    assert bench.apply().exit_code == 0
    twice.same()


def test_rows_that_another_run_doubts_are_planned_though_no_file_changed(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with open_state(bench.project().state, write=True) as state:
        state.lock(Holder.here("state import", {}), wait=5, request_timeout=0)
        state.doubt_all()
    assert len(same(twice).changes) == 8


@pytest.mark.parametrize("is_restored", [True, False], ids=["restored from a backup", "deleted"])
def test_another_state_is_planned_as_it_is(bench: Bench, is_restored: bool) -> None:
    """The project's folder does not know of the later state either; a folder that does refuses the earlier one."""
    twice = settle(bench, beginning())
    state = Path(bench.project().state)
    backup = state.read_bytes()
    settle(bench, with_path())
    state.unlink()
    if is_restored:
        state.write_bytes(backup)
    shutil.rmtree(bench.folder / ".syncengine" / "seen")
    planned = same(twice)
    assert (addresses(planned) == ["tag/T-1"]) if is_restored else (planned.summary.create == 8)


def test_manifests_that_became_invalid_begin_no_run(bench: Bench) -> None:
    """Manifests that are valid at one level and not at another are refused before the state is opened."""
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    settle(bench, estate)
    bench.settings("policy: {diagnostics: {same-keyword: error}}")
    state = Path(bench.project().state)
    state.unlink()
    project = bench.project()
    done = Application(project, PlanRequest("apply"), Runtime(bench.environ), lambda: pytest.fail("served")).execute()
    assert (done.exit_code != 0, state.exists()) == (True, False)


def test_the_cache_is_in_the_projects_folder_and_may_be_deleted(bench: Bench) -> None:
    twice = settle(bench, beginning())
    assert (twice.cache.parent.name, twice.cache.exists()) == (OWN_FOLDER, True)
    twice.cache.unlink()
    assert same(twice).changes == ()


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
    twice = settle(bench, beginning())
    estate = with_path()
    estate.files["2.yaml"]["tags"].append({"name": "T-9", "keywords": ["BOLT"]})
    damage(twice.cache)
    assert addresses(after(bench, estate)) == ["tag/T-1", "tag/T-9"]


def test_a_cache_from_before_other_applies_makes_no_other_plan(bench: Bench) -> None:
    twice = settle(bench, beginning())
    stale = twice.cache.read_bytes()
    settle(bench, with_path())
    twice.cache.write_bytes(stale)
    assert after(bench, with_path()).changes == ()
    twice.cache.write_bytes(stale)
    assert addresses(after(bench, beginning())) == ["tag/T-1"]


def test_a_locked_cache_makes_no_other_plan(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with_path().write(bench.folder / "manifests")
    with closing(sqlite3.connect(twice.cache, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        short = planned(bench.project())
        writer.execute("ROLLBACK")
    assert short == twice.same()


def test_two_files_with_names_that_are_shown_alike_are_both_planned(bench: Bench) -> None:
    twice = settle(bench, beginning())
    for number, name in enumerate([b"\xfe.yaml", b"\xff.yaml"]):
        (bench.folder / "manifests" / os.fsdecode(name)).write_text(f"tags: [{{name: ODD-{number}}}]\n")
    assert addresses(same(twice)) == ["tag/ODD-0", "tag/ODD-1"]
