"""A plan made with a cache is the plan that is made without one (docs/planning.md 2.8)."""

from __future__ import annotations

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
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.plan.saved import load, save
from syncengine.project.files import OWN_FOLDER
from syncengine.project.model import Project
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


@dataclass
class Estate:
    """Manifests by file name, beside one with a long comment, which makes them large enough to be cached."""

    files: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write the manifests to a folder, without touching files that do not change."""
        texts = {name: file if isinstance(file, str) else json.dumps(file) for name, file in self.files.items()}
        texts["zz/bulk.yaml"] = "tags:\n- {name: BULK-1}\n" + "# nothing to see here\n" * 5_000
        for path in [path for path in folder.rglob("*.yaml") if path.is_file()]:
            name = path.relative_to(folder).as_posix()
            if name not in texts:
                path.unlink()
            elif path.read_text(encoding="utf-8") == texts[name]:
                del texts[name]
        write(folder, texts)


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


Planned = Plan | tuple[Diagnostic, ...]


def plan_or_problems(project: Project, **request: Any) -> Planned:
    """Return the plan without its id, time and cache data, or the diagnostics when there is no plan."""
    try:
        found = make_plan(project, PlanRequest("plan", **request), Runtime({}))
    except Problems as problems:
        return problems.diagnostics()
    return replace(found, basis=replace(found.basis, id="", created="", settles=None))


@dataclass
class Twice:
    """Make the same plan with the cache and without, and leave the cache as it was."""

    project: Callable[[], Project]

    @property
    def cache(self) -> Path:
        return self.project().root / ".syncengine" / "cache.db"

    def same(self, **request: Any) -> Planned:
        """Return the plan, which is the same with the cache and without."""
        kept = self.cache.read_bytes() if self.cache.is_file() else None
        short = plan_or_problems(self.project(), **request)
        self.cache.unlink(missing_ok=True)
        whole = plan_or_problems(self.project(), **request)
        if kept is not None:
            self.cache.write_bytes(kept)
        assert short == whole
        return short


def settle(bench: Bench, estate: Estate) -> Twice:
    """Apply the estate, after which the cache knows that nothing is to do."""
    estate.write(bench.folder / "manifests")
    assert bench.apply().exit_code == 0
    return Twice(bench.project)


def same(twice: Twice, **request: bool) -> Plan:
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


# --- random estates


INVALID = st.sampled_from(["tags: [", "\x01", "unknown: 1", "---\ntags: [{name: D-1}]"])


@st.composite
def estates(draw: Any) -> Estate:
    """Up to three files with names of their own, under one of two names each, of which few are invalid."""
    files: dict[str, Any] = {}
    for number in range(draw(st.integers(0, 3))):
        text = draw(INVALID) if draw(st.integers(0, 9)) == 0 else draw(manifests())
        name = draw(st.sampled_from([f"{number}.yaml", f"b/{number}.yaml"]))
        files[name] = re.sub(r'"([ACT]-?\d)"', rf'"{number}\1"', text)
    return Estate(files)


@settings(max_examples=tried(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(estates(), st.booleans()), min_size=2, max_size=8))
def test_any_edit_gives_the_plan_that_is_made_without_a_cache(
    sandbox: Service, edits: list[tuple[Estate, bool]]
) -> None:
    """Changes, notes, stages, records, gate, summary, diagnostics, prior digests; or the same problems."""
    with new_bench(sandbox) as bench:
        for estate, is_applied in edits:
            estate.write(bench.folder / "manifests")
            if isinstance(Twice(bench.project).same(), Plan) and is_applied:
                bench.apply()
                Twice(bench.project).same()


# --- edits one by one


def test_an_estate_without_changes_has_an_empty_plan_that_counts_everything(bench: Bench) -> None:
    """The cache is in the project's folder and may be deleted."""
    twice = settle(bench, beginning())
    planned = same(twice)
    assert (planned.changes, planned.records, planned.summary.unchanged) == ((), (), 8)
    assert (twice.cache.parent.name, twice.cache.exists()) == (OWN_FOLDER, True)
    twice.cache.unlink()
    assert same(twice).changes == ()


def shared_word() -> Estate:
    """Two files of tags that share a keyword, which is warned of."""
    estate = beginning()
    estate.files["2.yaml"]["tags"][0]["keywords"] = ["BOLT"]
    return estate


def test_the_order_of_files_decides_which_of_two_alike_is_warned_of(bench: Bench) -> None:
    bench.settings("manifests: [manifests/1.yaml, manifests/2.yaml, manifests/3.yaml, manifests/zz]")
    twice = settle(bench, shared_word())
    bench.settings("manifests: [manifests/2.yaml, manifests/1.yaml, manifests/3.yaml, manifests/zz]")
    assert [d.file for d in same(twice).diagnostics] == ["manifests/1.yaml"]


def test_what_the_project_file_and_the_command_line_ask_for_counts_at_once(bench: Bench) -> None:
    twice = settle(bench, beginning())
    assert len(same(twice, reassert=True).changes) == 8
    assert same(twice, sweep=True).sweep
    bench.settings("defaults: {tags: {path: /all}}")
    assert len(same(twice).changes) == 5


# --- the levels of warnings


def codes(planned: Planned) -> list[tuple[str, str]]:
    return [(d.code, d.severity.value) for d in (planned.diagnostics if isinstance(planned, Plan) else planned)]


@pytest.mark.slow
@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_warning_of_manifests_has_its_level_in_each_plan(bench: Bench, code: str) -> None:
    """Also after a change of another tag, and after a change of the level."""
    manifests = {
        "a.yaml": SUSPICIOUS[code][0],
        "b.yaml": "# generate\ntags: [{name: Omega One, visibility: PUBLIC%s}]\n",
    }
    """The word `generate` makes the planner use the cache."""
    twice = Twice(bench.project)
    for level, expected in (("warning", [(code, "warning")]), ("off", []), ("warning", [(code, "warning")])):
        bench.settings("policy:", "  tagRemoval: retire", f"  diagnostics: {{{code}: {level}}}")
        write(bench.folder, {f"manifests/{name}": text.replace("%s", "") for name, text in manifests.items()})
        assert bench.apply().exit_code == 0
        assert codes(twice.same()) == expected
        write(bench.folder, {"manifests/b.yaml": manifests["b.yaml"].replace("%s", ", description: changed")})
        changed = same(twice)
        assert (codes(changed), len(changed.changes)) == (expected, 1)
    bench.settings("policy:", f"  diagnostics: {{{code}: error}}")
    assert codes(twice.same()) == [(code, "error")]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["off", "warning", "error"])
def test_a_warning_of_planning_has_its_level(bench: Bench, level: str) -> None:
    """Of a likely rename, a line that removes nothing, an empty selection, and a comma that cuts a text."""
    settings = f"{{rename-suspected: {level}, nothing-selected: {level}, comma-in-text: {level}, removed-unknown: %s}}"
    bench.settings("policy:", "  tagRemoval: retire", f"  diagnostics: {settings % 'off'}")
    tags = "tags: [{name: Omega, visibility: PUBLIC}, {name: %s, externalId: '1', visibility: PUBLIC}]\n"
    write(bench.folder, {"manifests/a.yaml": "# generate\nremoved: [{tag: Omgea, as: retire}]\n"})
    write(bench.folder, {"manifests/b.yaml": tags % "Alpha"})
    assert bench.apply().exit_code == 0
    bench.settings("policy:", "  tagRemoval: retire", f"  diagnostics: {settings % level}")
    write(bench.folder, {"manifests/b.yaml": tags % "Beta"})
    twice, expected = Twice(bench.project), [level] * (level != "off")
    found = [(code, each) for each in expected for code in ("removed-unknown", "rename-suspected")]
    assert sorted(codes(twice.same())) == found
    found = [(code, each) for each in expected for code in ("nothing-selected", "removed-unknown")]
    assert sorted(codes(twice.same(scope=Scope(paths=("nowhere",))))) == found
    write(bench.folder, {"manifests/b.yaml": "tags:\n  - name: Omega\n    metadata: {Client: Smith, Jones & Co}\n"})
    found = [("comma-in-text", each) for each in expected]
    assert sorted(codes(twice.same())) == [*found, ("null-value", "error")]


@pytest.mark.parametrize("level", ["off", "warning", "error"])
def test_an_insecure_url_is_reported_at_its_level(bench: Bench, level: str) -> None:
    bench.settings(f"policy: {{diagnostics: {{insecure-url: {level}}}}}", url="http://service.example.com")
    try:
        found = bench.project().warnings
    except Problems as problems:
        found = problems.found
    assert codes(tuple(found)) == [("insecure-url", level)] * (level != "off")


# --- what is settled, and when


def is_settled(bench: Bench, twice: Twice) -> bool:
    """Return whether a plan is empty and changes nothing in the cache."""
    known = twice.cache.read_bytes()
    planned = same(twice)
    make_plan(bench.project(), PlanRequest("plan"), Runtime(bench.environ))
    return not planned.changes and twice.cache.read_bytes() == known


def test_after_a_saved_plan_the_second_plan_is_answered_from_the_cache(bench: Bench) -> None:
    """A saved plan is applied without manifests, so its apply cannot tell which of them it settles."""
    twice, path, runtime = settle(bench, beginning()), bench.folder / "saved.plan", Runtime(bench.environ)
    with_path().write(bench.folder / "manifests")
    save(make_plan(bench.project(), PlanRequest("plan"), runtime), SHOWN, path)
    shutil.rmtree(bench.folder / "manifests")
    project = bench.project()
    run = Application(project, PlanRequest("apply"), runtime, lambda: nullcontext(project.base_url()))
    assert run.execute(load(path, SHOWN)).exit_code == 0
    with_path().write(bench.folder / "manifests")
    assert not is_settled(bench, twice)
    assert is_settled(bench, twice)


def test_an_apply_that_failed_in_part_or_died_settles_nothing(bench: Bench) -> None:
    twice = settle(bench, beginning())
    with_path().write(bench.folder / "manifests")
    bench.sandbox.unavailable("upsertTags")
    assert bench.apply().exit_code != 0
    bench.sandbox.heal()
    assert addresses(same(twice)) == ["tag/T-1"]

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
    settle(bench, shared_word())
    bench.settings("policy: {diagnostics: {same-keyword: error}}")
    state = Path(bench.project().state)
    state.unlink()
    project = bench.project()
    done = Application(project, PlanRequest("apply"), Runtime(bench.environ), lambda: pytest.fail("served")).execute()
    assert (done.exit_code != 0, state.exists()) == (True, False)


# --- a cache that is not what it was


def changed(*statements: str) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        with closing(sqlite3.connect(cache)) as connection:
            connection.executescript(";".join(statements))

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut short": lambda cache: cache.write_bytes(cache.read_bytes()[:9000]),
    "something else": lambda cache: cache.write_bytes(b"something else " * 1000),
    "without entries": changed("DELETE FROM entry"),
    "with readings mixed up": changed("UPDATE entry SET reading = substr(reading, 2)"),
    "of another version": changed(
        "UPDATE basis SET name = 'x' || name, digest = 'x' || digest", "UPDATE entry SET digest = 'x' || digest"
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_makes_no_other_plan(bench: Bench, damage: Callable[[Path], object]) -> None:
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
        short = plan_or_problems(bench.project())
        writer.execute("ROLLBACK")
    assert short == twice.same()


def test_two_files_with_names_that_are_shown_alike_are_both_planned(bench: Bench) -> None:
    twice = settle(bench, beginning())
    for number, name in enumerate([b"\xfe.yaml", b"\xff.yaml"]):
        (bench.folder / "manifests" / os.fsdecode(name)).write_text(f"tags: [{{name: ODD-{number}}}]\n")
    assert addresses(same(twice)) == ["tag/ODD-0", "tag/ODD-1"]
