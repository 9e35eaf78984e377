"""time export: print what the sinks took, from the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syncengine.cli.data_output import output_format
from syncengine.cli.help import Command
from syncengine.cli.moment import PastTime
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncengine.posted_time.export import ExportedDelivery


@click.command(
    "export",
    cls=Command,
    epilog="syncengine time export --since 30d\n# the deliveries of a month, for a spreadsheet",
)
@click.option(
    "--since", type=PastTime(), metavar="T", help="Only deliveries since T: 7d or 36h ago, or a UTC date or time."
)
@click.option("--sink", metavar="NAME", help="Only deliveries to this sink.")
@output_format("csv", "json")
@with_globals
def export_time(options: Globals, format: str, since: float | None, sink: str | None) -> int:
    """Print what the sinks took, one row for each delivery, oldest first.

    The inbox is read alone: no sink, and not the service. Durations follow the settings of today.
    """
    from syncengine.render.json import dumped
    from syncengine.render.posted_time import export_csv, export_document
    from syncengine.render.words import count_of

    output = Output(options, options.folder)
    try:
        rows = _rows(options, since or 0.0, sink)
    except SyncengineError as error:
        return output.refusal(error, "json" if format == "json" else "text")
    if reduced := sum(row.is_reduced for row in rows):
        output.say(
            f"{count_of(reduced, 'delivery')} without content, of which only receipts remain: set"
            " `postedTime.keep` to keep the content of groups for longer",
            level="warning",
        )
    output.data(dumped(export_document(rows)) if format == "json" else export_csv(rows))
    return ExitCode.DONE


def _rows(options: Globals, since: float, sink: str | None) -> Sequence[ExportedDelivery]:
    from syncengine.posted_time.clock import named_zone
    from syncengine.posted_time.export import ExportSettings, exported
    from syncengine.project.delivery_schema import USER, DurationSection, PostedTimeSection
    from syncengine.state.inbox import open_inbox

    project = options.project()
    section = project.posted_time or PostedTimeSection()
    settings = ExportSettings(
        None if section.timezone in (None, USER) else named_zone(section.timezone),
        section.duration or DurationSection(),
        {part.name.text for part in section.deliver or () if part.each},
    )
    with open_inbox(project.state, write=False) as inbox:
        rows = exported(inbox.delivered_since(since), settings, since, sink)
        names = {part.name.text for part in section.deliver or ()}
        if sink is not None and sink not in names and not rows:
            choice = f"choose from {', '.join(sorted(names))}" if names else "`postedTime.deliver` has none"
            raise Usage(f"there is no sink {sink!r}: {choice}")
    return rows
