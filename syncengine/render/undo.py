"""Run that a plan undoes, from its part of the JSON format → sentences for people; pure (docs/undo.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncengine.plan.model import Undo
from syncengine.render.escape import visible
from syncengine.render.words import count_of

if TYPE_CHECKING:
    from syncengine.render import formats


def undo_of(item: formats.UndoItem) -> Undo:
    """Return the undo that a plan's document describes."""
    selection = (item.targets, item.excludes)
    return Undo(item.run, item.command, item.started, item.commit, item.revert, item.forced, item.left_out, *selection)


def undo_sentences(undo: Undo) -> Iterator[str]:
    """Yield sentences on the undone run, on resources that are left out, and on reverting its commit in Git."""
    commit = f", commit {visible(undo.commit[:12])}" if undo.commit else ""
    started = visible(undo.started[:16].replace("T", " "))
    yield f"Undoes run {visible(undo.run)} ({visible(undo.command)} of {started} UTC{commit})."
    if undo.left_out:
        yield f"The plan leaves out {count_of(len(undo.left_out), 'resource')} of that run."
    yield "Time that has been tagged since then keeps its tags."
    if undo.revert:
        yield f"Revert it in Git too, because manifests that ask for it again are rejected: {visible(undo.revert)}"
