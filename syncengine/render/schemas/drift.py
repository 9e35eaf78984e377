"""The model of `drift --format json`. Fields may be added at any time."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas.from_models import Format

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
