"""The models of what `fmt`, `init`, `adopt`, `publish` and `reviewed` print. Fields may be added at any time."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from syncengine.render.formats import DiagnosticItem
from syncengine.render.schemas.from_models import Format, pydantic_model
from syncengine.render.schemas.state import Addresses


class LaidFile(Format):
    file: str = Field(description="The manifest, relative to the project's folder, or to the current one with PATHS.")
    diff: str | None = Field(None, description="The unified diff; absent without `--diff`.")


class FmtFormat(Format):
    """The document of `fmt --format json`."""

    model_config = ConfigDict(title="syncengine fmt")
    format: Literal["syncengine.fmt/v1"]
    files: list[LaidFile] = Field(description="The files that were, or with `--check` or `--diff` would be, formatted.")
    diagnostics: list[pydantic_model(DiagnosticItem)] = Field(description="What kept other files from it.")  # type: ignore[valid-type]


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
