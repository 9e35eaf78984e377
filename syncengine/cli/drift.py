"""drift: compare the tags in posted time with the state."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncengine.cli.help import Command
from syncengine.cli.option_types import Age, PastTime
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, output_format
from syncengine.cli.plan_options import of_addresses
from syncengine.cli.service_call import calling
from syncengine.errors import ExitCode, GateTripped, SyncengineError, Usage
from syncengine.project.flags import is_ci

if TYPE_CHECKING:
    from syncengine.posted_time.drift.compare import Drift
    from syncengine.posted_time.drift.read import Window
    from syncengine.project.model import Project
    from syncengine.service.client import Client
    from syncengine.state.store import State


@click.command(
    cls=Command,
    epilog="syncengine drift --since 7d --unused 180d\n# this week's drift, and tags unused for half a year",
)
@click.option(
    "--since",
    type=PastTime(),
    metavar="T",
    default="30d",
    show_default=True,
    help="Read the time submitted since T: 7d or 36h ago, or a UTC date or time.",
)
@click.option(
    "--unused",
    type=Age(),
    metavar="DURATION",
    help="List declared tags that were not used for this long, such as 180d.",
)
@of_addresses("--exclude", "excludes", help="Leave out these addresses (globs), such as tags of other tools.")
@output_format("text", "json", "markdown")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 on any finding other than an unused tag.")
@with_globals
def drift(
    options: Globals, since: float, unused: float | None, excludes: Sequence[str], format: str, detailed_exitcode: bool
) -> int:
    """Compare the tags in posted time with the applied ones. Nothing is changed, either on the service or in the state.

    Only tags and times of submission are read. Markdown, and all output in CI, shows only names that may be published.
    """
    from syncengine.posted_time.drift.read import Window
    from syncengine.render.documents import dumped
    from syncengine.render.drift import (
        drift_document,
        drift_markdown,
        drift_text,
        incompleteness,
    )
    from syncengine.render.markdown import errors_markdown

    for name in excludes:
        if "/" not in name and not name.startswith(("*", "?", "[")):
            raise Usage(
                f"--exclude {name} leaves nothing out, since an address is KIND/NAME; did you mean `tag/{name}`?"
            )
    now = time.time()
    window = Window(
        since,
        None if unused is None else max(0.0, now - unused),
        tuple(excludes),
    )
    output = Output(options, options.folder)
    try:
        result = calling(options, lambda client, project: _compared(client, project, window, output))
    except SyncengineError as error:
        if format == "markdown":
            output.data(errors_markdown("Drift could not be checked", error.diagnostics()))
        return output.refusal(error, "text" if format == "markdown" else format)
    published = is_ci(os.environ)
    for message in incompleteness(result, published=published):
        output.say(message, level="warning")
    if format == "markdown":
        output.data(drift_markdown(result, options.place()))
    elif format == "json":
        output.data(dumped(drift_document(result, published=published)))
    else:
        output.data(drift_text(result, output.look(), published=published, options=options.place()))
    if not result.reading.is_complete:
        return ExitCode.INCOMPLETE
    return ExitCode.CHANGES if detailed_exitcode and not result.is_clean else ExitCode.DONE


async def _compared(client: Client, project: Project, window: Window, output: Output) -> Drift:
    """Compare posted time with the state, after checking that both belong to the same team."""
    from syncengine.posted_time.drift.read import drift_of
    from syncengine.state.folder_memory import memory_of
    from syncengine.state.store import open_state

    with open_state(project.state, write=False, memory=memory_of(project)) as state:
        await _prove_place(client, project, state, output)
        return await drift_of(client, state, window)


async def _prove_place(client: Client, project: Project, state: State, output: Output) -> None:
    """Raise `WrongTeam` when the state belongs to another service or team. Make no call when no team is known."""
    from syncengine.apply.guards import refuse_other_service
    from syncengine.connector.connection import check_team, team_of

    if not state.exists:
        if is_ci(os.environ) and not project.is_sandbox:
            message = "there is no state, so every tag would be unknown in this CI job"
            raise GateTripped(f"{message}: check `state` in the project file, or apply first", code="no-state")
        output.say("there is no state yet, so every tag is unknown", level="warning")
    facts = state.facts()
    refuse_other_service(facts, project.base_url())
    if facts.team is not None or project.service.team is not None:
        check_team(await team_of(client), project, facts.team)
