"""The tables hold what a pure fold of the effects computes, whatever happens in whatever order. How many SQL statements
a call takes, and that a reader between any two sees a call whole."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import event

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Row, Source, Status
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import State, open_state
from tests.support.profiles import tried

from .estate import applied, applying, category, run, tag, whole

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


A, X, Y = tag("a"), category("x"), category("y")
MOVED = Effect(key=A, fields={"category": "y"}, keywords=("new",), keywords_dropped=("old",), whole=True)

READINGS: dict[str, Callable[[State], Collection[Recorded]]] = {
    "rows": lambda state: list(state.rows()),
    "get": lambda state: state.get((A, X, Y)).values(),
    "members": lambda state: [*state.members(["x"]), *state.members(["y"])],
}


def act_before(state: State, number: int, act: Callable[[], None]) -> list[Any]:
    """Act before the n-th statement that the state executes from now on; the list of statements grows with each."""
    executed: list[Any] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        executed.append(statement)
        if len(executed) == number + 1:
            act()

    event.listen(state.database.engine, "before_cursor_execute", count)
    return executed


@pytest.mark.parametrize("begins", [True, False], ids=["begins", "ends"])
@pytest.mark.parametrize("reading", READINGS)
def test_a_call_that_begins_or_ends_during_a_reading_is_seen_whole(url: str, reading: str, begins: bool) -> None:
    """Before any statement of the reader: the row is as before the call, in doubt, or as after it."""
    before = Effect(key=A, fields={"category": "x"}, keywords=("old",), keywords_dropped=("new",), whole=True)
    statements, number = 1, 0
    with applying(url) as writer:
        applied(writer, "x", whole(X), whole(Y), x="1", y="2")
        while number < statements:
            call = f"move {number}"
            applied(writer, f"a {number}", before)
            intend = partial(writer.intend, {call: Attempt("upsertTags", (MOVED,))})
            settle = partial(writer.settle, [Settlement(call, (MOVED,))])
            if not begins:
                intend()
            with open_state(url, write=False) as reader:
                executed = act_before(reader, number, intend if begins else settle)
                rows = READINGS[reading](reader)
            for row in rows:
                known = (row.body.fields.get("category"), row.body.keywords)
                certain = [("x", ("old",)), ("y", ("new",))]
                assert row.key != A or row.doubtful or known in certain, (number, known)
            if begins:
                settle()
            statements = len(executed)
            number += 1
    assert statements > 0


def statements(url: str, number: int, size: int) -> int:
    """The number of statements for calls that create, change, delete and fail, with `size` tags each."""
    counted = []

    def count(_c: Any, _u: Any, _statement: str, parameters: Any, _x: Any, _many: bool) -> None:
        counted.append(len(parameters) if isinstance(parameters, list) else 1)  # an `executemany` sends each set

    with applying(url, run(number)) as state:
        event.listen(state.database.engine, "before_cursor_execute", count)
        keys = [tag(f"{number}-{n}") for n in range(size)]
        calls = {
            "makes": tuple(whole(key, description="a") for key in keys),
            "changes": tuple(whole(key, description="b") for key in keys),
            "takes": tuple(Effect(key=key, status=Status.DELETED) for key in keys),
        }
        for call, effects in calls.items():
            applied(state, call, *effects)
        state.intend({"refused": Attempt("upsertTags", calls["makes"])})
        state.fail([CallFailure("refused", tuple(keys), "no")])
        state.record(calls["changes"])
        state.end_run("complete", {})
    return sum(counted)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_statements_of_a_call_do_not_depend_on_its_size(url: str) -> None:
    """With a database server, each statement may be a round trip."""
    few, many = statements(url, 1, 2), statements(url, 2, 500)
    assert many <= few + 5 < 130
