"""Complete files, environments and recorded addresses in the shell. No function here raises an error."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

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
    """Return recorded addresses that begin with `incomplete`, or the kinds as long as no kind is complete."""
    from syncengine.cli.options import Globals
    from syncengine.resource import Kind
    from syncengine.state.store import open_state

    if "/" not in incomplete:
        return [CompletionItem(f"{kind.value}/") for kind in Kind if kind.value.startswith(incomplete)]
    with suppress(Exception):
        project = Globals.of(_options(ctx)).project()
        # A database server is not asked at each keystroke, and manifests are not read.
        if "://" not in project.state:
            with open_state(project.state, write=False) as state:
                matches = list(state.addresses_like(incomplete, MOST))
            return [_item(address) for address in matches if address.isprintable()]
    return []


def _options(ctx: click.Context) -> Mapping[str, Any]:
    """Return the options of all contexts so far. Those of inner contexts take precedence."""
    values: dict[str, Any] = {}
    at: click.Context | None = ctx
    while at is not None:
        values = {**{name: value for name, value in at.params.items() if value not in (None, ())}, **values}
        at = at.parent
    return values


def _item(value: str) -> CompletionItem:
    """Return a completion item, escaped for bash, which inserts it unchanged."""
    is_bash = os.environ.get("_SYNCENGINE_COMPLETE", "").startswith("bash")
    return CompletionItem(re.sub(r"([^\w@%+=:,./-])", r"\\\1", value) if is_bash else value)
