"""Who runs this process: the CI job, as the environment tells, and the process itself, as the holder of a lock."""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that may hold a lock.

    `boot` distinguishes machines and boots with the same host name. `space` is the namespace of the process id, as in
    containers. `start` is the start of the process, since its id may be reused.
    """

    host: str
    user: str
    command: str
    pid: int
    start: str | None = None
    boot: str | None = None
    space: str | None = None
    job_url: str | None = None
    reason: str | None = None

    @classmethod
    def here(cls, command: str, environ: Mapping[str, str]) -> Holder:
        """Describe this process as the holder of a lock."""
        return cls(
            host=socket.gethostname(),
            user=_user(),
            command=command,
            pid=os.getpid(),
            start=_start(os.getpid()),
            boot=boot_id(),
            space=_space(),
            job_url=job_url(environ),
        )

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended, which is never known of another machine or container.

        After a reboot `boot` differs as on another machine, so that only the expiry of the lease counts.
        """
        if (self.host, self.boot, self.space) != (socket.gethostname(), boot_id(), _space()):
            return False
        return not _exists(self.pid) or (self.start is not None and _start(self.pid) not in (None, self.start))

    def is_stopped(self) -> bool:
        """Return whether the process lives on this machine but is suspended, by SIGSTOP or a debugger."""
        here = (self.host, self.boot, self.space) == (socket.gethostname(), boot_id(), _space())
        return here and not self.has_ended() and _state(self.pid) in ("T", "t")

    def __str__(self) -> str:
        job = f", {self.job_url}" if self.job_url else ""
        return f"{self.user} on {self.host} (process {self.pid}, {self.command}{job})"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's numeric user without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) not in ("Z", "X")


def _stat(pid: int) -> list[str]:
    """Return the fields of the process's /proc stat file (proc(5)) from the third on, or none if it is unavailable."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _state(pid: int) -> str | None:
    return next(iter(_stat(pid)), None)


def _start(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else None


def boot_id() -> str:
    """Return an id of the machine's current boot, which no other machine and no earlier boot has."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{uuid.getnode():x}"


def _space() -> str | None:
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return None
