"""A plan that reads during an apply never takes the row of an open call for certain."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from sqlalchemy import event

from syncengine.effects import Effect
from syncengine.resource import Recorded
from syncengine.state.records import Attempt, Settlement
from syncengine.state.store import State, open_state

from .estate import applied, applying, category, run, tag, whole

A, X, Y = tag("a"), category("x"), category("y")
KEYS = (A, X, Y)
MOVED = Effect(key=A, fields={"category": "y"}, keywords=("new",), keywords_dropped=("old",), whole=True)

READINGS: dict[str, Callable[[State], Collection[Recorded]]] = {
    "rows": lambda state: list(state.rows()),
    "get": lambda state: state.get(KEYS).values(),
    "members": lambda state: [*state.members(["x"]), *state.members(["y"])],
}


class Meanwhile:
    """Acts before the n-th statement that an engine executes from now on."""

    def __init__(self, state: State, number: int, act: Callable[[], None]) -> None:
        self.executed = 0
        self._number, self._act = number, act
        event.listen(state.database.engine, "before_cursor_execute", self._count)

    def _count(self, *_: Any) -> None:
        if self.executed == self._number:
            self._act()
        self.executed += 1


@pytest.mark.parametrize("begins", [True, False], ids=["begins", "ends"])
@pytest.mark.parametrize("reading", READINGS)
def test_a_call_that_begins_or_ends_during_a_reading_is_seen_whole(url: str, reading: str, begins: bool) -> None:
    """Before any statement of the reader: the row is as before the call, in doubt, or as after it."""
    statements, number = 1, 0
    while number < statements:
        with applying(url, run(number + 1)) as writer, open_state(url, write=False) as reader:
            applied(writer, f"x {number}", whole(X), whole(Y), x="1", y="2")
            before = Effect(key=A, fields={"category": "x"}, keywords=("old",), keywords_dropped=("new",), whole=True)
            applied(writer, f"a {number}", before)
            intend = lambda: writer.intend({"move": Attempt("upsertTags", (MOVED,))})  # noqa: E731 - two short steps of one story
            settle = lambda: writer.settle([Settlement("move", (MOVED,))])  # noqa: E731 - two short steps of one story
            if not begins:
                intend()
            meanwhile = Meanwhile(reader, number, intend if begins else settle)
            for row in READINGS[reading](reader):
                known = (row.body.fields.get("category"), row.body.keywords)
                certain = [("x", ("old",)), ("y", ("new",))]
                assert row.key != A or row.doubtful or known in certain, (number, known)
            statements = meanwhile.executed
        number += 1
    assert statements > 0
