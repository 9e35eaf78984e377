"""A plan made with a cache is the plan that is made without one (docs/planning.md 2.8)."""

import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.engine import Application
from syncengine.errors import Diagnostic, Problems
from syncengine.plan.model import Plan
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.saved import load, save
from syncengine.project.files import OWN_FOLDER
from syncengine.project.runner import Holder
from syncengine.render.documents import SHOWN
from syncengine.state.store import open_state
from tests.applying.bench import Bench
from tests.cli.service import Service, serving
from tests.manifest.loading import write
from tests.manifest.test_lints import SUSPICIOUS
from tests.support.profiles import tried

from .strategies import manifests


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Service]:
    with serving() as started:
        yield started


@contextmanager
def new_bench(sandbox: Service) -> Iterator[Bench]:
    sandbox.reset()
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(Path(folder), sandbox)


@pytest.fixture
def bench(sandbox: Service) -> Iterator[Bench]:
    with new_bench(sandbox) as made:
        yield made


Estate = dict[str, Any]
"""Manifests by file name."""


def beginning() -> Estate:
    """Two files of tags, one of categories and types."""
    return {
        "1.yaml": {"tags": [{"name": "T-1", "keywords": ["Bolt"], "category": "c1"}, {"name": "T-2"}]},
        "2.yaml": {"tags": [{"name": "T-3", "keywords": ["Nut"], "externalId": "3"}, {"name": "T-4"}]},
        "3.yaml": {
            "tagCategories": [{"externalId": "c1", "label": "C1"}, {"externalId": "c2", "label": "C2"}],
            "activityTypes": [{"code": "A1", "label": "A1", "enableIfNew": True}],
        },
    }


def with_path() -> Estate:
    """Return the first estate with another path on one tag."""
    estate = beginning()
    estate["1.yaml"]["tags"][0]["path"] = "/a"
    return estate


def shared_word() -> Estate:
    """Return the first estate with a keyword of two tags in different files, which is warned of."""
    estate = beginning()
    estate["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    return estate


@dataclass
class Twice:
    """A project whose plans are made with the cache and without."""

    bench: Bench

    @property
    def cache(self) -> Path:
        return self.bench.folder / OWN_FOLDER / "cache.db"

    def edit(self, estate: Estate) -> None:
        """Write the manifests, without touching files that do not change, beside one that is large enough to cache."""
        texts = {name: file if isinstance(file, str) else json.dumps(file) for name, file in estate.items()}
        texts["zz/bulk.yaml"] = "tags:\n- {name: BULK-1}\n" + "# nothing to see here\n" * 5_000
        folder = self.bench.folder / "manifests"
        for path in [path for path in folder.rglob("*.yaml") if path.is_file()]:
            name = path.relative_to(folder).as_posix()
            if name not in texts:
                path.unlink()
            elif path.read_text(encoding="utf-8") == texts[name]:
                del texts[name]
        write(folder, texts)

    def short(self, **request: Any) -> Plan | tuple[Diagnostic, ...]:
        """Return the plan without its id, time and cache data, or the diagnostics when there is no plan."""
        try:
            found = make_plan(self.bench.project(), PlanRequest("plan", **request), Runtime({}))
        except Problems as problems:
            return problems.diagnostics()
        return replace(found, basis=replace(found.basis, id="", created="", settles=None))

    def planned(self, **request: Any) -> Plan | tuple[Diagnostic, ...]:
        """Return the plan, which is the same with the cache and without, and leave the cache as it was."""
        kept = self.cache.read_bytes() if self.cache.is_file() else None
        short = self.short(**request)
        self.cache.unlink(missing_ok=True)
        assert short == self.short(**request)
        if kept is not None:
            self.cache.write_bytes(kept)
        return short

    def same(self, **request: Any) -> Plan:
        planned = self.planned(**request)
        assert isinstance(planned, Plan)
        return planned

    def changes(self) -> list[str]:
        return [str(change.key) for change in self.same().changes]


def settle(bench: Bench, estate: Estate) -> Twice:
    """Apply the estate, after which the cache knows that nothing is to do."""
    twice = Twice(bench)
    twice.edit(estate)
    assert bench.apply().exit_code == 0
    return twice


INVALID = st.sampled_from(["tags: [", "\x01", "unknown: 1", "---\ntags: [{name: D-1}]"])


@st.composite
def estates(draw: Any) -> Estate:
    """Up to three files with names of their own, under one of two names each, of which few are invalid."""
    files: Estate = {}
    for number in range(draw(st.integers(0, 3))):
        text = draw(INVALID) if draw(st.integers(0, 9)) == 0 else draw(manifests())
        name = draw(st.sampled_from([f"{number}.yaml", f"b/{number}.yaml"]))
        files[name] = re.sub(r'"([ACT]-?\d)"', rf'"{number}\1"', text)
    return files


@settings(max_examples=tried(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(estates(), st.booleans()), min_size=2, max_size=8))
def test_any_edit_gives_the_plan_that_is_made_without_a_cache(
    sandbox: Service, edits: list[tuple[Estate, bool]]
) -> None:
    """Changes, notes, stages, records, gate, summary, diagnostics, prior digests; or the same problems."""
    with new_bench(sandbox) as bench:
        twice = Twice(bench)
        for estate, is_applied in edits:
            twice.edit(estate)
            if isinstance(twice.planned(), Plan) and is_applied:
                bench.apply()
                twice.planned()


# --- edits one by one


def test_an_estate_without_changes_has_an_empty_plan_that_counts_everything(bench: Bench) -> None:
    """The cache is in the project's folder and may be deleted."""
    twice = settle(bench, beginning())
    planned = twice.same()
    assert (planned.changes, planned.records, planned.summary.unchanged) == ((), (), 8)
    twice.cache.unlink()
    assert twice.changes() == []


def test_what_the_project_file_and_the_command_line_ask_for_counts_at_once(bench: Bench) -> None:
    """Also the order of files, which decides which of two alike is warned of."""
    twice = settle(bench, shared_word())
    assert len(twice.same(reassert=True).changes) == 8
    assert twice.same(sweep=True).sweep
    assert [d.file for d in twice.same().diagnostics] == ["manifests/2.yaml"]
    bench.settings("manifests: [manifests/2.yaml, manifests/1.yaml, manifests/3.yaml, manifests/zz]")
    assert [d.file for d in twice.same().diagnostics] == ["manifests/1.yaml"]
    bench.settings("defaults: {tags: {path: /all}}")
    assert len(twice.changes()) == 5


def codes(planned: Plan | tuple[Diagnostic, ...]) -> list[tuple[str, str]]:
    return [(d.code, d.severity.value) for d in (planned.diagnostics if isinstance(planned, Plan) else planned)]


@pytest.mark.slow
@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_warning_of_manifests_has_its_level_in_each_plan(bench: Bench, code: str) -> None:
    """Also after a change of another tag, and after a change of the level."""
    text, _ = SUSPICIOUS[code]
    other = "# generate\ntags: [{name: Omega One, visibility: PUBLIC%s}]\n"  # that word makes the planner use the cache
    twice = Twice(bench)
    for level, expected in (("warning", [(code, "warning")]), ("off", []), ("warning", [(code, "warning")])):
        bench.settings("policy:", "  tagRemoval: retire", f"  diagnostics: {{{code}: {level}}}")
        write(bench.folder, {"manifests/a.yaml": text, "manifests/b.yaml": other % ""})
        assert bench.apply().exit_code == 0
        assert codes(twice.planned()) == expected
        write(bench.folder, {"manifests/b.yaml": other % ", description: changed"})
        changed = twice.same()
        assert (codes(changed), len(changed.changes)) == (expected, 1)
    bench.settings("policy:", f"  diagnostics: {{{code}: error}}")
    assert codes(twice.planned()) == [(code, "error")]


@pytest.mark.parametrize("level", ["off", "warning", "error"])
def test_an_insecure_url_is_reported_at_its_level(bench: Bench, level: str) -> None:
    bench.settings(f"policy: {{diagnostics: {{insecure-url: {level}}}}}", url="http://service.example.com")
    try:
        found = bench.project().warnings
    except Problems as problems:
        found = problems.found
    assert codes(tuple(found)) == [("insecure-url", level)] * (level != "off")


# --- what is settled, and when


def is_settled(twice: Twice) -> bool:
    """Return whether a plan is empty and changes nothing in the cache."""
    known = twice.cache.read_bytes()
    changes = twice.changes()
    make_plan(twice.bench.project(), PlanRequest("plan"), Runtime(twice.bench.environ))
    return not changes and twice.cache.read_bytes() == known


def test_after_a_saved_plan_the_second_plan_is_answered_from_the_cache(bench: Bench) -> None:
    """A saved plan is applied without manifests, so its apply cannot tell which of them it settles."""
    twice, path, runtime = settle(bench, beginning()), bench.folder / "saved.plan", Runtime(bench.environ)
    twice.edit(with_path())
    save(make_plan(bench.project(), PlanRequest("plan"), runtime), SHOWN, path)
    shutil.rmtree(bench.folder / "manifests")
    project = bench.project()
    run = Application(project, PlanRequest("apply"), runtime, lambda: nullcontext(project.base_url()))
    assert run.execute(load(path, SHOWN)).exit_code == 0
    twice.edit(with_path())
    assert not is_settled(twice)
    assert is_settled(twice)


def test_an_apply_that_failed_in_part_or_died_settles_nothing(bench: Bench) -> None:
    twice = settle(bench, beginning())
    twice.edit(with_path())
    bench.sandbox.unavailable("upsertTags")
    assert bench.apply().exit_code != 0
    bench.sandbox.heal()
    assert twice.changes() == ["tag/T-1"]

    def dies(event: object) -> None:
        if type(event).__name__ == "ItemEnded":
            raise SystemExit  # an interrupt is reported instead

    with pytest.raises(BaseException):  # noqa: B017 - whatever wraps it
        bench.apply(tell=dies)
    twice.planned()
    assert bench.apply().exit_code == 0
    twice.planned()


def test_rows_that_another_run_doubts_are_planned_though_no_file_changed(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with open_state(bench.project().state, write=True) as state:
        state.lock(Holder.here("state import", {}), wait=5, request_timeout=0)
        state.doubt_all()
    assert len(twice.changes()) == 8


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
    assert (twice.changes() == ["tag/T-1"]) if is_restored else (twice.same().summary.create == 8)


def test_manifests_that_became_invalid_begin_no_run(bench: Bench) -> None:
    """Manifests that are valid at one level and not at another are refused before the state is opened."""
    settle(bench, shared_word())
    bench.settings("policy: {diagnostics: {same-keyword: error}}")
    state = Path(bench.project().state)
    state.unlink()
    project = bench.project()
    done = Application(project, PlanRequest("apply"), Runtime(bench.environ), lambda: pytest.fail("served")).execute()
    assert (done.exit_code != 0, state.exists()) == (True, False)


# --- a cache that is not what it was


def after(statements: str) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        with closing(sqlite3.connect(cache)) as connection:
            connection.executescript(statements)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut short": lambda cache: cache.write_bytes(cache.read_bytes()[:9000]),
    "something else": lambda cache: cache.write_bytes(b"something else " * 1000),
    "with readings mixed up": after("UPDATE entry SET reading = substr(reading, 2)"),
    "of another version": after("UPDATE basis SET digest = 'x' || digest; UPDATE entry SET digest = 'x' || digest"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_makes_no_other_plan(bench: Bench, damage: Callable[[Path], object]) -> None:
    twice = settle(bench, beginning())
    damage(twice.cache)
    twice.edit(with_path())
    assert twice.changes() == ["tag/T-1"]


def test_a_cache_from_before_other_applies_makes_no_other_plan(bench: Bench) -> None:
    twice = settle(bench, beginning())
    stale = twice.cache.read_bytes()
    settle(bench, with_path())
    for estate, changes in ((with_path(), []), (beginning(), ["tag/T-1"])):
        twice.cache.write_bytes(stale)
        twice.edit(estate)
        assert twice.changes() == changes


def test_a_locked_cache_makes_no_other_plan(bench: Bench) -> None:
    twice = settle(bench, beginning())
    twice.edit(with_path())
    with closing(sqlite3.connect(twice.cache, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        short = twice.short()
        writer.execute("ROLLBACK")
    assert short == twice.planned()


def test_two_files_with_names_that_are_shown_alike_are_both_planned(bench: Bench) -> None:
    twice = settle(bench, beginning())
    for number, name in enumerate([b"\xfe.yaml", b"\xff.yaml"]):
        (bench.folder / "manifests" / os.fsdecode(name)).write_text(f"tags: [{{name: ODD-{number}}}]\n")
    assert twice.changes() == ["tag/ODD-0", "tag/ODD-1"]
