"""Build a `Project` from project file, environment variables and options. Secrets are read only on demand.

Precedence, from the strongest: options, environment variables, the chosen environment, the top level, the defaults of
docs/project-file.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.urls import Reference, base_url_trouble, split_url
from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.delivery_schema import ServeSection
from syncengine.project.environments import EnvironmentSettings, settings_of, variables_in
from syncengine.project.model import (
    APPROVAL,
    FILE_NAME,
    LIMITS,
    MANIFESTS,
    SANDBOX,
    Checkout,
    Level,
    Limit,
    Policy,
    Project,
    Serve,
    Service,
    default_landing,
)
from syncengine.project.quarantine import QuarantineEntry, entry_of
from syncengine.project.references import Secret, secret_at
from syncengine.project.schema import MaxDeletes, Overlay, PolicySection, ServiceSection

AT_LEAST_ONCE = "sink-at-least-once"
LINTS: AnyMapping[str, str] = {
    "insecure-url": "the API key would travel unencrypted",
    AT_LEAST_ONCE: "an HTTP sink without `find` may get posted time twice",
}

_LOOPBACK = re.compile(r"localhost|127(?:\.[0-9]+){3}|::1")


def load_project(
    *,
    folder: Path,
    config: Path | None = None,
    checkout: Checkout | None = None,
    environment: str | None = None,
    environ: AnyMapping[str, str],
    sandbox: bool = False,
    variables: AnyMapping[str, Any] | None = None,
    variable_files: Iterable[Path] = (),
    operations: Collection[str] = (),
    lints: Collection[str] = (),
) -> Project:
    """Return the project in `folder` or of the file `config`. Raise `Problems` with every problem of its file.

    `checkout` has the project file and the manifests of another revision; `folder` is still the project's own folder.
    `variables` take precedence over those in `variable_files`, of which later ones take precedence. `operations` and
    `lints` are the ids that `endpoints` and `policy.diagnostics` may name; empty means any.
    """
    path = _file(checkout.folder if checkout else folder, config)
    root = (path.parent if path and not checkout else folder).absolute()
    findings, digests = Collector(path.name if path else FILE_NAME), {} if path else {str(folder / FILE_NAME): ""}
    files = tuple(variable_files)
    in_files = {name: value for file in files for name, value in variables_in(file, digests).items()}
    chosen = environment or environ.get("SYNCENGINE_ENV") or None
    settings = settings_of(path, chosen, findings, operations, {*lints, *LINTS} if lints else (), digests)
    assembly = _Assembly(root, environ, settings, findings, checkout)
    again = partial(
        load_project,
        folder=folder,
        config=config,
        checkout=checkout,
        environment=environment,
        environ=environ,
        sandbox=sandbox,
        variables=variables,
        variable_files=files,
        operations=operations,
        lints=lints,
    )
    project = assembly.project(path, chosen, sandbox, {**in_files, **(variables or {})}, digests, again)
    found = levelled(in_order(findings.found), project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in found):
        raise Problems(found)
    return replace(project, warnings=tuple(found))


def levelled(found: Iterable[Diagnostic], levels: AnyMapping[str, Level]) -> list[Diagnostic]:
    """Return diagnostics at the project's levels: a warning may be dropped or become an error. Errors stay errors."""
    result = []
    for diagnostic in found:
        level = levels.get(diagnostic.code, Level.WARNING)
        if diagnostic.severity is Severity.ERROR or level is Level.WARNING:
            result.append(diagnostic)
        elif level is Level.ERROR:
            message = f"{diagnostic.message}{level_cure(diagnostic.code)}"
            result.append(structs.replace(diagnostic, severity=Severity.ERROR, message=message))
    return result


def level_cure(code: str) -> str:
    """Return the end of the message of a warning that the project's policy makes an error."""
    return f"; to make it a warning, set `{code}: warning` under `policy.diagnostics` in the project file"


def project_folder(folder: Path) -> Path:
    """Return the nearest folder with a project file, from `folder` up to the repository's top, or else `folder`."""
    for each in (folder.absolute(), *folder.absolute().parents):
        if (each / FILE_NAME).exists() or (each / FILE_NAME).is_symlink():
            return folder if each == folder.absolute() else each
        if (each / ".git").exists():
            break
    return folder


def _file(folder: Path, config: Path | None) -> Path | None:
    if config is not None:
        return config
    default = folder / FILE_NAME
    return default if default.exists() or default.is_symlink() else None


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Combines the file's settings with environment variables and options, which take precedence."""

    root: Path
    environ: AnyMapping[str, str]
    read: EnvironmentSettings
    findings: Collector
    checkout: Checkout | None = None

    @property
    def settings(self) -> Overlay:
        return self.read.here

    def project(
        self,
        path: Path | None,
        chosen: str | None,
        sandbox: bool,
        variables: AnyMapping[str, Any],
        digests: AnyMapping[str, str],
        again: Callable[[], Project],
    ) -> Project:
        settings = self.settings
        service = self._service(settings.service or ServiceSection())
        return Project(
            root=self.root,
            config=path,
            environment=chosen,
            service=service,
            manifests=self._manifests(settings),
            digests=digests,
            again=again,
            policies=self._policies(settings),
            inline_policies=tuple(each for each in settings.policies or () if not isinstance(each, str)),
            is_sandbox=sandbox or service.base_url == SANDBOX,
            policy=_policy(settings.policy or PolicySection()),
            approvals=(*(settings.approvals or ()), *self._approvals()),
            approval_lines=self.read.approval_lines,
            policy_lines=self.read.policy_lines,
            quarantine=self._quarantine(settings),
            checkout=self.checkout,
            allow_env=tuple(map(str, settings.allow_env or ())),
            variables={**(settings.variables or {}), **variables},
            environ=self.environ,
            defaults=settings.defaults,
            sources=settings.sources or {},
            posted_time=settings.posted_time,
            serve=_serve(settings.serve or ServeSection()),
            data_folders=settings.data_folders or (),
            blob=settings.links.blob if settings.links else None,
            _state=self._state(),
            _secrets=self.read.secrets,
        )

    def _quarantine(self, settings: Overlay) -> tuple[QuarantineEntry, ...]:
        items = zip(settings.quarantine or (), self.read.quarantine_lines, strict=True)
        return tuple(entry_of(each.address, each.reason, each.until, line) for each, line in items)

    def _policies(self, settings: Overlay) -> tuple[Path, ...] | None:
        """Return the files and folders with rules that the project file names, or `None` when it has no `policies:`."""
        items = settings.policies
        return None if items is None else tuple(self._place(each) for each in items if isinstance(each, str))

    def _manifests(self, settings: Overlay) -> tuple[Path, ...]:
        """Return the manifest folders; none in a project that only delivers posted time."""
        usual = self._place(MANIFESTS)
        if settings.manifests is None and settings.posted_time is not None and not usual.exists():
            return ()
        return tuple(map(self._place, settings.manifests or (MANIFESTS,)))

    def _place(self, name: str) -> Path:
        """Return the path of a manifest folder; a folder outside the repository is the same at every revision."""
        if self.checkout is None:
            return self.root / name
        place = Path(os.path.normpath(self.checkout.folder / name))
        return place if place.is_relative_to(self.checkout.top) else self.root / name

    def _service(self, section: ServiceSection) -> Service:
        timeout = section.timeout or _SERVICE.timeout
        return Service(
            base_url=self._base_url(section),
            api_key=self._api_key(section),
            team=section.team,
            endpoints=section.endpoints or {},
            timeout=timeout,
            landing=default_landing(timeout) if section.landing is None else section.landing,
            concurrency=section.concurrency or _SERVICE.concurrency,
            connector_type=section.connector_type or _SERVICE.connector_type,
        )

    def _base_url(self, section: ServiceSection) -> str | None:
        url_text = self.environ.get("SYNCENGINE_BASE_URL")
        if url_text and url_text != SANDBOX and (trouble := base_url_trouble(url_text)):
            self._error("bad-value", f"SYNCENGINE_BASE_URL {trouble}")
            return None
        url = url_text.rstrip("/") if url_text else section.base_url
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
                "the service's URL is http://, so the API key travels unencrypted: use https://",
                severity=Severity.WARNING,
            )
        return url  # fmt: skip

    def _api_key(self, section: ServiceSection) -> Secret | None:
        if self.environ.get("SYNCENGINE_API_KEY"):
            return self._secret(Reference(env="SYNCENGINE_API_KEY"), "the API key")
        return self._secret(section.api_key, "the API key") if section.api_key else None

    def _state(self) -> str | Secret:
        if self.environ.get("SYNCENGINE_STATE"):
            return self._secret(Reference(env="SYNCENGINE_STATE"), "the state's location")
        setting = self.settings.state
        if isinstance(setting, Reference):
            return self._secret(setting, "the state's location")
        return setting or ".syncengine/state.db"

    def _secret(self, reference: Reference, what: str) -> Secret:
        return secret_at(reference, self.root, self.environ, what)

    def _approvals(self) -> list[str]:
        approvals = re.split(r"[\s,]+", self.environ.get("SYNCENGINE_APPROVE_DELETES", "").strip())
        for text in approvals:
            if text and not APPROVAL.fullmatch(text):
                self._error("bad-value", "SYNCENGINE_APPROVE_DELETES must be COUNT@HASH, as printed by the plan")
        return [text for text in approvals if text]

    def _error(self, code: str, message: str) -> None:
        self.findings.found.append(Diagnostic(severity=Severity.ERROR, code=code, message=message))


def _policy(section: PolicySection) -> Policy:
    return Policy(
        tag_removal=section.tag_removal or _POLICY.tag_removal,
        activity_types=section.activity_types or _POLICY.activity_types,
        max_deletes={**LIMITS, **_limits(section.max_deletes)},
        diagnostics=section.diagnostics or {},
    )


def _serve(section: ServeSection) -> Serve:
    return Serve(every=section.every or _SERVE.every, listen=section.listen or _SERVE.listen)


def _limits(limits: MaxDeletes | None) -> dict[str, Limit]:
    found = {name: getattr(limits, attribute, None) for name, attribute in names_of(MaxDeletes).items()}
    return {name: limit for name, limit in found.items() if limit is not None}


_SERVICE, _POLICY, _SERVE = Service(), Policy(), Serve()
