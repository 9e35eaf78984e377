"""Undos among applies, refusals and quarantine, searched with the crash model (docs/repair.md).

Any run is undone, the last or an earlier one or an undo, in whole or in part, with `--force` or without, and may be
killed. The next applies end at what the manifests say, and nothing is deleted that nobody asked to delete.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.apply.report import RunStatus
from tests.support.profiles import tried

from .crash_model import House, Manifest, Trouble
from .test_crashes import (
    ACTS,
    CATEGORIES,
    RARELY,
    TAGS,
    TROUBLES,
    TYPES,
    Step,
    _end,
    _possible,
    house,
    manifests,
    renames,
)
from .test_undo_crashes import deletes, nothing
from .truths import beyond_recorded, troubles_of

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "20"))
OFTEN = settings(max_examples=tried(HISTORIES), deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Undoing:
    """The undo of a run that changed something: the last one, or the one `back` runs before it."""

    back: int
    troubles: list[Trouble]
    forced: bool
    resumes: bool
    lands: bool
    targets: tuple[str, ...]
    sets_aside: int


SETS_ASIDE = st.sampled_from([0, 0, 1, 0xFF])
PARTS = st.sampled_from([(), (), (), ("tag/*",), ("category/*",), ("tag/T1",), ("category/C1",)])
UNDOINGS = st.builds(
    Undoing,
    st.sampled_from([0, 0, 0, 1, 2]),
    st.one_of(st.just([]), TROUBLES),
    st.booleans(),
    RARELY,
    RARELY,
    PARTS,
    SETS_ASIDE,
)
REFUSED = st.frozensets(st.sampled_from([*TAGS, *CATEGORIES, *TYPES]), max_size=2)


@st.composite
def histories(draw: Any, of: st.SearchStrategy[Manifest]) -> list[Step | Undoing]:
    """Few manifests, which come again and again between the undos."""
    few = st.sampled_from(draw(st.lists(of, min_size=1, max_size=3)))
    steps = st.builds(Step, few, TROUBLES, ACTS, RARELY, RARELY, RARELY, st.just(True), SETS_ASIDE, REFUSED)
    among = st.one_of(steps, UNDOINGS)
    return [
        draw(steps),
        *draw(st.lists(among, min_size=1, max_size=6)),
        draw(UNDOINGS),
        *draw(st.lists(among, max_size=2)),
    ]


def walk(history: list[Step | Undoing]) -> None:
    with house() as home:
        manifest = Manifest()
        for step in history:
            if isinstance(step, Undoing):
                home.refused = frozenset()
                take_back(home, step)
            else:
                manifest, home.refused = step.manifest, step.refuses
                home.apply(manifest, step.troubles, reassert=step.reasserts)
                for act in step.others:
                    home.others_act(*act)
            if step.lands:
                home.land()
            if step.sets_aside:
                home.set_aside(step.sets_aside)
            nothing(home.violations)
            nothing(beyond_recorded(home, {row.key: row for row in home.state.rows()}))
        home.refused = frozenset()
        home.lift()
        last = _possible(manifest)
        _end(home, last)
        nothing(troubles_of(home, last))


def take_back(home: House, step: Undoing) -> None:
    """Undo a run; check that an undisturbed undo leaves nothing to undo."""
    runs = [run for run in home.state.runs(100) if run.plan is not None and home.state.has_changed(run.id)]
    if len(runs) <= step.back:
        return
    run, is_calm = runs[step.back].id, not (step.troubles or home.in_flight or step.targets)
    ending = home.undo(run, step.troubles, forced=step.forced, targets=step.targets)
    assert ending.plan is not None
    nothing(deletes(ending.plan))
    if ending.died and step.resumes and (resumed := home.resume(ending)) is not None:
        assert resumed.status is RunStatus.COMPLETE
    elif is_calm and ending.status is RunStatus.COMPLETE:
        again = home.planned_undo(run, forced=step.forced)
        nothing(f"{change.key} is planned again" for change in again.changes)


@OFTEN
@given(histories(manifests()))
def test_undos_among_applies_end_at_what_the_manifests_say(history: list[Step | Undoing]) -> None:
    """With `--redo`, which lets the manifests ask again for what was undone."""
    walk(history)


@OFTEN
@given(histories(renames()))
def test_undos_among_renames_end_at_what_the_manifests_say(history: list[Step | Undoing]) -> None:
    """The same of categories that are renamed with tags in them."""
    walk(history)
