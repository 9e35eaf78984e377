"""Create new projects from the template files in `files/`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from syncengine.document.nodes import quoted
from syncengine.errors import SyncengineError
from syncengine.manifest.files import Search
from syncengine.project.files import refuse_links, write_whole
from syncengine.project.git import default_branch
from syncengine.project.model import FILE_NAME, MANIFESTS
from syncengine.render.documents import dumped
from syncengine.render.schemas import schemas
from syncengine.tools.init.from_csv import MANIFEST, Generated
from syncengine.tools.init.jobs import UNCHOSEN, Installation, laid

RENAMED = {"gitignore": ".gitignore"}
"""Template files stored under another name, because packaging tools would interpret the real name."""
IGNORE = ".gitignore"
SAMPLES = ("manifests/matters.yaml", "manifests/categories.yaml", "manifests/activity-types.yaml")
"""Sample manifests that are omitted when the user brings data."""
SCHEMAS = ("manifest.schema.json", "project.schema.json")
"""The schemas of the files that people edit."""

EXAMPLES = {"github": "ci/github-actions.yml", "gitlab": "ci/gitlab-ci.yml"}
"""The CI files, as stored in a project without a chosen host."""
CI = {"github": ".github/workflows/syncengine.yml", "gitlab": ".gitlab-ci.yml"}
"""The paths from the root of a repository at which each host reads its CI file."""
EXAMPLE_HEAD = """\
# An example to read: no host runs it here. `syncengine init --ci {host} --install REQUIREMENT` writes these jobs to
# {file}, with what they install.
#
"""


class Created(NamedTuple):
    """The names of files that were written, and of existing ones that were kept, and the steps that follow."""

    written: Sequence[str]
    kept: Sequence[str]
    steps: Sequence[str]


def create(folder: Path, made: Generated | None, host: str | None, installation: Installation, run: str) -> Created:
    """Create a project in a folder, or write only the jobs of `host` into an existing one. Existing files are kept.

    `made` is generated from a person's own list, in place of the samples; the jobs install `installation`. `run` begins
    a command that names the folder, in the steps. Raise `SyncengineError` if the folder has a project already, if the
    host would not read jobs there, or when writing fails.
    """
    is_new = not os.path.lexists(folder / FILE_NAME)
    if host is not None:
        _refuse_subfolder(folder)
    elif not is_new:
        raise SyncengineError(f"{folder / FILE_NAME} exists: the folder already has a project", code="project-exists")
    branch = default_branch(folder)
    contents: dict[str, str | bytes] = dict(starter_files(installation, host, branch))
    if is_new:
        by_name = schemas()
        contents |= {f"schemas/{name}": dumped(by_name[name]) for name in SCHEMAS}
        left_out = {EXAMPLES[each] for each, file in CI.items() if (folder / file).exists()}  # its jobs say more
        if made is not None:
            left_out |= set(SAMPLES)
        elif _has_other_manifests(folder, contents):  # which may declare the same
            left_out |= {name for name in SAMPLES if not (folder / name).exists()}
        contents = {name: content for name, content in contents.items() if name not in left_out}
    elif host is not None:
        contents = {CI[host]: contents[CI[host]]}
    if made is not None:
        contents |= made.files
    written = list(_written(folder, contents))
    steps = _beginning(run, made) if is_new else []
    if host is None:
        steps += _steps_by_hand(run)
    else:
        file = folder / CI[host]
        is_ours = file.is_file() and file.read_bytes() == str(contents[CI[host]]).encode()
        steps += _steps_of_jobs(run, host, branch, installation if is_ours else None)
    return Created(written, [name for name in contents if name not in written], steps)


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


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def _has_other_manifests(folder: Path, contents: Mapping[str, str | bytes]) -> bool:
    """Return whether the folder has manifests that are not, or no longer, as `contents` has them."""
    there = Search(folder)
    there.start(folder / MANIFESTS)
    samples = {name: str(contents[name]).encode() for name in SAMPLES}
    return any(
        # A large file is not read.
        (sample := samples.get(each.name)) is None
        or each.path.stat().st_size != len(sample)
        or each.path.read_bytes() != sample
        for each in there.files
    )


def _refuse_subfolder(folder: Path) -> None:
    """Raise `SyncengineError` if the folder is not the root of its repository, where hosts look for CI files."""
    folder = folder.resolve()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    if root != folder:
        message = f"hosts read CI files only at the root of a repository, {root}: run init there, or drop --ci"
        raise SyncengineError(message, code="not-the-root")


def _written(folder: Path, contents: Mapping[str, str | bytes]) -> Iterator[str]:
    """Write `contents`, and yield the names. An existing file stays, but `.gitignore` gets the lines that it lacks."""
    try:
        for name, content in contents.items():
            path = folder / name
            new = content.encode() if isinstance(content, str) else content
            if os.path.lexists(path):
                if name != IGNORE:
                    continue
                there = path.read_bytes()
                missing = [line for line in new.splitlines() if line not in there.splitlines()]
                if not missing:
                    continue
                end = b"" if there.endswith(b"\n") or not there else b"\n"
                new = there + end + b"".join(line + b"\n" for line in missing)
            else:
                refuse_links(path)
                path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, [new])
            yield name
    except OSError as error:
        place = error.filename or folder
        raise SyncengineError(f"{place}: cannot be written: {error.strerror}", code="unwritable-file") from None


# --- what a person is told

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


def _beginning(run: str, made: Generated | None) -> list[str]:
    """Return the first steps in a new project. `made` has the manifest from the user's own data, if there are any."""
    steps = [f"`{run}plan`, then `{run}apply`. It plans against the embedded sandbox, where nothing is real."]
    return (
        steps
        if made is None
        else [f"Check the fields that were guessed in {MANIFEST}, and `visibility: PRIVATE` there.", *steps]
    )


def _steps_by_hand(run: str) -> list[str]:
    """Return the steps to the real service, and to the jobs of a host."""
    service = _SERVICE.format(run=run)
    return [
        f"For the real service: {service[0].lower()}{service[1:]}",
        _ADOPT.format(run=run),
        f"For pull requests: `{run}init --ci github`, or gitlab; it shows how to say what the jobs install.",
    ]


def _steps_of_jobs(run: str, host: str, branch: str, installation: Installation | None) -> list[str]:
    """Return the steps to the real service, and to jobs of a host that apply a push to `branch`.

    `installation` is what the jobs install, or `None` if their file was there before.
    """
    return [
        _SERVICE.format(run=run),
        "Create the database of the state, with a role that writes and one that may only SELECT, and set "
        "state: {env: SYNCENGINE_STATE}. A state in Git (git+ref://…) needs no database, but one "
        "URL that may push, and one that may only fetch.",
        _ADOPT.format(run=run),
        f"Apply once by hand, since a job creates no state: `{run}apply --new-state`.",
        *(each.format(branch=branch) for each in _SETTINGS[host]),
        _of_file(CI[host], installation),
        _CHECK[host],
    ]


def _of_file(file: str, installation: Installation | None) -> str:
    if installation is None:
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
