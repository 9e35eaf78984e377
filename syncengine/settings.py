"""Project file, environment variables and options → Project. Reads the project file, and secrets only when asked.

Precedence, from the strongest: options, environment variables, the chosen environment, the top level, the defaults
of product.md §4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from syncengine.delivery_file import PostedTimeSection, ServeSection, Source
from syncengine.document.findings import Findings, in_order
from syncengine.document.model import names_of
from syncengine.document.nodes import Node
from syncengine.environments import settings_of
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project_file import (
    APPROVAL,
    Level,
    Limit,
    MaxDeletes,
    Overlay,
    Ownership,
    PolicySection,
    ServiceSection,
)
from syncengine.resource import Removal
from syncengine.secret_places import SecretPlaces, state_files
from syncengine.setting_shapes import URL, Reference, base_url_trouble, split_url

FILE_NAME = "syncengine.yaml"
SANDBOX = "sandbox"
SANDBOX_KEY = "sandbox"
"""The key that the embedded service accepts (product.md §5)."""
__all__ = ["Level", "Limit", "Ownership", "Policy", "Project", "Secret", "Service", "load_project"]
LINTS: AnyMapping[str, str] = {"insecure-url": "the key would travel in clear text"}

_LOOPBACK = re.compile(r"localhost|127(?:\.[0-9]+){3}|::1")
_LIMITS = {
    "tags": Limit(percent=25),
    "activityTypes": Limit(percent=25),
    "keywords": Limit(percent=50),
    "metadata": Limit(percent=50),
    "fields": Limit(percent=50),
}
"""engine.md §5."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands: `origin` in words; `read` looks every time, so that a file may change."""

    origin: str
    _look: Callable[[], str] = field(repr=False, compare=False)

    def read(self) -> str:
        """The secret; Problems when it is not there."""
        return self._look()


@dataclass(frozen=True, slots=True)
class EndpointOverride:
    """Where an operation is; None: at its usual place."""

    path: str | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """The time-recording service. `timeout` in seconds."""

    base_url: str | None = None
    api_key: Secret | None = None
    team: str | None = None
    endpoints: AnyMapping[str, EndpointOverride] = field(default_factory=dict)
    timeout: float = 30.0
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class Policy:
    """What a plan may do. `max_deletes` by what is counted, as in the project file."""

    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    max_deletes: AnyMapping[str, Limit] = field(default_factory=lambda: dict(_LIMITS))
    diagnostics: AnyMapping[str, Level] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Serve:
    """The long-running connector: seconds between two reconciliations, and where its own HTTP listens."""

    every: float = 300.0
    listen: tuple[str, int] = ("127.0.0.1", 9100)


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that is set. `defaults` is a node for those who read it; `posted_time` None: none is delivered.

    `warnings` are findings about the project file that did not keep it from being read.
    """

    root: Path
    config: Path | None
    environment: str | None
    service: Service
    manifests: tuple[Path, ...]
    is_sandbox: bool = False
    policy: Policy = field(default_factory=Policy)
    approvals: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    variables: AnyMapping[str, Any] = field(default_factory=dict)
    environ: AnyMapping[str, str] = field(default_factory=dict, repr=False)
    defaults: Node | None = field(default=None, repr=False)
    sources: AnyMapping[str, Source] = field(default_factory=dict, repr=False)
    posted_time: PostedTimeSection | None = field(default=None, repr=False)
    serve: Serve = field(default_factory=lambda: Serve())
    warnings: tuple[Diagnostic, ...] = ()
    data_folders: tuple[str, ...] = ()
    _state: str | Secret = field(default=".syncengine/state.db", repr=False)
    _secrets: SecretPlaces = field(default_factory=SecretPlaces, repr=False)

    @property
    def config_name(self) -> str:
        """The project file as diagnostics name it: relative to the project's folder."""
        return self.config.name if self.config else FILE_NAME

    @property
    def state(self) -> str:
        """Where the state is: an absolute path, or a URL that may hold a password. Problems when it cannot be told."""
        if self.is_sandbox:
            return str(self.root / ".syncengine" / "sandbox" / "state.db")
        return located(self._state.read() if isinstance(self._state, Secret) else self._state, self.root)

    @property
    def sandbox_data(self) -> Path:
        """The embedded service's own file."""
        return self.root / ".syncengine" / "sandbox" / "service.db"

    def secret_files(self) -> set[Path]:
        """Files that hold secrets, or posted time: nothing that a template may read."""
        names = self._secrets.files | state_files(self.environ.get("SYNCENGINE_STATE", ""))
        return {(self.root / Path(name).expanduser()).resolve() for name in names}

    def base_url(self) -> str:
        """The service's URL, `sandbox` for the embedded one; Problems when none is set."""
        if self.is_sandbox:
            return SANDBOX
        if self.service.base_url is None:
            raise _missing("the service's URL is not set", "service.baseUrl", "SYNCENGINE_BASE_URL")
        return self.service.base_url

    def api_key(self) -> str:
        """The key, looked up anew at every call; Problems when there is none."""
        if self.is_sandbox:
            return SANDBOX_KEY
        if self.service.api_key is None:
            raise _missing(
                "the API key is not set", "service.apiKey ({env: NAME} or {file: PATH})", "SYNCENGINE_API_KEY"
            )
        return _sendable(self.service.api_key)


def load_project(
    *,
    folder: Path,
    config: Path | None = None,
    environment: str | None = None,
    environ: AnyMapping[str, str],
    sandbox: bool = False,
    variables: AnyMapping[str, Any] | None = None,
    operations: Collection[str] = (),
    lints: Collection[str] = (),
) -> Project:
    """The project in `folder`, or of the file `config`; Problems with everything that is wrong with its file.

    `operations` and `lints` are the ids that `endpoints` and `policy.diagnostics` may name; empty: any.
    """
    path = _file(folder, config)
    root = (path.parent if path else folder).absolute()
    findings = Findings(path.name if path else FILE_NAME)
    chosen = environment or environ.get("SYNCENGINE_ENV") or None
    settings = settings_of(path, chosen, findings, operations, {*lints, *LINTS} if lints else ())
    assembly = _Assembly(root, environ, settings.here, settings.secrets, findings)
    project = assembly.project(path, chosen, sandbox, variables or {})
    found = levelled(in_order(findings.found), project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in found):
        raise Problems(found)
    return replace(project, warnings=tuple(found))


def levelled(found: Iterable[Diagnostic], levels: AnyMapping[str, Level]) -> list[Diagnostic]:
    """Diagnostics as the project wants them: warnings left out or made errors. Errors stay errors."""
    result = []
    for diagnostic in found:
        level = levels.get(diagnostic.code, Level.WARNING)
        if diagnostic.severity is Severity.ERROR or level is Level.WARNING:
            result.append(diagnostic)
        elif level is Level.ERROR:
            result.append(structs.replace(diagnostic, severity=Severity.ERROR))
    return result


def _file(folder: Path, config: Path | None) -> Path | None:
    if config is not None:
        return config
    default = folder / FILE_NAME
    return default if default.exists() or default.is_symlink() else None


@dataclass(frozen=True, slots=True)
class _Assembly:
    """The file's settings under environment variables and options."""

    root: Path
    environ: AnyMapping[str, str]
    settings: Overlay
    secrets: SecretPlaces
    findings: Findings

    def project(self, path: Path | None, chosen: str | None, sandbox: bool, variables: AnyMapping[str, Any]) -> Project:
        settings = self.settings
        service = self._service(settings.service or ServiceSection())
        return Project(
            root=self.root,
            config=path,
            environment=chosen,
            service=service,
            manifests=tuple(self.root / name for name in settings.manifests or ("manifests",)),
            is_sandbox=sandbox or service.base_url == SANDBOX,
            policy=_policy(settings.policy or PolicySection()),
            approvals=(*(settings.approvals or ()), *self._approvals()),
            allow_env=settings.allow_env or (),
            variables={**(settings.variables or {}), **variables},
            environ=self.environ,
            defaults=settings.defaults,
            sources=settings.sources or {},
            posted_time=settings.posted_time,
            serve=_serve(settings.serve or ServeSection()),
            data_folders=settings.data_folders or (),
            _state=self._state(),
            _secrets=self.secrets,
        )

    def _service(self, section: ServiceSection) -> Service:
        return Service(
            base_url=self._base_url(section),
            api_key=self._api_key(section),
            team=section.team,
            endpoints={id: EndpointOverride(o.path, o.method) for id, o in (section.endpoints or {}).items()},
            timeout=section.timeout or _SERVICE.timeout,
            concurrency=section.concurrency or _SERVICE.concurrency,
        )

    def _base_url(self, section: ServiceSection) -> str | None:
        given = self.environ.get("SYNCENGINE_BASE_URL")
        if given and given != SANDBOX and (trouble := base_url_trouble(given)):
            self._error("bad-value", f"SYNCENGINE_BASE_URL {trouble}")
            return None
        url = given.rstrip("/") if given else section.base_url
        if (
            url
            and (parts := split_url(url))
            and parts.scheme == "http"
            and not _LOOPBACK.fullmatch(parts.hostname or "")
        ):
            self.findings.at(
                "insecure-url",
                None,
                None,
                "the service's URL is http://, so the key travels in clear text",
                severity=Severity.WARNING,
            )
        return url  # fmt: skip

    def _api_key(self, section: ServiceSection) -> Secret | None:
        if self.environ.get("SYNCENGINE_API_KEY"):
            return self._secret(Reference(env="SYNCENGINE_API_KEY"), "the API key")
        return self._secret(section.api_key, "the API key") if section.api_key else None

    def _state(self) -> str | Secret:
        if self.environ.get("SYNCENGINE_STATE"):
            return self._secret(Reference(env="SYNCENGINE_STATE"), "the state's place")
        setting = self.settings.state
        if isinstance(setting, Reference):
            return self._secret(setting, "the state's place")
        return setting or ".syncengine/state.db"

    def _secret(self, reference: Reference, what: str) -> Secret:
        return secret_at(reference, self.root, self.environ, what)

    def _approvals(self) -> list[str]:
        given = re.split(r"[\s,]+", self.environ.get("SYNCENGINE_APPROVE_DELETES", "").strip())
        for text in given:
            if text and not APPROVAL.fullmatch(text):
                self._error("bad-value", "SYNCENGINE_APPROVE_DELETES must be COUNT@HASH, as the plan prints it")
        return [text for text in given if text]

    def _error(self, code: str, message: str) -> None:
        self.findings.found.append(Diagnostic(severity=Severity.ERROR, code=code, message=message))


def _policy(section: PolicySection) -> Policy:
    return Policy(
        tag_removal=section.tag_removal or _POLICY.tag_removal,
        activity_types=section.activity_types or _POLICY.activity_types,
        max_deletes={**_LIMITS, **_given(section.max_deletes)},
        diagnostics=section.diagnostics or {},
    )


def _serve(section: ServeSection) -> Serve:
    return Serve(every=section.every or _SERVE.every, listen=section.listen or _SERVE.listen)


def _given(limits: MaxDeletes | None) -> dict[str, Limit]:
    found = {name: getattr(limits, attribute, None) for name, attribute in names_of(MaxDeletes).items()}
    return {name: limit for name, limit in found.items() if limit is not None}


def secret_at(reference: Reference, root: Path, environ: AnyMapping[str, str], what: str) -> Secret:
    """The secret that a reference stands for; `what` names it in the message when it is not there."""
    if reference.env is not None:
        name = reference.env
        return Secret(f"environment variable {name}", lambda: _from_environment(name, environ, what))
    path = root / (reference.file or "")
    return Secret(f"file {reference.file}", lambda: _from_file(path, what))


def located(text: str, root: Path) -> str:
    """Relative paths are relative to the project, in `sqlite:///relative` too."""
    if (match := re.match(r"(sqlite(?:\+[a-z]+)?:///)(?!/)(?!:memory:)(.+)", text)) is not None:
        return f"{match[1]}{root / match[2]}"
    return text if URL.match(text) else str(root / Path(text).expanduser())


def _from_environment(name: str, environ: AnyMapping[str, str], what: str) -> str:
    if not (value := environ.get(name, "").strip()):
        raise _problem("missing-setting", f"{what} is expected in the environment variable {name}, which is not set")
    return value


def _from_file(path: Path, what: str) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise _problem("missing-setting", f"{what} is expected in the file {path}: {reason}") from None
    if not value:
        raise _problem("missing-setting", f"{what} is expected in the file {path}, which is empty")
    return value


def _sendable(key: Secret) -> str:
    """A key that an HTTP header can carry; the refusal never shows it."""
    text = key.read()
    if not (text.isascii() and text.isprintable()):
        message = (
            f"the API key from {key.origin} has characters that no HTTP header can carry: is it one line of ASCII?"
        )
        raise _problem("bad-key", message)
    return text


def _missing(what: str, setting: str, variable: str) -> Problems:
    return _problem(
        "missing-setting", f"{what}: set `{setting}` in {FILE_NAME}, or the environment variable {variable}"
    )


def _problem(code: str, message: str) -> Problems:
    return Problems([Diagnostic(severity=Severity.ERROR, code=code, message=message)])


_SERVICE, _POLICY, _SERVE = Service(), Policy(), Serve()
