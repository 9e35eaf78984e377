"""Define the models of `syncengine.yaml`: name, type, limits and description of every setting (docs/project-file.md).

The models validate the file and make its JSON Schema; `load` builds a project from them. No message shows a value that
might be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, WithJsonSchema

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Fields, Node, Scalar, at, items
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.validation import Model, display, names_of, part_of, problem
from syncengine.instants import DATE, RFC3339
from syncengine.project.delivery_schema import PostedTimeSection, ServeSection, SourceConfig
from syncengine.project.model import APPROVAL, Level, Limit, Ownership, until_of
from syncengine.project.types import (
    AS_WRITTEN,
    DISTINCT,
    SOME_TEXT,
    BaseUrl,
    Duration,
    Filled,
    Flag,
    Identity,
    Method,
    OnlyTrue,
    OrFalse,
    Paths,
    Place,
    SecretReference,
    Span,
    Texts,
    UrlPath,
    Whole,
    filled_path,
    parsed,
    text_of,
)
from syncengine.resource import Key, Kind, Removal

LIKE_SECRETS = (
    *("*TOKEN*", "*SECRET*", "*PASSW*", "*PASSPHRASE*", "*KEY*", "*CREDENTIAL*", "*CREDS*", "*COOKIE*"),
    *("*_PWD", "*_DSN", "*_AUTH", "*_PAT", "DATABASE_URL", "*DB_URL"),
)
"""Patterns of variable names that usually hold a secret; upper and lower case match alike."""


class NotSecret(Model):
    """A variable whose name looks like a secret although its value is not."""

    title = "an item of allowEnv"

    name: Identity = Field(description="Name of the environment variable.")
    not_secret: OnlyTrue = Field(description="Must be true: the variable holds no secret, despite its name.")


_NAME: TypeAdapter[str] = TypeAdapter(Identity)


def _allowed(value: Any) -> str:
    """Return the name of a variable; a mapping declares that the variable is not secret."""
    return NotSecret.model_validate(value).name if isinstance(value, dict) else _NAME.validate_python(value)


AllowedNames = Annotated[
    tuple[Annotated[NotSecret | str, PlainValidator(_allowed, json_schema_input_type=Identity | NotSecret)], ...],
    DISTINCT,
]


def check_allowed(parts: Iterable[Node], secrets: Collection[str], findings: Collector) -> None:
    """Report variables that hold the project's secrets, and secret-looking names that are not declared `notSecret`."""
    for item in (item for part in parts for item in items(at(part, "allowEnv"))):
        name = at(item, "name") if isinstance(item, MappingNode) else item
        if not isinstance(name, Scalar):
            continue
        if name.text in secrets:
            message = f"`allowEnv` names {display(name.text)}, which holds a secret: templates must not read it"
            findings.error("secret-allowed", name, message)
        elif name is item and any(fnmatchcase(name.text.upper(), like) for like in LIKE_SECRETS):
            shown = display(name.text)
            message = f"`allowEnv` names {shown}, whose name looks like a secret: plans show what templates read"
            cure = f"remove it or, if it is not a secret, write {{name: {shown}, notSecret: true}}"
            findings.error("secret-allowed", name, f"{message}; {cure}")


def limit(text: str) -> Limit | None:
    if re.fullmatch(r"[0-9]{1,9}", text):
        return Limit(count=int(text))
    if (match := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?)%", text)) and float(match[1]) <= 100:
        return Limit(percent=float(match[1]))
    return None


def address(text: str) -> str | None:
    try:
        return str(Key.parse(text))
    except ValueError:
        return None


def approval(text: str) -> str | None:
    return text if APPROVAL.fullmatch(text) else None


Approvals = Annotated[
    tuple[
        Annotated[
            str,
            parsed(approval, "COUNT@HASH, as printed by the plan"),
            WithJsonSchema({"type": "string", "pattern": f"^{APPROVAL.pattern}$"}),
        ],
        ...,
    ],
    DISTINCT,
]
_SHARE = r"(0?[0-9]{1,2}([.][0-9]+)?|100([.]0+)?)%"
_LIMIT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        {"type": "string", "pattern": f"^([0-9]{{1,9}}|{_SHARE})$"},
    ]
}
LimitText = Annotated[
    Limit,
    parsed(limit, "a count like 20, or a share like 25% (0% to 100%)"),
    WithJsonSchema(_LIMIT_SCHEMA),
]
Section = Annotated[Any, AS_WRITTEN, WithJsonSchema({"type": "object"})]


def _rule_file(value: Any) -> Any:
    """Return a path, or the node of rules, which are parsed where they are evaluated."""
    if isinstance(value, Fields):
        return value.node
    if (path := filled_path(text_of(value, expected := "a path, or a mapping with rules"))) is None:
        raise problem("bad-value", f"must be {expected}")
    return str(path)


RuleFiles = tuple[
    Annotated[Any, PlainValidator(_rule_file), WithJsonSchema({"anyOf": [SOME_TEXT, part_of("Policies")]})], ...
]


class EndpointOverride(Model):
    """The method and path of an operation that differ from the service's defaults."""

    path: UrlPath | None = Field(default=None, description="The path below the service's URL.")
    method: Method | None = Field(default=None, description="HTTP method, if it differs from the service's default.")
    confirmed: Flag = Field(
        default=False,
        description="`true`: the path is right, so a 404 counts as it does from a default path, before any success.",
    )


class ServiceSection(Model):
    """The time-recording service."""

    base_url: BaseUrl | None = Field(default=None, description="The service's URL, or `sandbox`.")
    api_key: SecretReference | None = Field(
        default=None, description="{env: NAME} or {file: PATH}, never the key itself."
    )
    team: Filled | None = Field(default=None, description="The team's name, checked before the first write.")
    endpoints: dict[str, EndpointOverride] = Field(
        default_factory=dict, description="Non-default paths and methods, by operation id."
    )
    timeout: Duration = Field(default=30.0, description="How long an answer may take; 30s by default.")
    own_landing: Span | None = Field(
        default=None,
        alias="landing",
        description="How long the service may still execute a call after its sender has given up; "
        "60s by default, or twice the timeout where that is more.",
    )
    concurrency: Annotated[int, Whole(1, 64)] = Field(
        default=8, description="Maximum number of concurrent requests, 1 to 64; 8 by default."
    )
    connector_type: Filled = Field(
        default="syncengine",
        description="The connected system, under the name that a connector registers; `syncengine` by default.",
    )

    @property
    def landing(self) -> float:
        """The seconds for which the service may still execute a call after its sender has given up."""
        # Twice: a gateway in between may hold a call for as long as its sender waited.
        return max(60.0, 2 * self.timeout) if self.own_landing is None else self.own_landing

    @property
    def lease(self) -> float:
        """The seconds for which a lock is valid after each renewal."""
        return max(60.0, 2 * self.timeout)

    @property
    def lock_timeout(self) -> float:
        """The seconds after which a dead holder's lock can be taken and its last call can no longer land."""
        return self.lease + self.timeout + self.landing


class MaxDeletes(Model):
    """How much a plan may remove without an approval: a count, or a share of what is recorded."""

    tags: LimitText = Field(
        default=Limit(percent=25), description="Limit for tags that are forgotten, retired or deleted; 25% by default."
    )
    activity_types: LimitText = Field(
        default=Limit(percent=25), description="Limit for activity types that are removed; 25% by default."
    )
    keywords: LimitText = Field(
        default=Limit(percent=50), description="Limit for keywords that are deleted; 50% by default."
    )
    metadata: LimitText = Field(
        default=Limit(percent=50), description="Limit for metadata values that are deleted; 50% by default."
    )
    fields: LimitText = Field(
        default=Limit(percent=50), description="Limit for fields that are cleared; 50% by default."
    )

    def by_name(self) -> dict[str, Limit]:
        """Return all limits by their names in the file."""
        return {name: getattr(self, attribute) for name, attribute in names_of(MaxDeletes).items()}

    def and_also(self, other: MaxDeletes) -> MaxDeletes:
        """Return the limits that result when both apply."""
        stricter = {name: getattr(self, name).and_also(getattr(other, name)) for name in names_of(MaxDeletes).values()}
        return self.model_copy(update=stricter)


_BLOB = r'(?=.*\{file\})https?://[^\s<>"{}@]+(?:\{(?:commit|file|line)\}[^\s<>"{}@]*)+'
Blob = Annotated[
    str,
    parsed(
        lambda text: text if re.fullmatch(_BLOB, text) else None,
        "a URL like https://HOST/PROJECT/blob/{commit}/{file}#L{line}",
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_BLOB}$"}),
]
"""A URL with {file}, and optionally {commit} and {line}, as placeholders."""


class LinksSection(Model):
    """The web pages on which people read the repository's files."""

    blob: Blob | None = Field(
        default=None,
        description="The URL of a line, with {commit}, {file} and {line}; derived from CI variables by default.",
    )


Address = Annotated[
    str,
    parsed(address, "an address: tag/NAME, category/EXTERNAL_ID or activity-type/CODE"),
    WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(Kind)})/."}),
]
Until = Annotated[
    float,
    parsed(until_of, "a date like 2027-01-31, or a date and time like 2027-01-31T09:00:00Z"),
    WithJsonSchema({"type": "string", "pattern": f"^({DATE}|{RFC3339.pattern})$"}),
]


class QuarantineItem(Model):
    """A resource that is set aside because the service rejects it."""

    address: Address = Field(description="The resource: tag/NAME, category/EXTERNAL_ID or activity-type/CODE.")
    reason: Filled = Field(description="Why the resource is set aside; shown in every plan.")
    until: Until | None = Field(
        default=None,
        description="The last day (UTC) or the instant at which the quarantine ends; "
        "required for a removal, at most 30 days ahead.",
    )


class PolicySection(Model):
    """The policy for plans: how they remove, how much, and which warnings they report."""

    tag_removal: Removal = Field(
        default=Removal.FORGET,
        description="How to remove a tag that the manifests no longer declare; forget by default.",
    )
    activity_types: Ownership = Field(
        default=Ownership.OWNED, description="Whether to remove activity types that are not declared; owned by default."
    )
    max_deletes: MaxDeletes = Field(default_factory=MaxDeletes)
    diagnostics: dict[str, Annotated[Level, OrFalse()]] = Field(
        default_factory=dict, description="The level of each warning, by its code: off, warning or error."
    )

    def limits(self) -> dict[str, str]:
        """Return the limits by name, as the project file writes them."""
        return {name: str(each) for name, each in self.max_deletes.by_name().items()}


class Overlay(Model):
    """The settings that an environment may override."""

    title = "an environment"

    service: ServiceSection | None = None
    manifests: Paths | None = Field(
        default=None, description="Files and folders with manifests; `manifests` by default."
    )
    policies: RuleFiles | None = Field(
        default=None,
        description="Files and folders with rules, or rules themselves; `policies` by default, if it exists.",
    )
    state: Place | None = Field(
        default=None, description="The state: a path (SQLite), a URL without a password, or a reference."
    )
    sources: dict[str, SourceConfig] | None = Field(
        default=None, description="Connections, by the name that manifests and sinks refer to."
    )
    data_folders: Paths | None = Field(
        default=None, description="Folders outside the project whose files manifests may read as data."
    )
    variables: Texts | None = Field(default=None, description="Variables, available to templates as `var.NAME`.")
    allow_env: AllowedNames | None = Field(
        default=None,
        description="Environment variables that templates may read; none may hold a secret or be named like one.",
    )
    defaults: Section | None = Field(default=None, description="Defaults for the resources of all manifests.")
    policy: PolicySection | None = None
    links: LinksSection | None = Field(default=None, description="Where people read the files of the repository.")
    approvals: Approvals | None = Field(default=None, description="Approved removals, as COUNT@HASH printed by a plan.")
    quarantine: tuple[QuarantineItem, ...] | None = Field(
        default=None, description="Resources that are set aside because the service rejects them, each with its reason."
    )
    posted_time: PostedTimeSection | None = Field(default=None, description="Where posted time is delivered.")
    serve: ServeSection | None = Field(default=None, description="The long-running connector.")


class ProjectFile(Overlay):
    """The project file."""

    model_config = ConfigDict(title="syncengine project file")
    title = "the project file"
    synonyms: ClassVar[Mapping[str, str]] = {"env": "environments", "service.baseUrl": "service"}

    version: Annotated[Literal[1], Whole(1, 1), Field(description="Version of this format: 1.")]
    environments: dict[str, Overlay] | None = Field(
        default=None, description="Settings merged over those above, by environment name; chosen with --env."
    )
