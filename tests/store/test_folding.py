"""The tables hold what a pure fold of the effects computes, whatever happens in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Row, Source, Status
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import State
from tests.support.profiles import tried

from .estate import applying, category, run, tag

KEYS = (tag("a"), tag("b"), category("c"))
WORDS = st.sampled_from(["x", "y", "ü"])
LEAVES = st.builds(
    Effect,
    key=st.sampled_from(KEYS),
    fields=st.dictionaries(st.sampled_from(["category", "description"]), WORDS)
    | st.fixed_dictionaries({"excludeTagNameKeyword": st.booleans(), "assigneeExternalIds": st.tuples(WORDS)}),
    cleared=st.sampled_from([(), ("description",), ("category",)]),
    keywords=st.lists(WORDS, max_size=2, unique=True).map(tuple),
    keywords_dropped=st.lists(WORDS, max_size=1).map(tuple),
    metadata=st.dictionaries(WORDS, WORDS, max_size=2),
    metadata_dropped=st.lists(WORDS, max_size=1).map(tuple),
    status=st.none() | st.sampled_from(Status),
    whole=st.booleans(),
    former=st.none() | st.sampled_from(KEYS),
    source=st.none()
    | st.builds(Source, WORDS, st.integers(1, 9), st.none() | st.builds(Row, WORDS, st.integers(1, 9))),
    protect=st.none() | st.booleans(),
)
CALLS = st.lists(LEAVES, min_size=1, max_size=3, unique_by=lambda effect: effect.key).map(tuple)
RUNS = count(2)
ENDS = st.sampled_from(["settle", "identify", "part", "fail", "crash", "stop", "record"])


@dataclass
class Life:
    """A state, and its rows as plain values, which go through the same steps."""

    state: State
    rows: dict[Key, Recorded] = field(default_factory=dict)
    open: set[Key] = field(default_factory=set)

    def step(self, call: str, end: str, effects: tuple[Effect, ...]) -> None:
        if end == "record":
            self.state.record(effects)
            self._recorded(effects)
            return
        self.state.intend({call: Attempt("upsertTags", effects)})
        self._intended(effects)
        if end in ("stop", "crash"):
            self._next_run(is_ended=end == "stop")
            return
        accepted = {"fail": 0, "part": 1}.get(end, len(effects))
        if accepted:
            self._settle(call, effects[:accepted], call if end == "identify" else None)
        if failed := effects[accepted:]:
            self.state.fail([CallFailure(call, tuple(effect.key for effect in failed), "no")])
            self._doubt({effect.key for effect in failed})

    def seen(self) -> dict[Key, Recorded]:
        return {key: replace(row, doubtful=row.doubtful or key in self.open) for key, row in self.rows.items()}

    def _intended(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            row = intended(self.rows.get(effect.key), effect)
            former = self.rows.get(effect.former) if effect.former and effect.former.kind is effect.key.kind else None
            if former and row.server_id is None and row.status is not Status.DELETED:
                row = replace(row, server_id=former.server_id)
            self.rows[effect.key] = row
            self.open.add(effect.key)

    def _settle(self, call: str, effects: tuple[Effect, ...], server_id: str | None) -> None:
        ids = {effect.key: server_id for effect in effects} if server_id else {}
        self.state.settle([Settlement(call, effects, ids)])
        for effect in effects:
            row = settled(self.rows[effect.key], effect)
            named = server_id is not None and row.status is not Status.DELETED
            self.rows[effect.key] = replace(row, server_id=server_id) if named else row
            self.open.discard(effect.key)

    def _doubt(self, keys: set[Key]) -> None:
        self.rows |= {key: replace(self.rows[key], doubtful=True) for key in keys}
        self.open -= keys

    def _next_run(self, *, is_ended: bool) -> None:
        """A run without an end has died when the next run begins."""
        if is_ended:
            self.state.end_run("interrupted", {})
        self.state.begin_run(run(next(RUNS)))
        self._doubt(set(self.open))

    def _recorded(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if old := self.rows.get(effect.key):
                new = settled(intended(old, effect), effect)
                status = effect.status or old.status
                self.rows[effect.key] = replace(new, doubtful=old.doubtful, confirmed=old.confirmed, status=status)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    with applying(str(tmp_path_factory.mktemp("folding") / "state.db")) as state:
        yield state


@settings(max_examples=tried(40), deadline=None)
@given(st.lists(st.tuples(ENDS, CALLS), min_size=1, max_size=8))
def test_the_tables_hold_the_fold_of_the_effects(state: State, steps: list[tuple[str, tuple[Effect, ...]]]) -> None:
    """After settled, failed, partial and crashed calls; rows with open intents are in doubt."""
    state.begin_run(run(next(RUNS)))
    state.forget(KEYS, 0.0)
    life = Life(state)
    for number, (end, effects) in enumerate(steps):
        life.step(f"call-{number}", end, effects)
        assert {row.key: replace(row, run=None, plan=None) for row in state.rows()} == life.seen()
