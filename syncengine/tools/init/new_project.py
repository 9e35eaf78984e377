"""folder → a new project in it; overwrites no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from syncengine.errors import SyncengineError
from syncengine.project.atomic_write import refuse_links, write_whole
from syncengine.project.model import FILE_NAME
from syncengine.tools.init.installation import DEFAULT, Installation
from syncengine.tools.init.jobs import laid

RENAMED = {"gitignore": ".gitignore"}
"""Names under which packaging tools would take files for their own."""
IGNORE = ".gitignore"
SAMPLES = ("manifests/matters.yaml", "manifests/categories.yaml")
"""What gives way to manifests of the user's own data."""

EXAMPLES = {"github": "ci/github-actions.yml", "gitlab": "ci/gitlab-ci.yml"}
"""The files for CI, as they are in a project that chose no host."""
CI = {"github": ".github/workflows/syncengine.yml", "gitlab": ".gitlab-ci.yml"}
"""Where a host reads them, at the root of a repository."""


class Begun(NamedTuple):
    """Names of the files that were written, and of those that were there and are kept."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def starter_files(installation: Installation = DEFAULT, ci: str | None = None) -> dict[str, str]:
    """The files of a new project by name, with those of one host for CI, or examples of all.

    `installation` is what its CI jobs install.
    """
    root = files("syncengine.tools.init").joinpath("files")
    contents = {RENAMED.get(name, name): laid(text, installation) for name, text in sorted(_below(root, ""))}
    if ci is None:
        return contents
    own = {name: text for name, text in contents.items() if name not in EXAMPLES.values()}
    return {**own, CI[ci]: contents[EXAMPLES[ci]]}


def ci_files(installation: Installation, ci: str) -> dict[str, str]:
    """The files of one host alone, for a project that is there already."""
    return {CI[ci]: starter_files(installation, ci)[CI[ci]]}


def is_project(folder: Path) -> bool:
    return (folder / FILE_NAME).exists() or (folder / FILE_NAME).is_symlink()


def refuse_subfolder(folder: Path) -> None:
    """SyncengineError if the folder is inside a repository: no host reads files for CI there."""
    folder = folder.resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    if root != folder:
        message = f"CI files are read at the root of a repository, which is {root}: init there, or init without --ci"
        raise SyncengineError(message, code="not-the-root")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def begin(folder: Path, contents: Mapping[str, str | bytes]) -> Begun:
    """Write `contents` into the folder. SyncengineError if they begin a project and one is there, or on trouble."""
    if FILE_NAME in contents and is_project(folder):
        raise SyncengineError(f"{folder / FILE_NAME} exists: this folder already has a project", code="project-exists")
    written: list[str] = []
    kept: list[str] = []
    try:
        for name, content in contents.items():
            (written if _put(folder / name, content, extend=name == IGNORE) else kept).append(name)
    except OSError as error:
        place = error.filename or folder
        raise SyncengineError(f"{place}: cannot be written: {error.strerror}", code="unwritable-file") from None
    return Begun(tuple(written), tuple(kept))


def _put(path: Path, content: str | bytes, *, extend: bool) -> bool:
    """False if the file is there; one that may be extended gets the lines that it lacks."""
    if not (path.exists() or path.is_symlink()):
        refuse_links(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [content.encode() if isinstance(content, str) else content])
        return True
    if not extend or isinstance(content, bytes):
        return False
    there = path.read_text(encoding="utf-8", errors="surrogateescape")
    missing = [line for line in content.splitlines() if line not in there.splitlines()]
    if missing:
        end = "" if there.endswith("\n") or not there else "\n"
        text = there + end + "".join(f"{line}\n" for line in missing)
        write_whole(path, [text.encode(errors="surrogateescape")])
    return bool(missing)
