"""The format of `drift` for machines. More fields may be added."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas.from_models import Format

Groups = int | Literal["<5"]
Values = dict[str, str | None]


class DriftCoverage(Format):
    """How much of the tags was seen: what no group shows cannot be known."""

    tags: int = Field(ge=0, description="Tags that are declared, as the state records them.")
    seen: int = Field(ge=0, description="Those of them that a group shows.")
    groups: Groups = Field(description="Groups of posted time that were read; where it is published, at least 5.")
    complete: bool = Field(description="Whether these are all groups of that time that the service has.")
    unreadable: int = Field(ge=0, description="Items of the list that are not a group with a time of submission.")
    hidden: list[str] = Field(description="Instants with more groups than the service lists.")
    ignored: bool = Field(description="The service lists its newest groups whatever it is asked for.")
    endless: bool = Field(description="The list had no end, and reading stopped.")
    unlisted: Groups = Field(description="Groups of tags that nobody declared, beyond those that are findings.")


class DriftItem(Format):
    """The drift of one tag."""

    kind: Literal["unknown", "retired-in-use", "differs", "unused"]
    address: str | None = Field(description="`tag/NAME`; null: the name is not published.")
    groups: Groups = Field(description="Groups that show it; where it is published, at least 5.")
    recorded: Values | None = Field(
        description="What is recorded: `status` of a tag that is gone, or the fields that differ. Their values are null"
        " where it is published."
    )
    seen: Values | None = Field(description="The newest values that were seen; null where it is published.")
    last: str | None = Field(description="When the newest group was submitted; null where it is published.")
    mended: bool = Field(description="Whether a newer group shows it as recorded.")
    similar: str | None = Field(description="A declared tag whose name differs only by case or Unicode form.")


class DriftFormat(Format):
    """`drift --format json`."""

    model_config = ConfigDict(title="syncengine drift")
    format: Literal["syncengine.drift/v1"]
    published: bool = Field(description="Whether names and values are left out that may not be published, as in CI.")
    since: str = Field(description="Groups submitted since then count.")
    unused_since: str | None = Field(description="A tag that no group shows since then is unused; null: not asked for.")
    coverage: DriftCoverage
    summary: dict[str, int] = Field(description="Tags by kind of finding.")
    findings: list[DriftItem]
