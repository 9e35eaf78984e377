"""The loop that a person would write for posted time: fetch, insert and commit, status, over `http.client`.

`python bare_posted.py KIND SERVICE TARGET COUNT LIMIT`, KIND one of sqlite, postgresql, jsonl, http; prints the seconds
and the processor seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Put = Callable[[dict[str, Any]], object]
INSERT = "INSERT INTO time (id, matter, secs) VALUES ({0}, {0}, {0})"


def of_sqlite(target: str) -> Put:
    ledger = sqlite3.connect(target)
    ledger.execute("PRAGMA synchronous = FULL")

    def put(group: dict[str, Any]) -> None:
        ledger.execute(INSERT.format("?"), (group["groupId"], group["tags"][0]["name"], group["totalDurationSecs"]))
        ledger.commit()

    return put


def of_postgresql(target: str) -> Put:
    import psycopg

    ledger = psycopg.connect(target.replace("+psycopg", ""))

    def put(group: dict[str, Any]) -> None:
        ledger.execute(INSERT.format("%s"), (group["groupId"], group["tags"][0]["name"], group["totalDurationSecs"]))
        ledger.commit()

    return put


def of_jsonl(target: str) -> Put:
    file = Path(target).open("ab", buffering=0)  # noqa: SIM115 -- open until the process ends

    def put(group: dict[str, Any]) -> None:
        file.write(json.dumps(group).encode() + b"\n")
        os.fsync(file)

    return put


def of_http(target: str) -> Put:
    ask = asking(target)
    return lambda group: ask("POST", "/time", {"id": group["groupId"], "secs": group["totalDurationSecs"]})


def asking(url: str) -> Callable[..., Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def ask(method: str, path: str, body: object = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        connection.request(method, path, content, {"x-api-key": "bench", "content-type": "application/json"})
        return json.loads(connection.getresponse().read())

    return ask


SINKS: dict[str, Callable[[str], Put]] = {
    "sqlite": of_sqlite,
    "postgresql": of_postgresql,
    "jsonl": of_jsonl,
    "http": of_http,
}


def main(kind: str, service: str, target: str, count: str, limit: str) -> None:
    """Take so many groups."""
    ask, put = asking(service), SINKS[kind](target)
    ask("GET", f"/bench/post/{count}")
    left, start, used = int(count), time.perf_counter(), time.process_time()
    while left:
        for group in ask("GET", f"/postedtime?limit={limit}"):
            put(group)
            ask("POST", "/postedtime/status", {"timeGroupId": group["groupId"], "status": "SUCCESS"})
            left -= 1
    print(json.dumps({"seconds": time.perf_counter() - start, "processor": time.process_time() - used}))


if __name__ == "__main__":
    main(*sys.argv[1:])
