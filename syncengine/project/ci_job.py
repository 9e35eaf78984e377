"""What the environment tells of the CI job that runs this process: whether it is one, its page, who began it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

OFF = frozenset({"", "0", "false", "no", "off"})
"""The values, in lower case, by which people turn a flag off."""
JOBS = (
    "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
    "{CI_JOB_URL}",
    "{SYSTEM_TEAMFOUNDATIONCOLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
    "https://bitbucket.org/{BITBUCKET_REPO_FULL_NAME}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
    "{CIRCLE_BUILD_URL}",
    "{BUILDKITE_BUILD_URL}",
    "{TRAVIS_JOB_WEB_URL}",
    "{BUILD_URL}",
)
"""URL templates of a CI job's page: GitHub, GitLab, Azure, Bitbucket, CircleCI, Buildkite, Travis, Jenkins."""
ACTORS = (
    "GITHUB_ACTOR",
    "GITLAB_USER_LOGIN",
    "BUILD_REQUESTEDFOR",
    "BITBUCKET_STEP_TRIGGERER_UUID",
    "CIRCLE_USERNAME",
    "BUILDKITE_BUILD_CREATOR",
    "BUILD_USER_ID",
)
"""Environment variables with the user who triggered a CI job, for most of the services in `JOBS`."""


def is_on(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a flag is set to anything but a word for off."""
    return environ.get(name, "").strip().lower() not in OFF


def is_ci(environ: Mapping[str, str]) -> bool:
    """Return whether this is the job of a CI service, which all of them say with `CI`."""
    return is_on(environ, "CI")


def actor(environ: Mapping[str, str]) -> str | None:
    """Return the user who triggered the CI job of this process, or `None` outside CI."""
    return next((environ[name] for name in ACTORS if environ.get(name)), None)


def job_url(environ: Mapping[str, str]) -> str | None:
    """Return the URL of the CI job that runs this process, or `None` outside CI."""
    for template in JOBS:
        try:
            return template.format_map(environ)
        except KeyError:
            continue
    return None
