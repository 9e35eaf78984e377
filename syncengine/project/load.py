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
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.delivery_schema import ServeSection
from syncengine.project.environments import settings_of, variables_in
from syncengine.project.model import (
    APPROVAL,
    DEFAULT_STATE,
    FILE_NAME,
    MANIFESTS,
    SANDBOX,
    Checkout,
    Level,
    Project,
    QuarantineEntry,
)
from syncengine.project.references import Reference, base_url_trouble, split_url
from syncengine.project.schema import Overlay, PolicySection, ServiceSection
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
    given = locals()
    root_of_file = checkout.folder if checkout else folder
    path = config
    if path is None and os.path.lexists(root_of_file / FILE_NAME):
        path = root_of_file / FILE_NAME
    root = (path.parent if path and not checkout else folder).absolute()
    findings, digests = Collector(path.name if path else FILE_NAME), {} if path else {str(folder / FILE_NAME): ""}
    given["variable_files"] = files = tuple(variable_files)
    in_files = {name: value for file in files for name, value in variables_in(file, digests).items()}
    chosen = environment or environ.get("SYNCENGINE_ENV") or None
    read = settings_of(path, chosen, findings, operations, {*lints, *LINTS} if lints else (), digests)
    here, service = _with_environment(read.here, environ, findings)

    def place(name: str) -> Path:
        """Return the path of a folder of the file; one outside the repository is the same at every revision."""
        if checkout is None:
            return root / name
        found = Path(os.path.normpath(checkout.folder / name))
        return found if found.is_relative_to(checkout.top) else root / name

    # A project that only delivers posted time needs no manifests.
    has_none = here.manifests is None and here.posted_time is not None and not place(MANIFESTS).exists()
    project = Project(
        root=root,
        config=path,
        environment=chosen,
        service=service,
        manifests=() if has_none else tuple(map(place, here.manifests or (MANIFESTS,))),
        digests=digests,
        again=partial(load_project, **given),
        # `None`, where the file has no `policies:`, means the usual folder.
        policies=None
        if here.policies is None
        else tuple(place(each) for each in here.policies if isinstance(each, str)),
        inline_policies=tuple(each for each in here.policies or () if not isinstance(each, str)),
        is_sandbox=sandbox or service.base_url == SANDBOX,
        policy=here.policy or PolicySection(),
        approvals=here.approvals or (),
        lines=read.lines,
        quarantine=tuple(
            QuarantineEntry(Key.parse(each.address), each.reason, each.until, read.lines[f"quarantine.{number}"])
            for number, each in enumerate(here.quarantine or ())
        ),
        checkout=checkout,
        allow_env=tuple(map(str, here.allow_env or ())),
        variables={**(here.variables or {}), **in_files, **(variables or {})},
        environ=environ,
        defaults=here.defaults,
        sources=here.sources or {},
        posted_time=here.posted_time,
        serve=here.serve or ServeSection(),
        data_folders=here.data_folders or (),
        blob=here.links.blob if here.links else None,
        _state=here.state or DEFAULT_STATE,
        _secrets=read.secrets,
    )
    found = levelled(in_order(findings.found), project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in found):
        raise Problems(found)
    return replace(project, warnings=tuple(found))


def _with_environment(
    here: Overlay, environ: AnyMapping[str, str], findings: Collector
) -> tuple[Overlay, ServiceSection]:
    """Return the settings of the file, and of its service, with those of the environment, which take precedence."""
    service = here.service or ServiceSection()
    given, url = environ.get("SYNCENGINE_BASE_URL"), service.base_url
    if given and given != SANDBOX and (trouble := base_url_trouble(given)):
        _refuse(f"SYNCENGINE_BASE_URL {trouble}", findings)
    elif given:
        url = given.rstrip("/")
    parts = split_url(url) if url else None
    if parts and parts.scheme == "http" and not _LOOPBACK.fullmatch(parts.hostname or ""):
        message = "the service's URL is http://, so the API key travels unencrypted: use https://"
        findings.at("insecure-url", None, None, message, severity=Severity.WARNING)
    key = Reference(env="SYNCENGINE_API_KEY") if environ.get("SYNCENGINE_API_KEY") else service.api_key
    state = Reference(env="SYNCENGINE_STATE") if environ.get("SYNCENGINE_STATE") else here.state
    approvals = tuple(filter(None, re.split(r"[\s,]+", environ.get("SYNCENGINE_APPROVE_DELETES", ""))))
    if not all(APPROVAL.fullmatch(text) for text in approvals):
        _refuse("SYNCENGINE_APPROVE_DELETES must be COUNT@HASH, as printed by the plan", findings)
    merged = here.model_copy(update={"state": state, "approvals": (*(here.approvals or ()), *approvals)})
    return merged, service.model_copy(update={"base_url": url, "api_key": key})


def _refuse(message: str, findings: Collector) -> None:
    """Report a bad value in the environment, which has no file and no line."""
    findings.found.append(Diagnostic(severity=Severity.ERROR, code="bad-value", message=message))


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
        if os.path.lexists(each / FILE_NAME):
            return folder if each == folder.absolute() else each
        if (each / ".git").exists():
            break
    return folder
