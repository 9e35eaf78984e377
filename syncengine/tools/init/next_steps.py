"""What to do after `init` → lines of text, in the order in which they are done. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from syncengine.document.nodes import quoted
from syncengine.tools.init.from_csv import MANIFEST, Generated
from syncengine.tools.init.installation import Installation

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
        live = " and ".join(map(_cell, made.status.live))
        counts = ", ".join(f"{rows} × {_cell(value)}" for value, rows in made.status.counts.items())
        yield (
            f"Column {quoted(made.status.column)} may say which matters are closed: {counts}. All rows become tags; "
            f"the `when` in {MANIFEST}, once you take its `#` away, keeps {live}. "
            "A matter that later leaves the list is forgotten: its tag goes on tagging time. With `policy.tagRemoval: "
            "retire` it loses its keywords instead."
        )
    if made.first_row is not None:
        yield (
            f"The first line was taken for the header, but {quoted(made.first_row)} in it is like the values below. If "
            "it is a row, write the names of the columns above it, or `columns: [number, title]` into `forEach`."
        )
    if made.total is not None:
        yield f"Line {made.total[0]} is perhaps no matter ({quoted(made.total[1])}): if so, delete it from the file."


def _cell(value: str) -> str:
    return quoted(value) if value else "empty"


def in_sandbox(run: str, generated: str | None) -> list[str]:
    """Return the first steps of a new project. `run` begins a command that names the folder.

    `generated` is the manifest that was made from the user's own data, if any.
    """
    check = (
        [f"Check the fields that were guessed in {generated}, and `visibility: PRIVATE` there."] if generated else []
    )
    return [*check, f"`{run}plan`, then `{run}apply`. {_SANDBOX}"]


def of_project(run: str) -> list[str]:
    """Return the steps from the sandbox to the real service, and to the jobs of a host."""
    return [
        f"For the real service: {_SERVICE[0].lower()}{_SERVICE[1:].format(run=run)}",
        _ADOPT.format(run=run),
        f"For pull requests: `{run}init --ci github`, or gitlab; it shows how to say what the jobs install.",
    ]


def of_jobs(run: str, host: str, branch: str, commit: str) -> list[str]:
    """Return the steps until the jobs of a host work; a push to `branch` applies.

    `commit` is the step for the file with the jobs.
    """
    return [
        _SERVICE.format(run=run),
        "Create the database of the state, with a role that writes and one that may only SELECT, and set "
        "state: {env: SYNCENGINE_STATE}. A state in Git (git+ref://…) needs no database, but one "
        "URL that may push, and one that may only fetch.",
        _ADOPT.format(run=run),
        f"Apply once by hand, since a job creates no state: `{run}apply --new-state`.",
        *(each.format(branch=branch) for each in _SETTINGS[host]),
        commit,
        _CHECK[host],
    ]


def of_kept(file: str, installed: Installation | None) -> str:
    """Return the step for a file of jobs that was there, and whose jobs install `installed`, if that can be told."""
    if installed is None:
        return (
            f"{file} was not changed. If it lacks these jobs, move it away, repeat this command, and join both files."
        )
    return (
        f"{file} was not changed: its jobs still install {_named(installed)}. To change that, edit SYNCENGINE_PACKAGE "
        "in it, or move it away and repeat this command; then commit it."
    )


def _named(installation: Installation) -> str:
    return installation.package + (f" from {installation.mirror}" if installation.mirror else "")


def of_written(file: str, installation: Installation) -> str:
    """Return the step that commits a file of jobs, which install what was chosen."""
    name, _, url = installation.package.partition(" @ ")
    name = name.partition("[")[0]
    if url or installation.mirror:
        return f"Commit {file}, whose jobs install {url or f'{name} from {installation.mirror}'}."
    if name.endswith((".whl", ".tar.gz", ".zip")):
        return f"Commit {file} and {name}, which the jobs install."
    return f"Make sure that {name} is your team's name on the index of the jobs, and commit {file}."
