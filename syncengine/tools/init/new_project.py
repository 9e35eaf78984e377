"""Create a new project in a folder, without overwriting any file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from syncengine.errors import SyncengineError
from syncengine.manifest.files import Search
from syncengine.project.atomic_write import refuse_links, write_whole
from syncengine.project.model import FILE_NAME, MANIFESTS
from syncengine.tools.init.installation import UNCHOSEN, Installation
from syncengine.tools.init.jobs import laid

RENAMED = {"gitignore": ".gitignore"}
"""Template files stored under another name, because packaging tools would interpret the real name."""
IGNORE = ".gitignore"
SAMPLES = ("manifests/matters.yaml", "manifests/categories.yaml", "manifests/activity-types.yaml")
"""Sample manifests that are omitted when the user brings data."""

EXAMPLES = {"github": "ci/github-actions.yml", "gitlab": "ci/gitlab-ci.yml"}
"""The CI files, as stored in a project without a chosen host."""
CI = {"github": ".github/workflows/syncengine.yml", "gitlab": ".gitlab-ci.yml"}
"""The paths from the root of a repository at which each host reads its CI file."""
EXAMPLE_HEAD = """\
# An example to read: no host runs it here. `syncengine init --ci {host} --install REQUIREMENT` writes these jobs to
# {file}, with what they install.
#
"""


class Begun(NamedTuple):
    """Names of the files that were written, and of existing files that were kept."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def starter_files(installation: Installation = UNCHOSEN, ci: str | None = None, branch: str = "main") -> dict[str, str]:
    """Return the files of a new project by name, with the CI file of one host, or examples for all hosts.

    `installation` is the package that the CI jobs install, and `branch` the one whose pushes they apply.
    """
    root = files("syncengine.tools.init").joinpath("files")
    contents = {RENAMED.get(name, name): laid(text, installation, branch) for name, text in sorted(_below(root, ""))}
    if ci is None:
        heads = {EXAMPLES[host]: EXAMPLE_HEAD.format(host=host, file=file) for host, file in CI.items()}
        return {name: heads.get(name, "") + text for name, text in contents.items()}
    own = {name: text for name, text in contents.items() if name not in EXAMPLES.values()}
    return {**own, CI[ci]: contents[EXAMPLES[ci]]}


def beside_others(folder: Path, contents: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    """Return the files to write, without new samples if `folder` has other manifests, which may declare the same."""
    samples = {name: text for name, text in contents.items() if name.startswith(f"{MANIFESTS}/")}
    there = Search(folder)
    there.start(folder / MANIFESTS)
    if all(_holds(file.path, samples.get(file.name)) for file in there.files):
        return dict(contents)
    return {name: text for name, text in contents.items() if name not in samples or (folder / name).exists()}


def _holds(file: Path, content: str | bytes | None) -> bool:
    """Return whether a file has this content. Another file is not read."""
    if content is None:
        return False
    whole = content.encode() if isinstance(content, str) else content
    return file.stat().st_size == len(whole) and file.read_bytes() == whole


def is_project(folder: Path) -> bool:
    return (folder / FILE_NAME).exists() or (folder / FILE_NAME).is_symlink()


def refuse_subfolder(folder: Path) -> None:
    """Raise `SyncengineError` if the folder is not the root of its repository, where hosts look for CI files."""
    folder = folder.resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    if root != folder:
        message = f"hosts read CI files only at the root of a repository, {root}: run init there, or drop --ci"
        raise SyncengineError(message, code="not-the-root")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def begin(folder: Path, contents: Mapping[str, str | bytes]) -> Begun:
    """Write `contents` into the folder. Raise `SyncengineError` if it already has a project, or when writing fails."""
    if FILE_NAME in contents and is_project(folder):
        raise SyncengineError(f"{folder / FILE_NAME} exists: the folder already has a project", code="project-exists")
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
    """Write a file and return whether it changed; an existing file stays, or gets missing lines if `extend`."""
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
