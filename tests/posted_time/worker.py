"""A process that delivers groups, their tags in random order, until it is killed. Each verdict is a line on stdout."""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.pace import each, side_by_side
from syncengine.project.load import load_project
from syncengine.project.runner import Holder
from tests.posted_time.samples import raw
from tests.support.warm import working

TAGS = ("ACME-0042",)


async def _deliver(folder: Path, groups: int, tags: Sequence[str], at_once: bool) -> None:
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


def work(folder: Path, groups: int, tags: Sequence[str], at_once: bool) -> None:
    asyncio.run(_deliver(folder, groups, tags, at_once))


def delivered(folder: Path, groups: int, tags: Sequence[str] = TAGS, *, at_once: bool = False) -> list[str]:
    """What a worker says that delivers `groups` groups, one after the other or all `at_once`."""
    with working(work, folder, groups, tags, at_once) as worker:
        return worker.stdout.read().splitlines()


def killed(
    folder: Path, groups: int, chance: random.Random, tags: Sequence[str] = TAGS, *, at_once: bool = False
) -> None:
    """Six such workers, each killed shortly after some of its verdicts."""
    for _ in range(6):
        with working(work, folder, groups, tags, at_once) as worker:
            for _ in range(chance.randrange(groups)):
                worker.stdout.readline()
            time.sleep(chance.random() * 0.02)
            worker.kill()
