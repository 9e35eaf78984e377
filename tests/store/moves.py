"""Changes of state of groups in an inbox, as the database itself sees them, beside those that the table allows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

from syncengine.state.inbox_states import FIRST, TRANSITIONS, GroupState, PostedTimeStatus, Transition

Move = tuple[str | None, str]


def targets(transition: Transition) -> set[GroupState]:
    """Where it may lead to, with whichever verdict."""
    if isinstance(transition.target, GroupState):
        return {transition.target}
    return {transition.target[outcome] for outcome in PostedTimeStatus}


MOVES: set[Move] = {(None, FIRST)} | {
    (source, target)
    for transition in TRANSITIONS.values()
    for source in transition.sources
    for target in targets(transition)
}
"""From state to state; None: the group was not there."""

TRIGGERS = """
CREATE TABLE moves (old, new);
CREATE TRIGGER arrived AFTER INSERT ON inbox_groups BEGIN INSERT INTO moves VALUES (NULL, new.state); END;
CREATE TRIGGER moved AFTER UPDATE OF state ON inbox_groups WHEN old.state <> new.state
BEGIN INSERT INTO moves VALUES (old.state, new.state); END;
"""


def moves_of(path: str) -> Callable[[], set[Move]]:
    """A function that returns every change of state which SQLite saw from now on, whoever made it."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(TRIGGERS)

    def moves() -> set[Move]:
        with closing(sqlite3.connect(path)) as database:
            return set(database.execute("SELECT old, new FROM moves"))

    return moves
