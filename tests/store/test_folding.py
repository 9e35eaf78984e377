"""The tables hold what the pure fold of effects says, whatever happens in whatever order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Row, Source, Status
from syncengine.state.store import CallFailure, Intent, Settlement, State
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
CALLS = st.lists(LEAVES, min_size=1, max_size=3, unique_by=lambda leave: leave.key).map(tuple)
ENDS = st.sampled_from(["settle", "identify", "part", "fail", "crash", "stop", "record"])


@dataclass
class Model:
    """The state as plain values."""

    rows: dict[Key, Recorded] = field(default_factory=dict)
    open: set[Key] = field(default_factory=set)

    def intend(self, leaves: tuple[Effect, ...]) -> None:
        for leave in leaves:
            row = intended(self.rows.get(leave.key), leave)
            former = self.rows.get(leave.former) if leave.former and leave.former.kind is leave.key.kind else None
            if former and row.server_id is None and row.status is not Status.DELETED:
                row = replace(row, server_id=former.server_id)
            self.rows[leave.key] = row
            self.open.add(leave.key)

    def settle(self, leaves: tuple[Effect, ...], server_id: str | None = None) -> None:
        for leave in leaves:
            row = settled(self.rows[leave.key], leave)
            named = server_id is not None and row.status is not Status.DELETED
            self.rows[leave.key] = replace(row, server_id=server_id) if named else row
            self.open.discard(leave.key)

    def doubt(self, keys: set[Key]) -> None:
        self.rows |= {key: replace(self.rows[key], doubtful=True) for key in keys}
        self.open -= keys

    def record(self, leaves: tuple[Effect, ...]) -> None:
        for leave in leaves:
            if old := self.rows.get(leave.key):
                new = settled(intended(old, leave), leave)
                status = leave.status or old.status
                self.rows[leave.key] = replace(new, doubtful=old.doubtful, confirmed=old.confirmed, status=status)

    def seen(self) -> dict[Key, Recorded]:
        return {key: replace(row, doubtful=row.doubtful or key in self.open) for key, row in self.rows.items()}


@dataclass
class Life:
    """A state and its model, through the same steps; `ends` are what may become of a call."""

    state: State
    model: Model
    runs: int = 1

    def step(self, number: int, end: str, leaves: tuple[Effect, ...]) -> None:
        call = f"call-{number}"
        if end != "record":
            self.state.intend([Intent(call, "upsertTags", leaves)])
            self.model.intend(leaves)
        ends: dict[str, Callable[[str, tuple[Effect, ...]], None]] = {
            "settle": self._settle,
            "identify": self._identify,
            "part": self._part,
            "fail": self._fail,
            "crash": self._crash,
            "stop": self._stop,
            "record": self._record,
        }
        ends[end](call, leaves)

    def _identify(self, call: str, leaves: tuple[Effect, ...]) -> None:
        self._settle(call, leaves, call)

    def _record(self, _call: str, leaves: tuple[Effect, ...]) -> None:
        self.state.record(leaves)
        self.model.record(leaves)

    def _stop(self, call: str, leaves: tuple[Effect, ...]) -> None:
        self.state.end_run("interrupted", {})
        self._crash(call, leaves)

    def _settle(self, call: str, leaves: tuple[Effect, ...], server_id: str | None = None) -> None:
        ids = {leave.key: server_id for leave in leaves} if server_id else {}
        self.state.settle([Settlement(call, leaves, ids)])
        self.model.settle(leaves, server_id)

    def _part(self, call: str, leaves: tuple[Effect, ...]) -> None:
        self._settle(call, leaves[:1])
        if leaves[1:]:
            self._fail(call, leaves[1:])

    def _fail(self, call: str, leaves: tuple[Effect, ...]) -> None:
        self.state.fail([CallFailure(call, tuple(leave.key for leave in leaves), "no")])
        self.model.doubt({leave.key for leave in leaves})

    def _crash(self, _call: str, _leaves: tuple[Effect, ...]) -> None:
        """To a state, a dead run is one without an end that another begins after."""
        self.runs += 1
        self.state.begin_run(run(self.runs))
        self.model.doubt(set(self.model.open))


@settings(max_examples=tried(40), deadline=None)
@given(st.lists(st.tuples(ENDS, CALLS), min_size=1, max_size=8))
def test_the_tables_hold_the_fold_of_the_leaves(steps: list[tuple[str, tuple[Effect, ...]]]) -> None:
    """Intents, ends, partial ends and deaths leave the rows that `effects` computes; open intents are doubt."""
    with tempfile.TemporaryDirectory() as folder, applying(str(Path(folder) / "state.db")) as state:
        life = Life(state, Model())
        for number, (end, leaves) in enumerate(steps):
            life.step(number, end, leaves)
            rows = {row.key: replace(row, run=None, plan=None) for row in state.rows()}
            assert rows == life.model.seen()
