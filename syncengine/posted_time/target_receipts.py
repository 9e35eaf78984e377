"""Read the receipts that SQL sinks keep in their targets, or the reason why a target cannot be read.

The inbox records which groups a target took; after a restore from a backup, only the target knows which it still has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from syncengine.database.errors import FAILURES, meaning, sentence
from syncengine.database.open import open_engine
from syncengine.database.trouble import TroubleKind
from syncengine.errors import Problems
from syncengine.posted_time import receipts
from syncengine.posted_time.audit import AuditReceipt
from syncengine.posted_time.databases import Database
from syncengine.project.connections import Connections
from syncengine.project.delivery_schema import SinkConfig, SqlSinkConfig
from syncengine.project.model import Project


@dataclass(frozen=True, slots=True)
class Targets:
    """The receipts of targets that answered, by sink, and in `unread` the reasons why other targets did not."""

    by_sink: dict[str, Sequence[AuditReceipt]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


async def ask_targets(project: Project, environ: Mapping[str, str]) -> Targets:
    """Read the receipts of every sink that keeps them in its target."""
    found = Targets()
    for sink in (project.posted_time and project.posted_time.deliver) or ():
        if sink.sql is None or sink.sql.receipts is False:
            continue
        name = sink.name.text
        try:
            found.by_sink[name] = await _receipts_in(project, environ, sink, sink.sql)
        except Problems as problems:
            found.unread[name] = problems.found[0].message
        except FAILURES as error:
            found.unread[name] = sentence(name, meaning(error) or TroubleKind.UNKNOWN)
    return found


async def _receipts_in(
    project: Project, environ: Mapping[str, str], sink: SinkConfig, sql: SqlSinkConfig
) -> Sequence[AuditReceipt]:
    name = sink.name.text
    what, url = Connections(project.sources, project.root, environ).database(sql, name)
    engine = open_engine(url, what)
    try:
        signed = await Database(engine, name).ask(lambda _: receipts.all_of(engine, name))
    finally:
        engine.dispose()
    return [AuditReceipt(one.group_id, one.key, one.delivered, one.external_id) for one in signed]
