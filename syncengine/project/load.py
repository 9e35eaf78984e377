"""Build a `Project` from project file, environment variables and options. Secrets are read only on demand.

Precedence, from the strongest: options, environment variables, the chosen environment, the top level, the defaults of
docs/project-file.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from collections.abc import Mapping as AnyMapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.urls import Reference, base_url_trouble, split_url
from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.delivery_schema import ServeSection
from syncengine.project.environments import settings_of, variables_in
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
    QuarantineEntry,
    Serve,
    Service,
    default_landing,
)
from syncengine.project.references import Secret, secret_at
from syncengine.project.schema import MaxDeletes, Overlay, PolicySection, ServiceSection
from syncengine.resource import Key

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
    read = settings_of(path, chosen, findings, operations, {*lints, *LINTS} if lints else (), digests)
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
    here = read.here
    service = _service(here.service or ServiceSection(), root, environ, findings)
    project = Project(
        root=root,
        config=path,
        environment=chosen,
        service=service,
        manifests=_manifests(here, root, checkout),
        digests=digests,
        again=again,
        # `None`, where the file has no `policies:`, means the usual folder.
        policies=None if here.policies is None else tuple(_place(each, root, checkout) for each in _paths(here)),
        inline_policies=tuple(each for each in here.policies or () if not isinstance(each, str)),
        is_sandbox=sandbox or service.base_url == SANDBOX,
        policy=_policy(here.policy or PolicySection()),
        approvals=(*(here.approvals or ()), *_approvals(environ, findings)),
        approval_lines=read.approval_lines,
        policy_lines=read.policy_lines,
        quarantine=tuple(
            QuarantineEntry(Key.parse(each.address), each.reason, each.until, line)
            for each, line in zip(here.quarantine or (), read.quarantine_lines, strict=True)
        ),
        checkout=checkout,
        allow_env=tuple(map(str, here.allow_env or ())),
        variables={**(here.variables or {}), **in_files, **(variables or {})},
        environ=environ,
        defaults=here.defaults,
        sources=here.sources or {},
        posted_time=here.posted_time,
        serve=_serve(here.serve or ServeSection()),
        data_folders=here.data_folders or (),
        blob=here.links.blob if here.links else None,
        _state=_state(here.state, root, environ),
        _secrets=read.secrets,
    )
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


def _paths(settings: Overlay) -> list[str]:
    """Return the files and folders with rules that the project file names."""
    return [each for each in settings.policies or () if isinstance(each, str)]


def _manifests(settings: Overlay, root: Path, checkout: Checkout | None) -> tuple[Path, ...]:
    """Return the manifest folders; none in a project that only delivers posted time."""
    usual = _place(MANIFESTS, root, checkout)
    if settings.manifests is None and settings.posted_time is not None and not usual.exists():
        return ()
    return tuple(_place(each, root, checkout) for each in settings.manifests or (MANIFESTS,))


def _place(name: str, root: Path, checkout: Checkout | None) -> Path:
    """Return the path of a manifest folder; a folder outside the repository is the same at every revision."""
    if checkout is None:
        return root / name
    place = Path(os.path.normpath(checkout.folder / name))
    return place if place.is_relative_to(checkout.top) else root / name


def _service(section: ServiceSection, root: Path, environ: AnyMapping[str, str], findings: Collector) -> Service:
    """Return the service of the file, with the URL and the key of the environment, which take precedence."""
    timeout = section.timeout or _SERVICE.timeout
    key = Reference(env="SYNCENGINE_API_KEY") if environ.get("SYNCENGINE_API_KEY") else section.api_key
    return Service(
        base_url=_base_url(section, environ, findings),
        api_key=secret_at(key, root, environ, "the API key") if key else None,
        team=section.team,
        endpoints=section.endpoints or {},
        timeout=timeout,
        landing=default_landing(timeout) if section.landing is None else section.landing,
        concurrency=section.concurrency or _SERVICE.concurrency,
        connector_type=section.connector_type or _SERVICE.connector_type,
    )


def _base_url(section: ServiceSection, environ: AnyMapping[str, str], findings: Collector) -> str | None:
    given = environ.get("SYNCENGINE_BASE_URL")
    if given and given != SANDBOX and (trouble := base_url_trouble(given)):
        _refuse(f"SYNCENGINE_BASE_URL {trouble}", findings)
        return None
    url = given.rstrip("/") if given else section.base_url
    parts = split_url(url) if url else None
    if parts and parts.scheme == "http" and not _LOOPBACK.fullmatch(parts.hostname or ""):
        message = "the service's URL is http://, so the API key travels unencrypted: use https://"
        findings.at("insecure-url", None, None, message, severity=Severity.WARNING)
    return url


def _state(setting: str | Reference | None, root: Path, environ: AnyMapping[str, str]) -> str | Secret:
    place = Reference(env="SYNCENGINE_STATE") if environ.get("SYNCENGINE_STATE") else setting
    if isinstance(place, Reference):
        return secret_at(place, root, environ, "the state's location")
    return place or ".syncengine/state.db"


def _approvals(environ: AnyMapping[str, str], findings: Collector) -> list[str]:
    approvals = list(filter(None, re.split(r"[\s,]+", environ.get("SYNCENGINE_APPROVE_DELETES", ""))))
    for text in approvals:
        if not APPROVAL.fullmatch(text):
            _refuse("SYNCENGINE_APPROVE_DELETES must be COUNT@HASH, as printed by the plan", findings)
    return approvals


def _refuse(message: str, findings: Collector) -> None:
    """Report a bad value in the environment, which has no file and no line."""
    findings.found.append(Diagnostic(severity=Severity.ERROR, code="bad-value", message=message))


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
