"""What the figures are compared with, each as a process of its own; prints the seconds of the work alone.

`load FILE…` with PyYAML's CSafeLoader · `hash FILE…` with SHA-256 · `post URL CONCURRENCY BODIES` with httpx and
nothing else, each line of BODIES a path and a JSON body.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def load(*files: str) -> float:
    """Merely load."""
    import yaml

    start = time.perf_counter()
    for file in files:
        with Path(file).open("rb") as stream:
            yaml.load(stream, Loader=yaml.CSafeLoader)
    return time.perf_counter() - start


def digest(*files: str) -> float:
    """Read and hash."""
    start = time.perf_counter()
    for file in files:
        hashlib.sha256(Path(file).read_bytes()).digest()
    return time.perf_counter() - start


def post(url: str, concurrency: str, bodies: str) -> float:
    """Post every body, by as many loops as there are connections."""
    with Path(bodies).open(encoding="utf-8") as lines:
        calls = [json.loads(line) for line in lines]
    return asyncio.run(_post(url, int(concurrency), calls))


async def _post(url: str, concurrency: int, calls: list[tuple[str, object]]) -> float:
    import httpx

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx.AsyncClient(base_url=url, limits=limits, headers={"x-api-key": "bench"}) as client:
        waiting = iter(calls)

        async def work() -> None:
            for path, body in waiting:
                (await client.post(path, json=body)).raise_for_status()

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return time.perf_counter() - start


WORK: dict[str, Callable[..., float]] = {"load": load, "hash": digest, "post": post}

if __name__ == "__main__":
    print(WORK[sys.argv[1]](*sys.argv[2:]))
