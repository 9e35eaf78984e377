"""Completion in the shell: files, environments, and addresses that are recorded or declared. Never an error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from syncengine.project.model import Project

MOST = 500
"""Addresses that are offered; nobody reads more."""


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, which the shell finds itself."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def environments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The environments of the project file."""
    from syncengine.cli.options import Globals
    from syncengine.project.environments import environment_names
    from syncengine.project.model import FILE_NAME

    with suppress(Exception):
        options = Globals.of(_options(ctx))
        path = options.folder / (options.config or FILE_NAME)
        return [_item(name) for name in environment_names(path) if name.startswith(incomplete)]
    return []


def addresses(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Addresses that begin so; without a kind, the kinds."""
    from syncengine.cli.options import Globals
    from syncengine.resource import Kind

    if "/" not in incomplete:
        return [CompletionItem(f"{kind.value}/") for kind in Kind if kind.value.startswith(incomplete)]
    with suppress(Exception):
        project = Globals.of(_options(ctx)).project()
        matches = sorted({*_recorded(project, incomplete), *_declared(project, incomplete)})
        return [_item(address) for address in matches if address.isprintable()][:MOST]
    return []


def _options(ctx: click.Context) -> Mapping[str, Any]:
    """The options that the contexts have so far, the innermost first."""
    values: dict[str, Any] = {}
    at: click.Context | None = ctx
    while at is not None:
        values = {**{name: value for name, value in at.params.items() if value not in (None, ())}, **values}
        at = at.parent
    return values


def _recorded(project: Project, prefix: str) -> Iterator[str]:
    """The addresses of a local state; a server is not asked at every key."""
    from syncengine.state.sqlite_reader import addresses_like

    with suppress(Exception):
        if "://" not in project.state:
            yield from addresses_like(project.state, prefix, MOST)


def _declared(project: Project, prefix: str) -> Iterator[str]:
    """The addresses of small manifests; those of large ones are in the state by now."""
    from syncengine.manifest.desired import manifest_set
    from syncengine.plan.planner import WORTH_KEEPING

    with suppress(Exception):
        manifests = manifest_set(project)
        size = sum(file.size() for file in manifests.files)
        if size < WORTH_KEEPING and not any(file.generates() for file in manifests.files):
            yield from (str(key) for key in manifests.read().resources if str(key).startswith(prefix))


def _item(value: str) -> CompletionItem:
    """A value for the shell: bash puts it on the line unchanged."""
    is_bash = os.environ.get("_SYNCENGINE_COMPLETE", "").startswith("bash")
    return CompletionItem(re.sub(r"([^\w@%+=:,./-])", r"\\\1", value) if is_bash else value)
