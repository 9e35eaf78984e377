"""A plan that reads during an apply never takes the row of an open call for certain."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event

from syncengine.effects import Effect
from syncengine.resource import Recorded
from syncengine.state.records import Attempt, Settlement
from syncengine.state.store import State, open_state

from .estate import applied, applying, category, tag, whole

A, X, Y = tag("a"), category("x"), category("y")
KEYS = (A, X, Y)
MOVED = Effect(key=A, fields={"category": "y"}, keywords=("new",), keywords_dropped=("old",), whole=True)

READINGS: dict[str, Callable[[State], Collection[Recorded]]] = {
    "rows": lambda state: list(state.rows()),
    "get": lambda state: state.get(KEYS).values(),
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
