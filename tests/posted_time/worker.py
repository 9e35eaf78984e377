"""A process that delivers groups until it is killed: `python -m tests.posted_time.worker FOLDER GROUPS`.

Every group is offered, as the service would, until all were; each verdict is one line on stdout.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from syncengine.posted_time.delivery import Delivery
from syncengine.settings import load_project
from syncengine.store.holder import Holder
from tests.posted_time.samples import raw


async def deliver(folder: Path, groups: int) -> None:
    delivery = Delivery.of(load_project(folder=folder, environ={}), {})
    async with delivery:
        with delivery.inbox.lease(Holder.here("worker", {}), wait=20):
            for number in range(groups):
                verdict = await delivery.take(raw(f"g{number}"), mechanism="fetch")
                sys.stdout.write(f"{number} {verdict.outcome.value}\n")
                sys.stdout.flush()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    asyncio.run(deliver(Path(sys.argv[1]), int(sys.argv[2])))
