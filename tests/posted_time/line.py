"""A project with a ledger in SQLite, its delivery, and helpers that read the ledger and the inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Event
from syncengine.posted_time.pace import Pace
from syncengine.project.load import load_project
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import InboxEntry
from tests.posted_time.projects import ledger, rows

SWIFT = Pace(first=0.01, longest=0.05, empty=0.01, fetch=1.0, well=0.05, down=0.02, renew=0.1)
"""Short waits that keep tests fast; the loops still wait for the same things."""

PROJECT = """\
version: 1
service: {baseUrl: "http://127.0.0.1:9/connect/api", apiKey: {env: SYNCENGINE_API_KEY}}
sources: {ledger: {sql: ledger.db}}
postedTime:
  refuse:
    - {when: not tag, message: Assign a tag before posting.}
  deliver:
    - name: ledger
      sql: {source: ledger, statement: "INSERT INTO time (id, matter, secs) VALUES (:id, 7, :secs)",
            params: {id: "{{ group.groupId }}", secs: "{{ duration.seconds }}"}}
      externalId: "L-{{ group.groupId }}"
"""


@dataclass(frozen=True)
class Line:
    folder: Path

    def delivery(self) -> Delivery:
        return Delivery.of(load_project(folder=self.folder, environ={"SYNCENGINE_API_KEY": "k"}), {})

    def rows(self) -> list[str]:
        """Ids in the ledger, in the order in which they arrived."""
        return [id for (id,) in rows(self.folder, "SELECT id FROM time ORDER BY rowid")]

    def entries(self) -> dict[str, InboxEntry]:
        """The groups in the inbox by their ids."""
        with open_inbox(str(self.folder / ".syncengine/state.db"), write=False) as inbox:
            return {entry.group_id: entry for entry in inbox.entries()}

    def states(self) -> dict[str, str]:
        return {id: entry.state for id, entry in self.entries().items()}

    def files(self) -> bytes:
        """The content of every file below the project folder."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


def line(folder: Path) -> Line:
    (folder / "syncengine.yaml").write_text(PROJECT, encoding="utf-8")
    ledger(folder)
    return Line(folder)


def group(id: str, **given: Any) -> dict[str, Any]:
    """Posted time as the service sends it."""
    return {"groupId": id, "totalDurationSecs": 60, "tags": [{"name": "ACME"}], "timeRows": [], **given}


async def until(told: list[Event], there: Callable[[list[Event]], bool]) -> None:
    """Return as soon as `there` is true of the events in `told`."""
    async with asyncio.timeout(30):
        while not there(told):  # noqa: ASYNC110 -- the loops append to a list and set no event
            await asyncio.sleep(0.005)
