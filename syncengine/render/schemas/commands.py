"""The models of what commands print: `connector`, `health`, `fmt`, `init`, `adopt`, `publish`, `reviewed`, `drift`.

Fields may be added at any time.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from syncengine.render.formats import DiagnosticItem
from syncengine.render.schemas import Format, pydantic_model
from syncengine.render.schemas.state import Addresses


class ConnectorFormat(Format):
    """The document of `connector check --format json`, which has `team`, and of `connector register`, without it."""

    model_config = ConfigDict(title="syncengine connector")
    format: Literal["syncengine.connector/v1"]
    team: str = Field("", description="The team of the key; absent from `register`.")
    service_id: str | None = Field(None, description="The id that the service gave the connector.")
    service_id_expiry: str | None = Field(None, description="When the registration ends, as the service sent it.")
    group_name: str | None = None
    region_name: str | None = None
    connector_configuration: dict[str, Any] = Field({}, description="The settings from the service.")


class ReportedHealth(Format):
    error_type: Literal[
        "UNKNOWN",
        "TARGET_UNREACHABLE",
        "TARGET_AUTH_FAILURE",
        "TARGET_PERMISSIONS_FAILURE",
        "TARGET_SUBSCRIPTION_FAILURE",
    ]
    user_error_message: str | None = Field(description="The message for users; null for the type's default.")


class HealthFormat(Format):
    """The document of `health report --format json` and `health clear --format json`."""

    model_config = ConfigDict(title="syncengine health")
    format: Literal["syncengine.health/v1"]
    reported: ReportedHealth | None = Field(description="The failure that everybody sees; null once it is cleared.")


class LaidFile(Format):
    file: str = Field(description="The manifest, relative to the project's folder, or to the current one with PATHS.")
    diff: str | None = Field(None, description="The unified diff; absent without `--diff`.")


class FmtFormat(Format):
    """The document of `fmt --format json`."""

    model_config = ConfigDict(title="syncengine fmt")
    format: Literal["syncengine.fmt/v1"]
    files: list[LaidFile] = Field(description="The files that were, or with `--check` or `--diff` would be, formatted.")
    diagnostics: list[pydantic_model(DiagnosticItem)] = Field(description="What kept other files from it.")  # type: ignore[valid-type] # made when the program runs


class InitFormat(Format):
    """The document of `init --format json`. Files are relative to the new project's folder."""

    model_config = ConfigDict(title="syncengine init")
    format: Literal["syncengine.init/v1"]
    written: list[str] = Field(description="The files that were written.")
    kept: list[str] = Field(description="The files that existed and were left as they are.")
    left_out: list[str] | None = Field(
        None, description="Columns that may hold persons or addresses, and are left out; absent without `--from-csv`."
    )


class AdoptFormat(Format):
    """The document of `adopt --format json`."""

    model_config = ConfigDict(title="syncengine adopt")
    format: Literal["syncengine.adopt/v1"]
    adopted: Addresses = Field(description="The resources that are recorded now.")
    recorded_before: Addresses = Field(
        alias="known", description="The resources that were recorded already and left unchanged."
    )


class PublishFormat(Format):
    """The document of `publish --format json`."""

    model_config = ConfigDict(title="syncengine publish")
    format: Literal["syncengine.publish/v1"]
    outcome: Literal["created", "updated", "unchanged", "older", "summary", "dry-run"]
    text: str | None = Field(None, description="The comment; absent unless the outcome is `dry-run`.")
    url: str | None = Field(None, description="The URL of the comment, empty if there is none; absent of `dry-run`.")
    reason: str | None = Field(None, description="Why there is no comment, empty if there is one; absent of `dry-run`.")
    outputs: dict[str, str] = Field(description="The outputs for later steps of the job, by name.")


class ReviewedFormat(Format):
    """The document of `reviewed --format json`."""

    model_config = ConfigDict(title="syncengine reviewed")
    format: Literal["syncengine.reviewed/v1"]
    written: list[str] = Field(description="The files with the plans that were reviewed.")


Groups = int | Literal["<5"]
Values = dict[str, str | None]


class DriftCoverage(Format):
    """The part of the tags that was seen; drift is detected only in tags that appear in posted time."""

    tags: int = Field(ge=0, description="The number of declared tags in the state.")
    seen: int = Field(ge=0, description="The number of these tags that a group shows.")
    groups: Groups = Field(description="Groups of posted time that were read; published as `<5` if fewer than 5.")
    complete: bool = Field(description="Whether all groups of the period were read.")
    unreadable: int = Field(ge=0, description="Items of the list that are not a group with a time of submission.")
    hidden: list[str] = Field(
        description="Instants that fill a whole page of the list, so that further groups may be missing."
    )
    ignored: bool = Field(description="Whether the service ignored `submittedBefore`, listing only its newest groups.")
    endless: bool = Field(description="Whether reading stopped because the list did not end.")
    unlisted: Groups = Field(description="The number of groups with undeclared tags that are not among the findings.")


class DriftItem(Format):
    """The drift of one tag."""

    kind: Literal["unknown", "retired-in-use", "differs", "unused"]
    address: str | None = Field(description="The tag as `tag/NAME`; null if the name must not be published.")
    groups: Groups = Field(description="Groups that show the tag; published as `<5` if fewer than 5.")
    recorded: Values | None = Field(
        description="The recorded values: `status` of a removed tag, or the fields that differ. The values are null in"
        " published output."
    )
    seen: Values | None = Field(description="The newest values in posted time; null in published output.")
    last: str | None = Field(description="The time when the newest group was submitted; null in published output.")
    mended: bool = Field(description="Whether a newer group shows the tag as recorded.")
    similar: str | None = Field(
        description="A declared tag whose name differs only in case or Unicode form; null if none."
    )


class DriftFormat(Format):
    """The document of `drift --format json`."""

    model_config = ConfigDict(title="syncengine drift")
    format: Literal["syncengine.drift/v1"]
    published: bool = Field(description="Whether names and values that may not be published are left out, as in CI.")
    since: str = Field(description="The time since which submitted groups were read.")
    unused_since: str | None = Field(description="Tags without a group since then are unused; null without `--unused`.")
    coverage: DriftCoverage
    summary: dict[str, int] = Field(description="The number of tags by kind of finding.")
    findings: list[DriftItem]
