"""The models of `syncengine.yaml`: names, types, limits and descriptions of every setting, once (product.md §4).

Readers and the JSON Schema come from here; `settings` makes a project of what they read. Nothing here echoes a value
that might be a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from syncengine.delivery_file import PostedTimeSection, ServeSection, SourceSection
from syncengine.document.shapes import Filled, Names, Reads, Texts, choice, whole_number, words
from syncengine.document.tables import Model, unexamined
from syncengine.resource import Removal
from syncengine.setting_shapes import BaseUrl, Duration, Method, Paths, Place, SecretReference, UrlPath, parsed


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


APPROVAL = re.compile(r"[0-9]+@[0-9A-Za-z]+")


def limit(text: str) -> Limit | None:
    if re.fullmatch(r"[0-9]{1,9}", text):
        return Limit(count=int(text))
    if (match := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?)%", text)) and float(match[1]) <= 100:
        return Limit(percent=float(match[1]))
    return None


def approval(text: str) -> str | None:
    return text if APPROVAL.fullmatch(text) else None


Approvals = Annotated[tuple[str, ...], Reads(words(parsed(approval, "COUNT@HASH, as the plan prints it")))]
_LIMIT_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?%?$"}]
}
LimitText = Annotated[
    Limit,
    Reads(parsed(limit, "a count like 20, or a share like 25% (0% to 100%)")),
    WithJsonSchema(_LIMIT_SCHEMA),
]
Section = Annotated[Any, Reads(unexamined), WithJsonSchema({"type": "object"})]


class EndpointOverride(Model):
    """Where an operation is, when it is not at its usual place."""

    path: UrlPath | None = Field(None, description="Below the service's URL.")
    method: Method | None = Field(None, description="As the service has it by default.")


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

    tags: LimitText | None = Field(None, description="Of tags that are retired or deleted; 25% by default.")
    activity_types: LimitText | None = Field(None, description="Of activity types that are removed; 25% by default.")
    keywords: LimitText | None = Field(None, description="Of keywords that are deleted; 50% by default.")
    metadata: LimitText | None = Field(None, description="Of metadata values that are deleted; 50% by default.")
    fields: LimitText | None = Field(None, description="Of fields that are cleared; 50% by default.")


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
    state: Place | None = Field(None, description="A path (SQLite), a URL without a password, or a reference.")
    sources: dict[str, SourceSection] | None = Field(None, description="Connections, by the name that others use.")
    data_folders: Paths | None = Field(
        None, description="Folders outside the project whose files manifests may read as data."
    )
    variables: Texts | None = Field(None, description="`var.NAME` in templates.")
    allow_env: Names | None = Field(
        None, description="Environment variables that templates may read; none with a secret."
    )
    defaults: Section | None = Field(None, description="Merged under every resource of all manifests.")
    policy: PolicySection | None = None
    approvals: Approvals | None = Field(None, description="COUNT@HASH of removals that are approved (engine.md §5).")
    posted_time: PostedTimeSection | None = Field(None, description="Where posted time is delivered.")
    serve: ServeSection | None = Field(None, description="The long-running connector.")


class ProjectFile(Overlay):
    """The project file."""

    model_config = ConfigDict(title="syncengine project file")

    version: Annotated[Literal[1], Reads(whole_number(1, 1))] = Field(description="Of this format: 1.")
    environments: dict[str, Overlay] | None = Field(None, description="Merged over the above; chosen with --env.")
