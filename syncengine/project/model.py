"""Hold a project's settings as values: the service, the policy and all locations. Secrets are read only on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import Struct

from syncengine.document.nodes import Node
from syncengine.errors import Diagnostic, Problems
from syncengine.instants import LATEST, bounds
from syncengine.project.references import (
    MISSING,
    Reference,
    SecretPlaces,
    secret_at,
    setting_problem,
    sqlite_file,
    sqlite_files,
    state_at,
)
from syncengine.resource import Key

if TYPE_CHECKING:  # they need pydantic, which takes as long to load as all else that a page of help needs
    from syncengine.project.delivery_schema import PostedTimeSection, ServeSection, SourceConfig
    from syncengine.project.schema import PolicySection, ServiceSection

Number = TypeVar("Number", int, float)


class Ownership(StrEnum):
    """Who owns the team's list of activity types: the manifests alone, or other systems too."""

    OWNED = "owned"
    EXACT = "exact"
    ADDITIVE = "additive"


class Level(StrEnum):
    """The level at which a warning is reported."""

    OFF = "off"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be removed without an approval: a count, a share of the recorded total, or both at once."""

    count: int | None = None
    percent: float | None = None

    def is_exceeded(self, count: int, total: int) -> bool:
        """Return whether `count` of `total` is too many. A share needs two removals to trip (docs/planning.md 5)."""
        is_too_many = self.count is not None and count > self.count
        return is_too_many or (self.percent is not None and count >= 2 and count * 100 > self.percent * total)

    def and_also(self, other: Limit) -> Limit:
        """Return the stricter of both limits; a share and a count other than 0 cannot be compared, so both apply."""
        count = _least(self.count, other.count)
        return Limit(count, None if count == 0 else _least(self.percent, other.percent))

    def __str__(self) -> str:
        texts = ("" if self.count is None else str(self.count), "" if self.percent is None else f"{self.percent:g}%")
        return " and ".join(filter(None, texts))


def _least(one: Number | None, other: Number | None) -> Number | None:
    return min((each for each in (one, other) if each is not None), default=None)


APPROVAL = re.compile(r"[0-9]+@([0-9a-f]{20}|[0-9a-f]{12})")
"""Earlier versions printed twelve digits; any other number of digits means that the text was truncated when copied."""


FILE_NAME = "syncengine.yaml"
MANIFESTS = "manifests"
"""The folder of the manifests when the project file does not set `manifests`."""
POLICIES = "policies"
"""The folder of the rules when the project file does not set `policies`; it may be absent."""
DEFAULT_STATE = ".syncengine/state.db"
SANDBOX = "sandbox"
SANDBOX_KEY = "sandbox"
"""The API key that the embedded service accepts (docs/commands.md)."""
DAY = 86_400
LONGEST_REMOVAL = 30
"""The maximum number of days for which a removal may be quarantined."""


class QuarantineEntry(Struct, frozen=True, gc=False):
    """A quarantined resource, the reason, and the quarantine's end in seconds since the epoch."""

    key: Key
    reason: str
    until: float | None
    line: int | None = None


def until_of(text: str) -> float | None:
    """Return the end of a date (UTC) or an RFC 3339 instant as seconds since epoch, or `None` for any other text."""
    found = bounds(text)
    return None if found is None or found[1] * 1000 > LATEST else max(found[1], 0)


def until_text(until: float) -> str:
    """Return the end of a quarantine for display: a date, or a date and time in UTC."""
    if until % DAY == 0:
        return f"{datetime.fromtimestamp(until - DAY, UTC):%Y-%m-%d}"
    return f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"


def is_too_late(until: float, now: float) -> bool:
    """Return whether `until` is more than `LONGEST_REMOVAL` days after `now`; a date is compared by whole days."""
    if until % DAY == 0:
        return (until - DAY) // DAY - now // DAY > LONGEST_REMOVAL
    return until - now > timedelta(days=LONGEST_REMOVAL).total_seconds()


class Checkout(NamedTuple):
    """The files of another revision: `top` replaces the repository's folder, `folder` the project's folder in it."""

    top: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Project:
    """Every setting of a project.

    `checkout`: the files of another revision, from which manifests and data are read; state, cache and secrets stay in
    `root`. `policies`: files and folders with rules, `None` for the default folder. `inline_policies`: rules in the
    project file, as nodes. `other_judges`: projects whose rules apply too. `lines`: the line of each setting in the
    project file, such as `policy.maxDeletes.tags` and, by its text, `approvals.1@…`; an approval of the environment has
    none. `defaults`: an unparsed node. `posted_time`: `None` when no posted time is delivered. `blob`: the URL of a
    line of a file at the repository's host. `quarantine`: entries of the project file. `warnings`: findings about the
    project file that did not keep it from being read. `digests`: the SHA-256 of each file from which these settings
    were read, by path; empty for a missing project file. `again` loads the project anew, in the same way.
    """

    root: Path
    config: Path | None
    environment: str | None
    service: ServiceSection
    policy: PolicySection
    serve: ServeSection
    manifests: tuple[Path, ...]
    digests: Mapping[str, str] = field(repr=False)
    again: Callable[[], Project] = field(repr=False, compare=False)
    policies: tuple[Path, ...] | None = None
    inline_policies: tuple[Node, ...] = field(default=(), repr=False)
    other_judges: tuple[Project, ...] = ()
    is_sandbox: bool = False
    checkout: Checkout | None = None
    approvals: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    quarantine: tuple[QuarantineEntry, ...] = ()
    allow_env: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    defaults: Node | None = field(default=None, repr=False)
    sources: Mapping[str, SourceConfig] = field(default_factory=dict, repr=False)
    posted_time: PostedTimeSection | None = field(default=None, repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    data_folders: tuple[str, ...] = ()
    blob: str | None = None
    _state: str | Reference = field(default=DEFAULT_STATE, repr=False)
    _secrets: SecretPlaces = field(default_factory=SecretPlaces, repr=False)

    @property
    def config_name(self) -> str:
        """The project file's name in diagnostics, relative to the project's folder."""
        return self.config.name if self.config else FILE_NAME

    @property
    def files(self) -> Path:
        """The folder from which manifests and their data are read."""
        return self.checkout.folder if self.checkout else self.root

    @property
    def state(self) -> str:
        """The state's absolute path or its URL, which may contain a password. Raise `Problems` when neither is set."""
        if self.is_sandbox:
            return str(self.root / ".syncengine" / "sandbox" / "state.db")
        place = self._state
        if isinstance(place, Reference):
            place = secret_at(place, self.root, self.environ, "the state's location").read()
        return state_at(place, self.root)

    @property
    def sandbox_data(self) -> Path:
        """The database file of the embedded service."""
        return self.root / ".syncengine" / "sandbox" / "service.db"

    @property
    def policy_paths(self) -> tuple[Path, ...]:
        """The files and folders with rules."""
        if self.policies is not None:
            return self.policies
        usual = self.files / POLICIES
        return (usual,) if usual.exists() else ()

    def secret_files(self) -> set[Path]:
        """Return the files that hold secrets or posted time; no template may read them."""
        files = {found for name in self._secrets.files for found in self._file(name)}
        databases = {*map(self._place, self._secrets.databases), self.environ.get("SYNCENGINE_STATE", "")}
        for place in databases:
            for found in self._file(str(sqlite_file(place.strip()) or "")):
                files |= sqlite_files(found)
        return files

    def without_secrets(self) -> Project:
        """Return a copy of the project that contains none of its secrets and looks none up."""
        databases = frozenset(place for place in self._secrets.databases if isinstance(place, str))
        return replace(
            self,
            service=self.service.model_copy(update={"base_url": self.service.base_url or "", "api_key": None}),
            environ={name: self.environ[name] for name in self.allow_env if name in self.environ},
            _secrets=self._secrets._replace(databases=databases),
            _state="",
        )

    def _place(self, written: str | Reference) -> str:
        """Return a place as text, its reference resolved; empty when the reference cannot be resolved."""
        if isinstance(written, str):
            return written
        with suppress(Problems):
            return secret_at(written, self.root, self.environ, "a place").read()
        return ""

    def _file(self, name: str) -> Iterator[Path]:
        """Yield the resolved paths that `name` may mean; none for text that is not a valid path."""
        with suppress(OSError, RuntimeError, ValueError):
            for folder in {self.root, self.files} if name else ():
                yield (folder / Path(name).expanduser()).resolve()

    def base_url(self) -> str:
        """Return the service's URL, or `sandbox` for the embedded service. Raise `Problems` when none is set."""
        if self.is_sandbox:
            return SANDBOX
        if self.service.base_url is None:
            raise _unset("the service's URL is not set", "service.baseUrl", "SYNCENGINE_BASE_URL")
        return self.service.base_url

    def api_key(self) -> str:
        """Return the API key, looked up anew at every call. Raise `Problems` when there is none."""
        if self.is_sandbox:
            return SANDBOX_KEY
        if self.service.api_key is None:
            raise _unset("the API key is not set", "service.apiKey ({env: NAME} or {file: PATH})", "SYNCENGINE_API_KEY")
        key = secret_at(self.service.api_key, self.root, self.environ, "the API key")
        text = key.read()
        if not (text.isascii() and text.isprintable()):
            reason = "has characters that an HTTP header cannot carry: it must be a single line of ASCII"
            raise setting_problem("bad-key", f"the API key from {key.origin} {reason}")
        return text


def _unset(what: str, setting: str, variable: str) -> Problems:
    return setting_problem(MISSING, f"{what}: set `{setting}` in {FILE_NAME}, or the environment variable {variable}")
