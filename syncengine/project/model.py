"""A project as values: the service, the policy, where everything is. Secrets are read only when asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.document.nodes import Node
from syncengine.document.setting_types import Reference
from syncengine.errors import Diagnostic, Problems
from syncengine.project.delivery_schema import PostedTimeSection, SourceConfig
from syncengine.project.quarantine import QuarantineEntry
from syncengine.project.references import MISSING, Secret, secret_at, setting_problem, sqlite_file, state_at
from syncengine.project.schema import EndpointOverride, Level, Limit, Ownership
from syncengine.project.secret_places import SecretPlaces, sqlite_files
from syncengine.resource import Removal

FILE_NAME = "syncengine.yaml"
MANIFESTS = "manifests"
"""The folder that manifests are in where the project file does not say."""
POLICIES = "policies"
"""The folder that rules are in where the project file does not say, if there is one."""
SANDBOX = "sandbox"
SANDBOX_KEY = "sandbox"
"""The key that the embedded service accepts (docs/commands.md)."""
LIMITS = {
    "tags": Limit(percent=25),
    "activityTypes": Limit(percent=25),
    "keywords": Limit(percent=50),
    "metadata": Limit(percent=50),
    "fields": Limit(percent=50),
}
"""docs/planning.md 5."""


LANDING_SECONDS = 60.0


def default_landing(timeout: float) -> float:
    """Seconds that a call may take to be executed after its sender has gone, where the project does not say."""
    return max(LANDING_SECONDS, 2 * timeout)


@dataclass(frozen=True, slots=True)
class Service:
    """The time-recording service.

    `timeout` and `landing` are seconds: how long an answer may take, and how long a call that nobody waits for any more
    may still be executed.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    team: str | None = None
    endpoints: Mapping[str, EndpointOverride] = field(default_factory=dict)
    timeout: float = 30.0
    landing: float = LANDING_SECONDS
    concurrency: int = 8
    connector_type: str = "syncengine"

    @property
    def lease(self) -> float:
        """Seconds that a lock is good for after each renewal."""
        return max(60.0, 2 * self.timeout)

    @property
    def lock_timeout(self) -> float:
        """Seconds within which a dead holder's lock can be taken, and its last call can land no more."""
        return self.lease + self.timeout + self.landing


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy for plans. `max_deletes` by the name of its total, as in the project file."""

    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    max_deletes: Mapping[str, Limit] = field(default_factory=lambda: dict(LIMITS))
    diagnostics: Mapping[str, Level] = field(default_factory=dict)

    def limits(self) -> dict[str, str]:
        """The limits as the project file has them."""
        return {name: str(each) for name, each in self.max_deletes.items()}


@dataclass(frozen=True, slots=True)
class Serve:
    """The long-running connector: seconds between two reconciliations, and where its own HTTP listens."""

    every: float = 300.0
    listen: tuple[str, int] = ("127.0.0.1", 9100)


class Checkout(NamedTuple):
    """The files of another revision: `top` stands for the repository's folder, `folder` for the project's in it."""

    top: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that is set. `defaults` is a node for those who read it; `posted_time` None: none is delivered.

    `checkout`: the files of another revision, which manifests and data are read from; state, cache and secrets stay in
    `root`. `policies` are files and folders with rules, None: the usual folder, where there is one. `inline_policies`
    are rules in the project file, as nodes; the rules of `other_judges` hold as well.
    `approval_lines`: where the approvals of the project file stand; the others are of the environment.
    `policy_lines`: where its limits and rules stand, by their names below `policy`. `blob`: the address of a line of a
    file, at the host of the repository. `quarantine`: entries of the project file.
    `warnings` are findings about the project file that did not keep it from being read.
    """

    root: Path
    config: Path | None
    environment: str | None
    service: Service
    manifests: tuple[Path, ...]
    policies: tuple[Path, ...] | None = None
    inline_policies: tuple[Node, ...] = field(default=(), repr=False)
    other_judges: tuple[Project, ...] = ()
    is_sandbox: bool = False
    checkout: Checkout | None = None
    policy: Policy = field(default_factory=Policy)
    approvals: tuple[str, ...] = ()
    approval_lines: Mapping[str, int] = field(default_factory=dict)
    policy_lines: Mapping[str, int] = field(default_factory=dict)
    quarantine: tuple[QuarantineEntry, ...] = ()
    allow_env: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    defaults: Node | None = field(default=None, repr=False)
    sources: Mapping[str, SourceConfig] = field(default_factory=dict, repr=False)
    posted_time: PostedTimeSection | None = field(default=None, repr=False)
    serve: Serve = field(default_factory=lambda: Serve())
    warnings: tuple[Diagnostic, ...] = ()
    data_folders: tuple[str, ...] = ()
    blob: str | None = None
    _state: str | Secret = field(default=".syncengine/state.db", repr=False)
    _secrets: SecretPlaces = field(default_factory=SecretPlaces, repr=False)

    @property
    def config_name(self) -> str:
        """The project file as diagnostics name it: relative to the project's folder."""
        return self.config.name if self.config else FILE_NAME

    @property
    def files(self) -> Path:
        """The folder that manifests are read from, and data by their side."""
        return self.checkout.folder if self.checkout else self.root

    @property
    def state(self) -> str:
        """Return the state's absolute path, or its URL, which may hold a password. Problems when neither is known."""
        if self.is_sandbox:
            return str(self.root / ".syncengine" / "sandbox" / "state.db")
        return state_at(self._state.read() if isinstance(self._state, Secret) else self._state, self.root)

    @property
    def sandbox_data(self) -> Path:
        """The embedded service's own file."""
        return self.root / ".syncengine" / "sandbox" / "service.db"

    @property
    def policy_paths(self) -> tuple[Path, ...]:
        """Files and folders with rules."""
        if self.policies is not None:
            return self.policies
        usual = self.files / POLICIES
        return (usual,) if usual.exists() else ()

    def secret_files(self) -> set[Path]:
        """Files that hold secrets, or posted time: nothing that a template may read."""
        files = {found for name in self._secrets.files for found in self._file(name)}
        databases = {*map(self._place, self._secrets.databases), self.environ.get("SYNCENGINE_STATE", "")}
        for place in databases:
            for found in self._file(str(sqlite_file(place.strip()) or "")):
                files |= sqlite_files(found)
        return files

    def without_secrets(self) -> Project:
        """The project where none of its secrets is at hand, and none is looked up."""
        databases = frozenset(place for place in self._secrets.databases if isinstance(place, str))
        return replace(
            self,
            service=replace(self.service, base_url=self.service.base_url or "", api_key=None),
            environ={name: self.environ[name] for name in self.allow_env if name in self.environ},
            _secrets=self._secrets._replace(databases=databases),
            _state="",
        )

    def _place(self, written: str | Reference) -> str:
        """The text of a place, with its reference resolved; empty where that leads nowhere."""
        if isinstance(written, str):
            return written
        with suppress(Problems):
            return secret_at(written, self.root, self.environ, "a place").read()
        return ""

    def _file(self, name: str) -> Iterator[Path]:
        """The file that is meant, without links; nothing for text that can be no path."""
        with suppress(OSError, RuntimeError, ValueError):
            for folder in {self.root, self.files} if name else ():
                yield (folder / Path(name).expanduser()).resolve()

    def base_url(self) -> str:
        """The service's URL, `sandbox` for the embedded one; Problems when none is set."""
        if self.is_sandbox:
            return SANDBOX
        if self.service.base_url is None:
            raise _unset("the service's URL is not set", "service.baseUrl", "SYNCENGINE_BASE_URL")
        return self.service.base_url

    def api_key(self) -> str:
        """The key, looked up anew at every call; Problems when there is none."""
        if self.is_sandbox:
            return SANDBOX_KEY
        if self.service.api_key is None:
            raise _unset("the API key is not set", "service.apiKey ({env: NAME} or {file: PATH})", "SYNCENGINE_API_KEY")
        return _sendable(self.service.api_key)


def _unset(what: str, setting: str, variable: str) -> Problems:
    return setting_problem(MISSING, f"{what}: set `{setting}` in {FILE_NAME}, or the environment variable {variable}")


def _sendable(key: Secret) -> str:
    """A key that an HTTP header can carry; the refusal never shows it."""
    text = key.read()
    if not (text.isascii() and text.isprintable()):
        reason = "has characters that no HTTP header can carry: is it one line of ASCII?"
        raise setting_problem("bad-key", f"the API key from {key.origin} {reason}")
    return text
