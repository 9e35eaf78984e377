"""The crash model with a state in Git: the next process knows only what was published (docs/state.md)."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from syncengine.plan.model import Plan
from syncengine.project.runner import Holder
from syncengine.state.git_store import GitPlace
from syncengine.state.store import State, open_state
from syncengine.state.working_copy import open_to_write
from tests.applying.crash_model import Clockwork, Ending, House, Time
from tests.applying.test_crashes import HISTORY, OFTEN, RENAMES, Step, walk
from tests.support.git import bare
from tests.support.memory import MEMORY
from tests.support.profiles import tried

from .places import MemoryPlace, MemoryStore, place_of

pytestmark = pytest.mark.slow

HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "20"))

Opening = Callable[[Time], State]


class PublishingHouse(House):
    """A house whose process loses its private copy when it dies; the next one begins with what was published."""

    def __init__(self, opening: Opening, time: Time) -> None:
        self._opening = opening
        super().__init__(self._opened(time), time)

    def _opened(self, time: Time) -> State:
        state = self._opening(time)
        lease = state.lock(
            replace(Holder.here("test", {}), host="elsewhere", boot="another"),
            wait=1000,
            request_timeout=0,
            lease_seconds=60,
            sleep=lambda seconds: self._pass(time, seconds),
        )
        assert lease.epoch
        return state

    def _pass(self, time: Time, seconds: float) -> None:
        """Let time pass while a process waits for the lock: delayed requests whose limit is over arrive now."""
        time.at += max(seconds, 1.0)
        while any(late.until <= time.at for late in getattr(self, "in_flight", [])):
            self.land()

    def _perform(self, planned: Plan, clockwork: Clockwork, reviewed: tuple[str, ...] = ()) -> Ending:
        ending = super()._perform(planned, clockwork, reviewed)
        if ending.died:
            self.state.abandon()
            self.state = self._opened(self._time)
        return ending


@contextmanager
def house_in(opening: Opening) -> Iterator[House]:
    home = PublishingHouse(opening, Time())
    try:
        yield home
    finally:
        home.state.close()


@contextmanager
def in_memory() -> Iterator[Opening]:
    store = MemoryStore()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:

        def opening(time: Time) -> State:
            place: GitPlace = MemoryPlace(store, Path(folder))
            return State(open_to_write(place, lambda: time.at), lambda: time.at, seconds=time.seconds)

        yield opening


@contextmanager
def in_git() -> Iterator[Opening]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = place_of(bare(folder / "remote.git"), folder / "project")
        yield lambda time: open_state(place, write=True, now=lambda: time.at, seconds=time.seconds, create=True)


@settings(OFTEN, max_examples=tried(2 * HISTORIES))
@given(HISTORY | RENAMES)
def test_after_any_crash_applies_elsewhere_reach_the_declared_state(history: list[Step]) -> None:
    """The same holds for categories with tags that are renamed again and again."""
    with in_memory() as opening:
        walk(history, lambda: house_in(opening))


@settings(OFTEN, max_examples=tried(max(3, HISTORIES // 20)))
@given(HISTORY)
def test_applies_reach_the_declared_state_in_a_real_repository(history: list[Step]) -> None:
    with in_git() as opening:
        walk(history, lambda: house_in(opening))
