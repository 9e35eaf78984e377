"""Create new projects from the template files in `files/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from syncengine.document.nodes import quoted
from syncengine.errors import SyncengineError
from syncengine.manifest.files import Search
from syncengine.project.files import refuse_links, write_whole
from syncengine.project.model import FILE_NAME, MANIFESTS
from syncengine.tools.init.from_csv import MANIFEST, Generated
from syncengine.tools.init.jobs import UNCHOSEN, Installation, laid

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
    others = [each for each in there.files if each.name not in samples or not _is(each.path, samples[each.name])]
    return {
        name: text for name, text in contents.items() if not others or name not in samples or (folder / name).exists()
    }


def _is(file: Path, content: str | bytes) -> bool:
    """Return whether a file has this content. One of another size is not read."""
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
    """Write `contents` into the folder. An existing file stays, but for the lines that `.gitignore` lacks.

    Raise `SyncengineError` if the folder already has a project, or when writing fails.
    """
    if FILE_NAME in contents and is_project(folder):
        raise SyncengineError(f"{folder / FILE_NAME} exists: the folder already has a project", code="project-exists")
    written: list[str] = []
    kept: list[str] = []
    try:
        for name, content in contents.items():
            path = folder / name
            new: bytes | None = content.encode() if isinstance(content, str) else content
            if not (path.exists() or path.is_symlink()):
                refuse_links(path)
                path.parent.mkdir(parents=True, exist_ok=True)
            elif name == IGNORE and isinstance(content, str):
                there = path.read_bytes()
                missing = [line for line in content.encode().splitlines() if line not in there.splitlines()]
                end = b"" if there.endswith(b"\n") or not there else b"\n"
                new = there + end + b"".join(line + b"\n" for line in missing) if missing else None
            else:
                new = None
            if new is not None:
                write_whole(path, [new])
            (kept if new is None else written).append(name)
    except OSError as error:
        place = error.filename or folder
        raise SyncengineError(f"{place}: cannot be written: {error.strerror}", code="unwritable-file") from None
    return Begun(tuple(written), tuple(kept))


_SANDBOX = "It plans against the embedded sandbox, where nothing is real."
_SERVICE = "In syncengine.yaml, set baseUrl, apiKey: {{env: SYNCENGINE_API_KEY}} and team; then `{run}connector check`."
_ADOPT = "Record what the service already has, so that nothing is created twice: `{run}adopt tags.csv`."
_SETTINGS = {
    "github": (
        "On GitHub, under Settings > Secrets and variables > Actions, add the secret SYNCENGINE_STATE_READER: the URL "
        "of the state for a role that may only read.",
        "Under Settings > Environments, create `production`, allow only the branch {branch}, and add its secrets "
        "SYNCENGINE_API_KEY and SYNCENGINE_STATE: the key, and the URL of the state for a role that may write.",
    ),
    "gitlab": (
        "On GitLab, under Settings > CI/CD > Variables, add masked variables, each with its environment scope: "
        "SYNCENGINE_STATE with scope plan (the URL of the state for a role that may only read); SYNCENGINE_STATE and "
        "SYNCENGINE_API_KEY with scope production, protected (the URL for a role that may write, and the key); "
        "GITLAB_TOKEN with scope publish (a project access token: api, Reporter).",
        "Under Build > Pipeline schedules, add a weekly one, and a nightly one with the variable SYNCENGINE_JOB=drift.",
    ),
}
_CHECK = {
    "github": "Open a pull request. Once the check `Plan` has run, require it under Settings > Rules > Rulesets.",
    "gitlab": (
        "Open a merge request, and require its pipeline: Settings > Merge requests > Pipelines must succeed. After the "
        "first merge, let applies run in the order of merges: "
        "PUT /projects/:id/resource_groups/syncengine with process_mode=oldest_first."
    ),
}


def advice(made: Generated) -> Iterator[str]:
    """Yield what a person should know about the manifest that was made from a list."""
    if made.left_out:
        yield (
            f"Columns that may hold persons or addresses are left out: {', '.join(map(quoted, made.left_out))}; "
            f"the end of {MANIFEST} says how to use them."
        )
    if made.status is not None:
        live = " and ".join(quoted(value) if value else "empty" for value in made.status.live)
        numbers = made.status.counts.items()
        counts = ", ".join(f"{rows} × {quoted(value) if value else 'empty'}" for value, rows in numbers)
        yield (
            f"Column {quoted(made.status.column)} may say which matters are closed: {counts}. All rows become tags; "
            f"the `when` in {MANIFEST}, once you take its `#` away, keeps {live}. "
            "A matter that later leaves the list is forgotten: its tag goes on tagging time. With `policy.tagRemoval: "
            "retire` it loses its keywords instead."
        )


def next_steps(run: str, generated: str | None, host: str | None, branch: str, commit: str) -> list[str]:
    """Return the steps from a new project to the real service, and to the jobs of a host if one was chosen.

    `run` begins a command that names the folder. `generated` is the manifest that was made from the user's own data,
    `""` if there are samples, or `None` if the project was there before. `commit` is the step for the file with the
    jobs, which apply a push to `branch`.
    """
    steps = (
        [f"Check the fields that were guessed in {generated}, and `visibility: PRIVATE` there."] if generated else []
    )
    if generated is not None:
        steps.append(f"`{run}plan`, then `{run}apply`. {_SANDBOX}")
    service, adopt = _SERVICE.format(run=run), _ADOPT.format(run=run)
    if host is None:
        return [
            *steps,
            f"For the real service: {service[0].lower()}{service[1:]}",
            adopt,
            f"For pull requests: `{run}init --ci github`, or gitlab; it shows how to say what the jobs install.",
        ]
    return [
        *steps,
        service,
        "Create the database of the state, with a role that writes and one that may only SELECT, and set "
        "state: {env: SYNCENGINE_STATE}. A state in Git (git+ref://…) needs no database, but one "
        "URL that may push, and one that may only fetch.",
        adopt,
        f"Apply once by hand, since a job creates no state: `{run}apply --new-state`.",
        *(each.format(branch=branch) for each in _SETTINGS[host]),
        commit,
        _CHECK[host],
    ]


def of_file(file: str, installation: Installation, *, is_kept: bool) -> str:
    """Return the step for a file of jobs: it was there, or it is written, and its jobs install what was chosen."""
    if is_kept:
        return (
            f"{file} was not changed. If it lacks these jobs, move it away, repeat this command, and join both files;"
            " to change what its jobs install, edit SYNCENGINE_PACKAGE in it."
        )
    name, _, url = installation.package.partition(" @ ")
    name = name.partition("[")[0]
    if url or installation.mirror:
        return f"Commit {file}, whose jobs install {url or f'{name} from {installation.mirror}'}."
    if name.endswith((".whl", ".tar.gz", ".zip")):
        return f"Commit {file} and {name}, which the jobs install."
    return f"Make sure that {name} is your team's name on the index of the jobs, and commit {file}."
