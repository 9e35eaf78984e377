"""The run that a plan takes back → its part of the machine format, and sentences for people; pure (docs/undo.md)."""

from __future__ import annotations

from collections.abc import Iterator

from syncengine.plan.model import Undo
from syncengine.render import formats
from syncengine.render.escape import visible
from syncengine.render.words import count_of


def undo_item(undo: Undo) -> formats.UndoItem:
    selection = (undo.targets, undo.excludes)
    return formats.UndoItem(
        undo.run, undo.command, undo.started, undo.commit, undo.revert, undo.forced, undo.left_out, *selection
    )


def undo_of(item: formats.UndoItem) -> Undo:
    """The undo that a document shows."""
    selection = (item.targets, item.excludes)
    return Undo(item.run, item.command, item.started, item.commit, item.revert, item.forced, item.left_out, *selection)


def undo_sentences(undo: Undo) -> Iterator[str]:
    """Sentences on the run, on changes of it that stay, and on taking it back in Git too."""
    commit = f", commit {visible(undo.commit[:12])}" if undo.commit else ""
    started = visible(undo.started[:16].replace("T", " "))
    yield f"Takes back run {visible(undo.run)} ({visible(undo.command)} of {started} UTC{commit})."
    if undo.left_out:
        yield f"{count_of(len(undo.left_out), 'resource')} of it {'is' if len(undo.left_out) == 1 else 'are'} left out."
    yield "Time that was tagged meanwhile keeps its tags."
    if undo.revert:
        yield f"Take it back in Git too, since manifests that ask for it again are refused: {visible(undo.revert)}"
