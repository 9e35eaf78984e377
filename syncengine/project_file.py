"""The models of `syncengine.yaml`: names, types, limits and descriptions of every setting, once (product.md §4).

Readers and the JSON Schema come from here; `settings` makes a project of what they read. Nothing here echoes a value
that might be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import ConfigDict, Field, WithJsonSchema

from syncengine.document.findings import Findings, Invalid
from syncengine.document.nodes import Mapping, Node, Scalar, scalars
from syncengine.document.shapes import (
    Filled,
    Names,
    Reader,
    Reads,
    Texts,
    called,
    choice,
    is_text,
    refused,
    whole_number,
    words,
)
from syncengine.document.tables import Model, unexamined
from syncengine.resource import Removal


class Ownership(StrEnum):
    """Whose the team's list of activity types is (engine.md 3.3)."""

    OWNED = "owned"
    EXACT = "exact"
    ADDITIVE = "additive"


class Level(StrEnum):
    """What is made of a warning."""

    OFF = "off"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be removed without an approval: a count, or a share of what is recorded."""

    count: int | None = None
    percent: float | None = None

    def is_exceeded(self, count: int, total: int) -> bool:
        """Whether `count` of `total` is too many. A share trips from two on (engine.md §5)."""
        if self.percent is not None:
            return count >= 2 and count * 100 > self.percent * total
        return self.count is not None and count > self.count

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.count is None else str(self.count)


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret stands: an environment variable or a file, never the secret."""

    env: str | None = None
    file: str | None = None


URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
REFERENCE_KEYS = frozenset({"env", "file"})
APPROVAL = re.compile(r"[0-9]+@[0-9A-Za-z]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_PARAMETER = re.compile(r"[?&;](?:password|passwd|pwd|token|api_?key)=", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_USE_REFERENCE = "write {env: NAME} or {file: PATH} instead"


def split_url(text: str) -> SplitResult | None:
    """The parts of a URL, None when it has no sense."""
    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


def has_password(text: str) -> bool:
    """Whether a URL carries credentials, before its host or among its parameters."""
    if not URL.match(text):
        return False
    userinfo = text.split("://", 1)[1].rpartition("@")[0]
    is_port = re.match(r"[^:/]*:[0-9]*/", userinfo)
    return (":" in userinfo and not is_port) or _SECRET_PARAMETER.search(text) is not None


def base_url_trouble(text: str) -> str | None:
    """What is wrong with a base URL, without repeating it."""
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be a URL that starts with https://, or `sandbox`"
    if "@" in parts.netloc:
        return "must not hold credentials; the key belongs in `apiKey`"
    if parts.query or parts.fragment:
        return "must not have a query or a fragment"
    return None


def reference(name: str, node: Node, findings: Findings) -> Reference | Invalid:
    """`{env: NAME}` or `{file: PATH}`."""
    if not isinstance(node, Mapping):
        return refused(node, findings, name, "{env: NAME} or {file: PATH}", empty="")
    unknown = [key for key in node.keys if key.text not in REFERENCE_KEYS]
    if unknown or len(node.keys) != 1:
        at = unknown[0] if unknown else node
        return findings.error("bad-value", at, f"{called(name)} must be either {{env: NAME}} or {{file: PATH}}")
    (key,), (value,) = node.keys, node.values
    if not isinstance(value, Scalar) or not is_text(value) or not value.text.strip():
        return findings.error("bad-value", value, f"{called(name)} needs text after `{key.text}:`")
    if key.text == "file":
        return Reference(file=value.text)
    if not _ENV_NAME.fullmatch(value.text):
        return findings.error(
            "bad-value", value, f"{called(name)}: after `env:` stands the name of an environment variable"
        )
    return Reference(env=value.text)


def secret(name: str) -> Reader:
    def read(node: Node, findings: Findings) -> Any:
        if is_text(node):
            return findings.error(
                "secret-in-file", node, f"{called(name)} must not stand in the project file; {_USE_REFERENCE}"
            )
        return reference(name, node, findings)

    return read


def state(name: str) -> Reader:
    """A path, a URL without a password, or a reference to one with."""

    def read(node: Node, findings: Findings) -> Any:
        if not isinstance(node, Scalar) or not is_text(node):
            return reference(name, node, findings)
        if has_password(node.text):
            return findings.error("secret-in-file", node, f"the URL of `{name}` holds a password; {_USE_REFERENCE}")
        if not node.text.strip():
            return findings.error("empty-value", node, f"{called(name)} must not be empty")
        return node.text

    return read


def connections(name: str) -> Reader:
    """Left to later stations, save that no URL in it may hold a password."""
    keep = unexamined(name)

    def read(node: Node, findings: Findings) -> Any:
        for scalar in scalars(node):
            if has_password(scalar.text):
                message = f"a URL in `{name}` holds a password; {_USE_REFERENCE}"
                findings.error("secret-in-file", scalar, message)
        return keep(node, findings)

    return read


def base_url(name: str) -> Reader:
    def read(node: Node, findings: Findings) -> Any:
        if not isinstance(node, Scalar) or not is_text(node):
            return refused(node, findings, name, "a URL", empty="")
        trouble = None if node.text == "sandbox" else base_url_trouble(node.text)
        code = "secret-in-file" if trouble and "credentials" in trouble else "bad-value"
        return findings.error(code, node, f"{called(name)} {trouble}") if trouble else node.text.rstrip("/")

    return read


def parsed(parse: Callable[[str], Any], expected: str) -> Callable[[str], Reader]:
    """Text in a form of its own; `parse` returns None for text in another."""

    def make(name: str) -> Reader:
        def read(node: Node, findings: Findings) -> Any:
            if not isinstance(node, Scalar) or not is_text(node):
                return refused(node, findings, name, expected, empty="")
            value = parse(node.text)
            return findings.error("bad-value", node, f"{called(name)} must be {expected}") if value is None else value

        return read

    return make


def duration(text: str) -> float | None:
    """Seconds; more than none."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] or None if match else None


def limit(text: str) -> Limit | None:
    if re.fullmatch(r"[0-9]{1,9}", text):
        return Limit(count=int(text))
    if (match := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?)%", text)) and float(match[1]) <= 100:
        return Limit(percent=float(match[1]))
    return None


def approval(text: str) -> str | None:
    return text if APPROVAL.fullmatch(text) else None


def path(text: str) -> str | None:
    return text if text.startswith("/") and not re.search(r"[\s?#]", text) else None


def filled_path(text: str) -> str | None:
    return text if text.strip() and "\0" not in text else None


BaseUrl = Annotated[str, Reads(base_url)]
UrlPath = Annotated[str, Reads(parsed(path, "a path that starts with /"))]
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Method = Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], Reads(choice(_METHODS))]
Paths = Annotated[tuple[str, ...], Reads(words(parsed(filled_path, "a path")))]
Approvals = Annotated[tuple[str, ...], Reads(words(parsed(approval, "COUNT@HASH, as the plan prints it")))]
Duration = Annotated[
    float,
    Reads(parsed(duration, "a duration like 30s, 5m, 1h or 250ms")),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION.pattern}$"}),
]
_LIMIT_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?%?$"}]
}
LimitText = Annotated[
    Limit,
    Reads(parsed(limit, "a count like 20, or a share like 25% (0% to 100%)")),
    WithJsonSchema(_LIMIT_SCHEMA),
]
_REFERENCE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
SecretReference = Annotated[Reference, Reads(secret), WithJsonSchema(_REFERENCE_SCHEMA)]
StateSetting = Annotated[
    Reference | str, Reads(state), WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _REFERENCE_SCHEMA]})
]
Section = Annotated[Any, Reads(unexamined), WithJsonSchema({"type": "object"})]
Connections = Annotated[Any, Reads(connections), WithJsonSchema({"type": "object"})]


class EndpointOverride(Model):
    """Where an operation is, when it is not at its usual place."""

    path: UrlPath | None = None
    method: Method | None = None


class ServiceSection(Model):
    """The time-recording service."""

    base_url: BaseUrl | None = Field(None, description="The service's URL, or `sandbox`.")
    api_key: SecretReference | None = Field(None, description="{env: NAME} or {file: PATH}; never the key itself.")
    team: Filled | None = Field(None, description="Checked before the first write.")
    endpoints: dict[str, EndpointOverride] | None = Field(None, description="Other paths, by operation id.")
    timeout: Duration | None = Field(None, description="How long an answer may take; 30s by default.")
    concurrency: Annotated[int, Reads(whole_number(1, 64)), Field(ge=1, le=64)] | None = Field(
        None, description="Requests under way at once, 1 to 64; 8 by default."
    )


class MaxDeletes(Model):
    """How much may go without an approval (engine.md §5): a count, or a share of what is recorded."""

    tags: LimitText | None = None
    activity_types: LimitText | None = None
    keywords: LimitText | None = None
    metadata: LimitText | None = None
    fields: LimitText | None = None


class PolicySection(Model):
    """What a plan may do."""

    tag_removal: Annotated[Removal, Reads(choice(Removal))] | None = Field(
        None, description="How a tag leaves that is gone from the manifests; forget by default."
    )
    activity_types: Annotated[Ownership, Reads(choice(Ownership))] | None = Field(
        None, description="Whether activity types that are not declared are removed; owned by default."
    )
    max_deletes: MaxDeletes | None = None
    diagnostics: dict[str, Annotated[Level, Reads(choice(Level))]] | None = Field(
        None, description="Warnings by code: off, warning or error."
    )


class Overlay(Model):
    """Settings that an environment may replace."""

    service: ServiceSection | None = None
    manifests: Paths | None = Field(None, description="Files and folders with manifests; `manifests` by default.")
    state: StateSetting | None = Field(None, description="A path (SQLite), a URL without a password, or a reference.")
    sources: Connections | None = Field(None, description="Connections that manifests may name.")
    variables: Texts | None = Field(None, description="`var.NAME` in templates.")
    allow_env: Names | None = Field(None, description="Environment variables that templates may read.")
    defaults: Section | None = Field(None, description="Merged under every resource of all manifests.")
    policy: PolicySection | None = None
    approvals: Approvals | None = Field(None, description="COUNT@HASH of removals that are approved (engine.md §5).")
    posted_time: Section | None = Field(None, description="Where posted time is delivered.")
    serve: Section | None = Field(None, description="The long-running connector.")


class ProjectFile(Overlay):
    """The project file."""

    model_config = ConfigDict(title="syncengine project file")

    version: Annotated[Literal[1], Reads(whole_number(1, 1))]
    environments: dict[str, Overlay] | None = Field(None, description="Merged over the above; chosen with --env.")
