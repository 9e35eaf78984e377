"""Find the run that last changed a resource, from the history. Reads the state."""

from __future__ import annotations

from datetime import UTC, datetime

from syncengine.resource import Key
from syncengine.state.history import HistoryEntry, last_writer
from syncengine.state.store import State


def last_change(state: State, key: Key) -> str | None:
    """Return a description of the run that last wrote a resource, or `None` when the history has none."""
    last = last_writer(state.history(key))
    return None if last is None or last.run is None else f"last changed by {_run(last)}"


def _run(entry: HistoryEntry) -> str:
    at = datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    who = f" by {entry.user}@{entry.host}" if entry.user else ""
    commit = f" at commit {entry.commit[:12]}" if entry.commit else ""
    job = f" ({entry.job_url})" if entry.job_url else ""
    return f"run {entry.run} ({entry.command}{commit}){who}, {at}{job}"
