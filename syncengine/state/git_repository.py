"""A private bare repository beside the project, and the remote that it fetches from and pushes to, by calling `git`.

Hooks, prompts and settings of the project's repository are disabled; the user's own settings for credentials and
proxies apply. URLs reach Git through its environment, never as arguments of a command.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from syncengine.errors import SyncengineError
from syncengine.project import git_environment
from syncengine.project.files import replace_whole
from syncengine.project.git_ref import without_login

# A push and the look after it take at most the 60 seconds of a lease, so that a slow one does not outlive the lock.
LOOK_SECONDS, FETCH_SECONDS, PUSH_SECONDS = 20.0, 120.0, 40.0
LOCAL_SECONDS = 60.0
"""The seconds that a command without the network may take: what takes as long as a lease hangs."""
MANY_FILES = 4000
"""The number of loose objects from which the local repository is packed, fewer than those of Git's own `gc.auto`."""

SETTINGS: Mapping[str, str] = {
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "protocol.ssh.allow": "always",
    "protocol.https.allow": "always",
    "protocol.http.allow": "always",
    "transfer.fsckObjects": "true",
    "push.gpgSign": "false",
    "push.followTags": "false",
    "push.recurseSubmodules": "no",
    "push.negotiate": "false",
    "push.pushOption": "",
    "fetch.prune": "false",
    "fetch.recurseSubmodules": "no",
    "fetch.writeCommitGraph": "false",
}
"""Settings beside those of `git_environment`."""

LOGIN_SETTINGS = r"^(http\..*|credential\..*|core\.sshcommand)$"

OWN = ("local", "worktree")
"""The scopes of a repository's own settings. Git reads the other scopes anyway, and must not send a header twice."""

REMOTE = "syncengine-state"
"""The name of the remote in our own settings. One in the user's settings, such as `state`, would add its URL to it."""

SEEN = "refs/heads/seen"
"""The local ref that names the snapshot last seen."""

BUSY, REFUSED = "state-busy", "state-refused"

_ID = re.compile(r"[0-9a-f]{40}")
_LOGIN = re.compile(
    r"authentication failed|permission denied|could not read (?:username|password)|invalid credentials|\b40[13]\b"
    r"|host key verification failed|access denied",
    re.IGNORECASE,
)
_NOWHERE = re.compile(r"does not appear to be a git repository|not found|does not exist", re.I)


class Superseded(Exception):
    """The error when the snapshot is no longer the one that was read, or another write seems to be under way."""


class PushUnknown(SyncengineError):
    """The error of a push with an unknown outcome, which may still move the ref."""

    code = "state-unreachable"


@dataclass(slots=True)
class BareRepository:
    """A local bare repository in `folder`, and one ref of a remote. `name` is the name of the state in messages."""

    folder: Path
    remote: Remote = field(repr=False)
    ref: str
    name: str
    _environ: dict[str, str] = field(default_factory=dict, repr=False)

    def look(self) -> str | None:
        """Return the id at the remote's ref, or `None` when the ref does not exist."""
        listing = self._run("ls-remote", REMOTE, self.ref, seconds=LOOK_SECONDS).decode(errors="replace")
        for line in listing.splitlines():
            id, _, ref = line.partition("\t")
            if ref == self.ref and _ID.fullmatch(id):
                return id
        return None

    def fetch(self) -> None:
        """Fetch all objects that the remote's ref refers to, without moving a local ref."""
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", REMOTE, self.ref)
        self._run(*words, seconds=FETCH_SECONDS)

    def push(self, new: str, old: str | None) -> None:
        """Move the ref from `old` to `new`. Raise `Superseded` if it is elsewhere, `PushUnknown` without an answer."""
        lease = f"--force-with-lease={self.ref}:{old or ''}"
        try:
            self._run("push", "--quiet", "--no-verify", lease, REMOTE, f"{new}:{self.ref}", seconds=PUSH_SECONDS)
        except SyncengineError as refused:
            try:
                now = self.look()
            except SyncengineError:
                raise PushUnknown(f"{refused.message}; it is unknown whether the state was written") from None
            if now == new:
                return
            if now != old or refused.code == BUSY:
                words = refused.message.removeprefix(f"state {self.name}: ")
                raise Superseded(words if now == old else "") from None
            raise

    def has(self, id: str) -> bool:
        """Return whether an object is in the local repository."""
        return not self._run("cat-file", "--batch-check", input=f"{id}\n".encode()).endswith(b" missing\n")

    def read(self, names: Iterable[str]) -> list[bytes]:
        """Return the contents of local objects. Raise `LookupError` when one is missing."""
        names = list(names)
        data = self._run("cat-file", "--batch", input="\n".join(names).encode() + b"\n") if names else b""
        contents: list[bytes] = []
        at = 0
        for name in names:
            end = data.index(b"\n", at)  # the line before each content: id, kind, size
            size = data[at:end].rpartition(b" ")[2]
            if not size.isdigit():
                raise LookupError(f"{name} is missing")
            at = end + 1 + int(size)
            contents.append(data[end + 1 : at])
            at += 1
        return contents

    def commit_id(self, name: str) -> str:
        """Return a local commit's full id, by the beginning of its id. Raise `LookupError` if there is none."""
        answer = self._run("cat-file", "--batch-check", input=f"{name}\n".encode()).split()
        if answer[1:2] != [b"commit"]:
            raise LookupError("there is no such commit")
        return answer[0].decode()

    def list_tree(self, id: str) -> dict[str, str]:
        """Return the ids of the files of a commit, by name."""
        lines = self._run("ls-tree", "-r", "-z", id).decode(errors="replace").split("\0")[:-1]
        return {name: about.split()[2] for about, _, name in (line.partition("\t") for line in lines)}

    def write_blobs(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Write contents to the local repository, and return their ids."""
        with private_folder(self.folder.parent) as folder:
            for name, data in files.items():
                (folder / name).write_bytes(data)
            words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            ids = self._run(*words, input="".join(f"{name}\n" for name in files).encode(), at=folder)
        return dict(zip(files, ids.decode().split(), strict=True))

    def write_tree(self, blobs: Mapping[str, str]) -> str:
        """Write a tree of blobs, given by name and id, and return its id."""
        lines = "".join(f"100644 blob {id}\t{name}\n" for name, id in blobs.items())
        return self._run("mktree", input=lines.encode()).decode().strip()

    def commit_tree(self, tree: str, parents: Sequence[str], when: int, message: str) -> str:
        """Write a commit of ours, and return its id. `when` is in seconds since the epoch."""
        environ = git_environment.author_of(f"@{when} +0000")
        words = [word for parent in parents for word in ("-p", parent)]
        return self._run("commit-tree", tree, *words, input=message.encode(), environ=environ).decode().strip()

    def keep(self, id: str) -> None:
        """Point a local ref to `id`, so that the next fetch is incremental."""
        # Written as a plain file: a lock file of Git would outlive a kill.
        replace_whole(self.folder / SEEN, [f"{id}\n".encode()])

    def tidy(self) -> None:
        """Pack the leftovers of many writes and drop unreachable objects, except those written in the last hour."""
        sample = self.folder / "objects" / "17"  # one of 256 folders
        with suppress(OSError, SyncengineError):
            packs = len(list((self.folder / "objects" / "pack").glob("*.pack")))
            loose = 256 * len(list(sample.iterdir())) if sample.is_dir() else 0
            if loose > MANY_FILES or packs > 50:  # as many packs as Git's own `gc.autoPackLimit`
                self._run("gc", "--quiet", "--prune=1.hour.ago", seconds=FETCH_SECONDS)

    def purge(self) -> None:
        """Drop all unreachable objects at once, and the broken repository that was kept."""
        shutil.rmtree(self._broken, ignore_errors=True)
        self._run("gc", "--quiet", "--prune=now", seconds=FETCH_SECONDS)

    @contextmanager
    def copy(self) -> Iterator[BareRepository]:
        """Yield an empty temporary repository with the same remote."""
        with private_folder(self.folder.parent) as folder:
            yield BareRepository(folder / "repository.git", self.remote, self.ref, self.name)

    def replace_by(self, other: BareRepository) -> None:
        """Replace this broken repository by another, and keep it: it may contain versions found nowhere else."""
        shutil.rmtree(self._broken, ignore_errors=True)
        self.folder.rename(self._broken)
        other.folder.rename(self.folder)

    @property
    def _broken(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.broken")

    def _run(
        self,
        *words: str,
        input: bytes = b"",
        seconds: float = LOCAL_SECONDS,
        at: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the output of a Git command in the local repository, which is created first if there is none."""
        self._environ = self._environ or self._environment()
        own = {**self._environ, **(environ or {})}
        if words[0] != "init":
            if not self.folder.exists():
                with private_folder(self.folder.parent) as folder:
                    self._run(
                        "init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(folder / "new.git")
                    )
                    with suppress(OSError):  # another process was faster
                        (folder / "new.git").rename(self.folder)
            own["GIT_DIR"] = str(self.folder)
        try:
            answer = git_environment.run(
                at or self.folder.parent, words, seconds=seconds, standard_input=input, environ=own, is_own=True
            )
        except FileNotFoundError:
            raise no_git(self.name) from None
        except subprocess.TimeoutExpired:
            message = f"state {self.name}: the repository did not answer within {seconds:.0f} s"
            raise SyncengineError(message, code="state-unreachable") from None
        if answer.returncode:
            raise self._trouble(answer.stderr.decode(errors="replace"))
        return answer.stdout

    def _environment(self) -> dict[str, str]:
        base = git_environment.of_no_repository()
        environ = {"SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        environ["GIT_DEFAULT_REF_FORMAT"] = "files"  # `keep` writes one
        environ["GIT_CEILING_DIRECTORIES"] = str(self.folder.parent)
        uses_ssh = not self.remote.url.startswith(("file:", "http", "/"))
        # The variable would override the command that the user or the project sets for ssh.
        is_set = {"GIT_SSH_COMMAND", "GIT_SSH"} & {*base} or "core.sshcommand" in dict(self.remote.settings)
        if uses_ssh and not is_set and not _setting(self.folder.parent, "core.sshCommand", environ={**base, **environ}):
            environ["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=15"
        first = base.get("GIT_CONFIG_COUNT", "0")
        count = int(first) if first.isdigit() else 0
        settings = [*self.remote.settings, *SETTINGS.items(), (f"remote.{REMOTE}.url", self.remote.url)]
        for number, (key, value) in enumerate(settings, count):
            environ[f"GIT_CONFIG_KEY_{number}"], environ[f"GIT_CONFIG_VALUE_{number}"] = key, value
        return {**environ, "GIT_CONFIG_COUNT": str(count + len(settings))}

    def _trouble(self, errors: str) -> SyncengineError:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal:", "remote:", "ssh:", "error:", "!"))] or lines
        telling.sort(key=lambda line: not line.startswith("remote:"))  # the server's own message first
        words = without_login(telling[0] if telling else "no reason was given")[:300]
        code = "state-unreachable"
        if "hash algorithm" in errors or "mismatched algorithms" in errors:
            words = "the repository names its objects by SHA-256, which a state in Git cannot; use one with SHA-1"
        elif "cannot lock ref" in errors:  # another push is under way
            code = BUSY
        elif "remote rejected" in errors:
            code, words = REFUSED, f"the repository rejected the push: {words}"
        elif _LOGIN.search(errors):
            cure = "the repository rejects this user; check the key, token or credential helper"
            code, words = "state-login", f"{cure} ({words})"
        elif _NOWHERE.search(errors):
            words = f"the repository does not exist, or this user may not see it ({words})"
        else:
            cure = f" ({git_environment.advice(errors)})" if "dubious ownership" in errors else ""
            words = f"the repository cannot be used: {words}{cure}"
        return SyncengineError(f"state {self.name}: {words}", code=code)


@dataclass(frozen=True, slots=True)
class Remote:
    """The URL of a remote, and the settings of the project's repository that Git needs to log in there."""

    url: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_name(cls, name: str, folder: Path) -> Remote:
        """Return a remote of the repository around `folder`, or raise `LookupError` with Git's message."""
        url = _answer(folder, "remote", "get-url", "--push", name, reads_only=True).strip()
        if url.startswith(("./", "../")):
            url = str((folder / _answer(folder, "rev-parse", "--show-cdup", reads_only=True).strip() / url).resolve())
        # Settings to log in name programs: Git does not tell them of a repository that another user owns.
        words = _setting(folder, "--null", "--show-scope", "--get-regexp", LOGIN_SETTINGS).split("\0")
        pairs = [pair.partition("\n") for scope, pair in zip(words[::2], words[1::2], strict=False) if scope in OWN]
        return cls(url, tuple((key, value) for key, _, value in pairs))


def no_git(name: str) -> SyncengineError:
    return SyncengineError(f"state {name} needs `git`, which is not installed", code="state-driver")


def _answer(folder: Path, *words: str, environ: Mapping[str, str] | None = None, reads_only: bool = False) -> str:
    """Return the output of a Git command in a folder, or raise `LookupError` with Git's message."""
    own = {**(environ or {}), "LC_ALL": "C"}
    answer = git_environment.ask(folder, *words, seconds=LOOK_SECONDS, reads_only=reads_only, environ=own)
    if answer is None:
        raise LookupError("Git does not answer")
    if answer.returncode:
        lines = answer.stderr.decode(errors="replace").splitlines()
        raise LookupError(without_login(lines[0])[:300] if lines else "")
    return answer.stdout.decode(errors="replace")


def _setting(folder: Path, *words: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of `git config` in a folder, or an empty string if the setting does not exist."""
    try:
        return _answer(folder, "config", *words, environ=environ)
    except LookupError:
        return ""


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Create a folder for this process alone, and delete those of dead processes."""
    for each in parent.glob("work-*"):
        with suppress(OSError), (each / "owner").open("rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(each, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix="work-"))
    with (folder / "new").open("wb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        (folder / "new").rename(folder / "owner")  # or another process could find it unlocked, and delete the folder
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
