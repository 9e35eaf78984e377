"""Complete files, environments and known addresses in the shell. No function here raises an error."""

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
"""The largest number of addresses to offer."""


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ask the shell to complete files."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def environments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the environments of the project file that begin with `incomplete`."""
    from syncengine.cli.options import Globals
    from syncengine.project.environments import environment_names
    from syncengine.project.model import FILE_NAME

    with suppress(Exception):
        options = Globals.of(_options(ctx))
        path = options.folder / (options.config or FILE_NAME)
        return [_item(name) for name in environment_names(path) if name.startswith(incomplete)]
    return []


def addresses(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return known addresses that begin with `incomplete`, or the kinds as long as no kind is complete."""
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
    """Return the options of all contexts so far. Those of inner contexts take precedence."""
    values: dict[str, Any] = {}
    at: click.Context | None = ctx
    while at is not None:
        values = {**{name: value for name, value in at.params.items() if value not in (None, ())}, **values}
        at = at.parent
    return values


def _recorded(project: Project, prefix: str) -> Iterator[str]:
    """Yield the recorded addresses of a local state. A database server is not asked at each keystroke."""
    from syncengine.state.store import open_state

    with suppress(Exception):
        if "://" not in project.state:
            with open_state(project.state, write=False) as state:
                yield from state.addresses_like(prefix, MOST)


def _declared(project: Project, prefix: str) -> Iterator[str]:
    """Yield the declared addresses, of small manifests only: large ones would take too long to read."""
    from syncengine.manifest.desired import manifest_set
    from syncengine.plan.planner import WORTH_KEEPING

    with suppress(Exception):
        manifests = manifest_set(project)
        size = sum(file.size() for file in manifests.files)
        if size < WORTH_KEEPING and not any(file.generates() for file in manifests.files):
            yield from (str(key) for key in manifests.read().resources if str(key).startswith(prefix))


def _item(value: str) -> CompletionItem:
    """Return a completion item, escaped for bash, which inserts it unchanged."""
    is_bash = os.environ.get("_SYNCENGINE_COMPLETE", "").startswith("bash")
    return CompletionItem(re.sub(r"([^\w@%+=:,./-])", r"\\\1", value) if is_bash else value)
