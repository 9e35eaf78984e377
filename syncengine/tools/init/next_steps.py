"""What to do after `init` → lines of text, in the order in which they are done. Pure."""

from __future__ import annotations

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


def in_sandbox(run: str, generated: str | None) -> list[str]:
    """Return the first steps of a new project. `run` begins a command that names the folder.

    `generated` is the manifest that was made from the user's own data, if any.
    """
    check = [f"Check the fields that were guessed in {generated}."] if generated else []
    return [*check, f"`{run}plan`, then `{run}apply`. {_SANDBOX}"]


def of_project(run: str) -> list[str]:
    """Return the steps from the sandbox to the real service, and to the jobs of a host."""
    return [
        f"For the real service: {_SERVICE[0].lower()}{_SERVICE[1:].format(run=run)}",
        _ADOPT.format(run=run),
        f"For pull requests: `{run}init --ci github --install REQUIREMENT`, or gitlab.",
    ]


def of_jobs(run: str, host: str, file: str, branch: str, installation: Installation) -> list[str]:
    """Return the steps until the jobs of a host work; `file` has them, and a push to `branch` applies."""
    return [
        _SERVICE.format(run=run),
        "Create the database of the state, with a role that writes and one that may only SELECT, and set "
        "state: {env: SYNCENGINE_STATE}.",
        _ADOPT.format(run=run),
        f"Apply once by hand, since a job creates no state: `{run}apply --new-state`.",
        *(each.format(branch=branch) for each in _SETTINGS[host]),
        _commit(file, installation),
        _CHECK[host],
    ]


def _commit(file: str, installation: Installation) -> str:
    name, _, url = installation.package.partition(" @ ")
    name = name.partition("[")[0]
    if url or installation.mirror:
        return f"Commit {file}, whose jobs install {url or f'{name} from {installation.mirror}'}."
    if name.endswith((".whl", ".tar.gz", ".zip")):
        return f"Commit {file} and {name}, which the jobs install."
    return f"Make sure that {name} is your team's name on the index of the jobs, and commit {file}."
