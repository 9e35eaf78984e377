"""All that goes wrong in a soak, each for a while. A table: name → what does it and undoes it."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

from tests.posted_time.receiver import Got

from .world import TAKEN, World, accepted_key

Answer = tuple[int, Any] | None
OPERATIONS = ("fetchPostedTime", "updatePostedTimeStatus", "upsertTags", "registerConnector", "*")
NO_ANSWER = ({"drop": "before"}, {"drop": "after"}, {"status": 500}, {"status": 503, "apply": True}, {"delay": 3})


def take(got: Got) -> Answer:
    """As a receiver that honours its keys does."""
    if got.method != "POST":
        return (204, None) if got.method == "HEAD" else (404, {})
    TAKEN.setdefault(got.headers["idempotency-key"], got.body)
    return 201, {"id": 4711}


def _slow(got: Got) -> Answer:
    time.sleep(random.uniform(0, 5))
    return take(got)


def _cut_after(got: Got) -> Answer:
    take(got)
    return None


MOODS: dict[str, Callable[[Got], Answer]] = {
    "HTTP 500": lambda got: (500, {"error": "receiver"}),
    "HTTP 429": lambda got: (429, {}),
    "HTTP cut": lambda got: None,
    "HTTP cut after it took the time": _cut_after,
    "HTTP slow": _slow,
}


def _mood(name: str) -> Callable[[World], AbstractContextManager[None]]:
    @contextmanager
    def trouble(world: World) -> Iterator[None]:
        world.receiver.answer = MOODS[name]
        yield
        world.receiver.answer = take

    return trouble


@contextmanager
def sqlite_locked(world: World) -> Iterator[None]:
    with closing(sqlite3.connect(world.project.folder / "books.db", timeout=60)) as books:
        books.execute("BEGIN IMMEDIATE")
        yield
        books.rollback()


@contextmanager
def no_folder(world: World) -> Iterator[None]:
    """A file stands where the folder of the lines was."""
    folder, away = world.project.folder / "out", world.project.folder / "out.away"
    folder.mkdir(exist_ok=True)
    folder.rename(away)
    folder.write_text("")
    yield
    folder.unlink()
    away.rename(folder)


@contextmanager
def postgresql_restart(world: World) -> Iterator[None]:
    world.database.stop()
    yield
    world.database.start()


@contextmanager
def postgresql_frozen(world: World) -> Iterator[None]:
    with world.database.frozen():
        yield


@contextmanager
def service_trouble(world: World) -> Iterator[None]:
    fault = {"operation": random.choice(OPERATIONS), "times": None, **random.choice(NO_ANSWER)}
    world.tell("/faults", [fault])
    yield
    world.control.delete("/faults")


@contextmanager
def key_rotation(world: World) -> Iterator[None]:
    """The new key is where `serve` finds it, then the service takes no other any more."""
    key = world.rotate(world.api_key)
    accepted_key(world).write_text(key)
    yield


@contextmanager
def caller_key_rotation(world: World) -> Iterator[None]:
    world.rotate(world.caller_key)
    yield


@contextmanager
def reload(world: World) -> Iterator[None]:
    world.settings()
    yield


@contextmanager
def hangup(world: World) -> Iterator[None]:
    world.life.send_signal(signal.SIGHUP)
    yield


@contextmanager
def bad_settings(world: World) -> Iterator[None]:
    """A typing mistake, mended a little later."""
    file = world.project.folder / "syncengine.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("mode: ", "mode: x"), encoding="utf-8")
    yield
    world.settings()


@contextmanager
def other_mechanism(world: World) -> Iterator[None]:
    world.mode = "webhook" if world.mode == "fetch" else "fetch"
    world.settings()
    yield


@contextmanager
def manifests_change(world: World) -> Iterator[None]:
    descriptions = {name: f"edit {random.randrange(10**6)}" for name in ("ACME", "BETA", "GAMMA")}
    world.project.wants(tags=[{"name": name, "description": text} for name, text in descriptions.items()])
    yield


@contextmanager
def killed(world: World) -> Iterator[None]:
    world.stop(signal.SIGKILL)
    world.serve()
    yield


@contextmanager
def restarted(world: World) -> Iterator[None]:
    """One that was still starting is interrupted."""
    code = world.stop(signal.SIGTERM)
    if code not in (0, 130, -signal.SIGINT):
        world.ended_by_itself.append(code)
    world.serve()
    yield


TROUBLES: dict[str, Callable[[World], AbstractContextManager[None]]] = {
    **{name: _mood(name) for name in MOODS},
    "SQLite locked": sqlite_locked,
    "folder of the file gone": no_folder,
    "PostgreSQL restarted": postgresql_restart,
    "PostgreSQL frozen": postgresql_frozen,
    "service": service_trouble,
    "API key rotated": key_rotation,
    "caller key rotated": caller_key_rotation,
    "reload": reload,
    "SIGHUP": hangup,
    "bad settings": bad_settings,
    "other mechanism": other_mechanism,
    "manifests edited": manifests_change,
}
ENDS = {"SIGKILL": killed, "SIGTERM": restarted}
"""They begin another life, whose memory begins anew: only in the first half."""
