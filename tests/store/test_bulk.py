"""The number of SQL statements for a call does not grow with its number of tags."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from syncengine.effects import Effect
from syncengine.resource import Status
from syncengine.state.records import Attempt, CallFailure

from .estate import applied, applying, run, tag, whole


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
