"""Run Git with settings of our own, so that it answers alike whatever the user has set.

The user's settings still say how files are converted (attributes, filters, line ends), what is ignored, and how to
log in. What would run a program, trust the index, or change an answer's form is overridden on the command line.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

SECONDS = 120.0
"""The time limit of a command that may hash or write every file of a repository."""

LITERALLY: Mapping[str, str] = {"GIT_LITERAL_PATHSPECS": "1"}
"""An environment in which Git takes a path as it is written."""

SETTINGS: Mapping[str, str] = {
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.hooksPath": os.devnull,
    "core.ignoreStat": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "core.warnAmbiguousRefs": "false",
    "color.ui": "false",
    "diff.ignoreSubmodules": "none",
    "diff.noprefix": "false",
    "diff.orderFile": os.devnull,
    "diff.relative": "false",
    "diff.renames": "true",
    "gc.auto": "0",
    "log.follow": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "merge.default": "text",
    "merge.directoryRenames": "conflict",
    "merge.renames": "true",
    "merge.renormalize": "false",
}
"""Settings of every command. What only shows something to people, such as a pager, is left to Git, which asks a
terminal first."""

OF_A_REPOSITORY = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
        *("GIT_NAMESPACE", "GIT_COMMON_DIR", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE"),
    }
)
"""Variables that name a repository: hooks set them for their own one, which may not be that of the project."""

KEPT = frozenset(
    {
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
        *("GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_HTTP_USER_AGENT", "GIT_PROXY_COMMAND"),
        *("GIT_EXEC_PATH", "GIT_ATTR_NOSYSTEM", "GIT_PROTOCOL"),
    }
)
"""Variables with which users say where settings are and how to log in; those of other names are dropped."""

KEPT_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_LFS_")

OURS = {
    "GIT_OPTIONAL_LOCKS": "0",  # or a mere question would rewrite the index
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",  # as `is_in_repository`: a volume may be mounted in a checkout
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
    "LANGUAGE": "en",  # messages are shown inside ours; LC_ALL=C would take the user's encoding from filters
}

CURE = "run `git status` to see the cure"
"""The advice in messages about a checkout that Git refuses to read."""

READS_ONLY = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Variables of a command that runs no program and opens no connection, also for versions before 2.44 of Git."""


def command(folder: Path, words: Sequence[str], *, reads_only: bool = False) -> list[str]:
    """Return the command line of Git in a folder. Only with `reads_only` may another user own the repository.

    Git distrusts such a repository because its settings name programs, which a command that only reads never runs.
    """
    settings = {**SETTINGS, "safe.directory": "*"} if reads_only else SETTINGS
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return ["git", "--no-pager", *options, "-C", str(folder), *words]


def run(
    folder: Path,
    words: Sequence[str],
    *,
    seconds: float,
    reads_only: bool = False,
    standard_input: bytes = b"",
    environ: Mapping[str, str] | None = None,
    is_own: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run Git in a folder, with further variables. Raise `OSError` or `TimeoutExpired` when it does not answer.

    With `is_own`, `environ` says which repository is meant, one of our own, and no variable of another has a part.
    """
    surroundings = of_no_repository() if is_own else of_folder(folder)
    process = subprocess.Popen(  # noqa: S603 - fixed words, ids from Git, and names behind `--`
        command(folder, words, reads_only=reads_only),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**surroundings, **(READS_ONLY if reads_only else {}), **(environ or {})},
        start_new_session=True,  # no terminal to ask on, and no Ctrl-C in the middle of a push
    )
    try:
        out, errors = process.communicate(standard_input, timeout=seconds)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its programs too: ssh, or a filter, would keep the pipes open
            process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def ask(
    folder: Path,
    *words: str,
    seconds: float = SECONDS,
    reads_only: bool = True,
    standard_input: bytes = b"",
    environ: Mapping[str, str] = LITERALLY,
) -> subprocess.CompletedProcess[bytes] | None:
    """Run Git as `run` does, by default only to read. Return `None` when it does not answer."""
    try:
        return run(
            folder, words, seconds=seconds, reads_only=reads_only, standard_input=standard_input, environ=environ
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def author_of(when: str) -> dict[str, str]:
    """Return the variables that name syncengine as the author of a commit. `when` is a date as Git reads it."""
    who = {"NAME": "syncengine", "EMAIL": "syncengine@localhost", "DATE": when}
    return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}


def advice(errors: str) -> str:
    """Return what to do about a repository that Git refuses to use, by the command that Git's own message names."""
    named = (line.strip() for line in errors.splitlines() if line.strip().startswith("git config "))
    command = next(named, None)
    return f"if you trust its owner, run `{command}`" if command else CURE


def of_folder(folder: Path) -> dict[str, str]:
    """Return the environment for Git in a folder; variables may name the repository only when no parent has `.git`."""
    named = {} if is_in_repository(folder) else {n: v for n, v in os.environ.items() if n in OF_A_REPOSITORY}
    return {**of_no_repository(), **named}


def is_in_repository(folder: Path) -> bool:
    """Return whether the folder or one of its parents contains `.git`, without asking Git."""
    place = folder.resolve()
    markers = (each / ".git" for each in (place, *place.parents))
    # Git ends its search at a file that names a repository, and at a folder with a HEAD.
    return any(
        marker.exists() and (marker.is_file() or not os.access(marker, os.X_OK) or os.path.lexists(marker / "HEAD"))
        for marker in markers
    )


def names_repository(folder: Path) -> bool:
    """Return whether Git may find a repository for a folder; if not, there is no need to start Git."""
    return "GIT_DIR" in os.environ or is_in_repository(folder)


def of_no_repository() -> dict[str, str]:
    """Return the environment for Git without variables that name a repository or change an answer."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in KEPT or name.startswith(KEPT_PREFIXES)
    }
    kept.pop("SSH_ASKPASS", None)  # it opens a window
    return {**kept, **OURS}
