"""A process that delivers groups until it is killed: `python -m tests.posted_time.worker FOLDER GROUPS [TAG...]`.

With GROUPS as `25+` all of them come at once.

Every group is offered, as the service would, until all were, with its tags in any order; each verdict is one line on
stdout.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.window import each, side_by_side
from syncengine.project.load import load_project
from syncengine.state.holder import Holder
from tests.posted_time.samples import raw


async def deliver(folder: Path, groups: int, tags: list[str], *, at_once: bool) -> None:
    delivery = Delivery.of(load_project(folder=folder, environ={}), {})
    async with delivery:
        with delivery.inbox.lease(Holder.here("worker", {}), wait=20):

            async def take(number: int) -> None:
                offered = [{"name": name} for name in random.sample(tags, len(tags))]
                verdict = await delivery.take(raw(f"g{number}", tags=offered), mechanism="fetch")
                sys.stdout.write(f"{number} {verdict.outcome.value}\n")
                sys.stdout.flush()

            await side_by_side(each(range(groups)), take, lambda: groups if at_once else 1)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    count, tags = sys.argv[2], sys.argv[3:] or ["ACME-0042"]
    asyncio.run(deliver(Path(sys.argv[1]), int(count.rstrip("+")), tags, at_once=count.endswith("+")))
