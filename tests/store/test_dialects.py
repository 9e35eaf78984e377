"""Every statement of a state compiles for PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.schema import CreateIndex, CreateTable

from syncengine.effects import Effect
from syncengine.resource import Kind, Status
from syncengine.state.records import Attempt, CallFailure
from syncengine.state.store import State
from syncengine.state.tables import METADATA

from .estate import applied, applying, category, tag, whole

DIALECT = postgresql.dialect()


@pytest.mark.parametrize("table", METADATA.sorted_tables, ids=str)
def test_every_table_compiles_for_postgresql(table: sa.Table) -> None:
    """With its indexes, and names are sorted by code point."""
    text = str(CreateTable(table).compile(dialect=DIALECT))
    assert ("AUTOINCREMENT" in text) is False
    assert ('COLLATE "C"' in text) == (not {"name", "names"}.isdisjoint(table.c.keys()))
    for index in table.indexes:
        assert str(CreateIndex(index).compile(dialect=DIALECT)).startswith("CREATE INDEX")


def _everything(state: State) -> None:
    key = tag("a")
    applied(state, "c", whole(key, category="x"), whole(category("x")), a="1", x="2")
    state.intend({"d": Attempt("addKeywords", (Effect(key=key, keywords=("k",)),))})
    state.fail([CallFailure("d", (key,), "no")])
    state.end_attempts([], {"d": 1.0})
    assert [late.call for late in state.outstanding(60)] == ["d"]
    assert not state.outstanding(0.5)
    state.record([Effect(key=key, status=Status.RELEASED)])
    state.doubt([key])
    state.doubt_all()
    state.set_facts(team="t")
    state.session_opened("s")
    state.session_closed("s")
    assert list(state.rows(Kind.TAG)) == list(state.get([key]).values()) == state.members(["x"])
    assert not (state.open_sessions() or state.plan_ended("p"))
    assert state.facts() and state.runs(1) and state.history(key) and state.current_lock()
    state.forget([key])
    state.end_run("complete", {})


def test_every_other_statement_compiles_for_postgresql(path: Path) -> None:
    seen: list[Any] = []
    with applying(str(path)) as state:
        event.listen(state.database.engine, "before_execute", lambda _c, statement, *_: seen.append(statement))
        _everything(state)
    assert len(seen) > 30
    for statement in seen:
        if not isinstance(statement, Insert):  # each dialect inserts many rows in its own way
            assert "state_" in str(statement.compile(dialect=DIALECT))
