"""The SQL statements of a state: how many a call takes, and that a reader between any two sees a call whole."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event

from syncengine.effects import Effect
from syncengine.resource import Recorded, Status
from syncengine.state.records import Attempt, CallFailure, Settlement
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
