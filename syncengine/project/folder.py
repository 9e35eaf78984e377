"""Create the folder `.syncengine` for state, cache and sandbox data, none of which is committed (docs/manifests.md)."""

from __future__ import annotations

from pathlib import Path

from syncengine.project.atomic_write import replace_whole

NAME = ".syncengine"
IGNORING = "# Created by syncengine: the files in this folder belong to this machine.\n*\n"


def make(folder: Path) -> None:
    """Create `folder` and its parents; give a new `.syncengine` among them a `.gitignore` that hides it from Git."""
    own = next((each for each in (folder, *folder.parents) if each.name == NAME and not each.exists()), None)
    folder.mkdir(parents=True, exist_ok=True)
    if own is not None:
        replace_whole(own / ".gitignore", [IGNORING.encode()])
