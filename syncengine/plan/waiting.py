"""Explain from the history why changes wait that the base of a pull request makes too. Reads the state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from syncengine.resource import Key
from syncengine.state.history import REFUSED, HistoryEntry, Run, last_writer
from syncengine.state.store import State

LOOKED_UP = 200
"""The number of changes up to which the history of each change is read."""
LAST_RUNS = 50
LEFT_OVER = "not completed by the last apply, or its data has changed since"
NOT_APPLIED = "merged but not yet applied"


def why_they_wait(addresses: Collection[str], commit: str, state: State) -> dict[str, str]:
    """Return why the change at each address waits, with the base at `commit`. Read nothing when no change waits."""
    if not addresses:
        return {}
    general = _general(commit, state.runs(LAST_RUNS))
    if len(addresses) > LOOKED_UP:
        return dict.fromkeys(addresses, general)
    return {address: _reason(state.history(Key.parse(address)), general) for address in addresses}


def _general(commit: str, runs: Iterable[Run]) -> str:
    """Return the general reason for waiting: the last apply was refused, preceded the merge, or applied only a part.

    The history does not record the changes of a refused run. Only a run of `commit` itself asked for all that wait.
    """
    applies = [run for run in runs if (run.commit == commit if run.outcome == REFUSED else run.limits or run.plan)]
    last = next(iter(applies), None)
    if last is not None and last.outcome == REFUSED:
        return f"refused before: {_run(last.id, last.commit, last.ended or last.started)}: {last.reason}"
    done = next((run for run in applies if run.outcome not in (None, REFUSED)), None)
    if done is None:
        return f"{NOT_APPLIED}: nothing has been applied yet"
    why = LEFT_OVER if done.commit == commit else NOT_APPLIED
    return f"{why}: the last apply was {_run(done.id, done.commit, done.ended or done.started)}"


def _reason(history: list[HistoryEntry], general: str) -> str:
    """Return why a change waits: its call failed or has an unknown outcome, its row was edited, or else `general`."""
    last = last_writer(history)
    if last is None:
        return general
    when = _run(last.run, last.commit, last.at)
    if last.outcome == "failed":
        words = f": {last.detail.message}" if last.detail.message else ""
        return f"refused before: {when}{words}"
    if last.outcome == "intended":
        return f"sent before with an unknown outcome: {when}"
    by_hand = "state forget" if last.outcome == "forgotten" else last.command or ""
    if by_hand.startswith(("state", "adopt")):
        return f"edited by hand in the state: `{by_hand}`, {when}"
    return general


def _run(id: str | None, commit: str | None, at: float) -> str:
    """Return a run's id, commit and time as part of a sentence."""
    names = (f"run {id}" if id else "", f"commit {commit[:12]}" if commit else "")
    return ", ".join((*filter(None, names), f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"))
