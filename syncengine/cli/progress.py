"""Events of an apply → progress on stderr: bars on a terminal, occasional lines elsewhere, and remarks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from syncengine.apply.report import (
    Event,
    ItemEnded,
    Outcome,
    Remark,
    Retrying,
    Session,
    SessionOpened,
    StageStarted,
    Stopping,
    Waiting,
)
from syncengine.cli.output import Output
from syncengine.render.words import number

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


@dataclass
class _Stage:
    """The progress of one stage. `shown_at` is the time of its last line, first that of its start."""

    name: str
    items: int
    began_at: float
    shown_at: float
    ended: int = 0
    troubled: int = 0

    def __str__(self) -> str:
        trouble = f", {number(self.troubled)} not applied" if self.troubled else ""
        return f"{self.name}: {number(self.ended)} of {number(self.items)}{trouble}"


EVERY_SECONDS = 10.0
"""The shortest time between two lines about one stage, where no bar is drawn."""

AT_ONCE = 1.0
"""The seconds of a stage of the embedded sandbox below which no line tells of it, since the report counts it all."""


class Progress:
    """Progress with one bar for each stage on a terminal, and lines elsewhere. Use it as a context manager.

    `now` is a clock in seconds with any zero. `hides` has the codes of remarks that only the report shows. No line
    tells of stages shorter than `shortest` seconds in which all was applied.
    """

    def __init__(
        self,
        output: Output,
        now: Callable[[], float] = time.monotonic,
        hides: Collection[str] = (),
        shortest: float = 0.0,
    ) -> None:
        self._output = output
        self._now = now
        self._hides = hides
        self._shortest = shortest
        self._stage: _Stage | None = None
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._draws = sys.stderr.isatty() and not (output.options.quiet or output.options.debug)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def tell(self, event: Event) -> None:
        """Show one event."""
        match event:
            case StageStarted(name, items):
                self._start_stage(name, items)
            case ItemEnded(outcome=outcome):
                if self._bars is not None and self._task is not None:
                    self._bars.advance(self._task)
                elif self._stage is not None:
                    self._count(self._stage, outcome)
            case Retrying(operation, why, wait):
                self._say(f"{operation}: {why}; retrying in {wait:.1f} s")
            case Waiting(seconds, why):
                self._say(f"waiting up to {seconds:.0f} s: {why}")
            case Stopping(seconds):
                self._say(f"stopping: waiting up to {seconds:g} s for pending answers; interrupt again to stop at once")
            case SessionOpened(id):
                if self._output.options.verbose:
                    self._say(f"sync session {id} started")
            case Session(id, outcome, reason):
                if outcome != "completed":
                    end = "not completed" if outcome == "none" else outcome
                    self._say(f"sync session {id or '(none)'} {end}: {reason}")
            case Remark(code, message):
                if code not in self._hides:
                    self._say(message)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the bars, so that a person can be asked."""
        self._stop()
        yield

    def _start_stage(self, name: str, items: int) -> None:
        if not self._draws:
            self._end_stage()
            self._stage = _Stage(name, items, now := self._now(), now)
            return
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            console = Console(stderr=True, no_color=not self._output.look(sys.stderr).colour)
            self._bars = Bars(*columns, console=console, transient=True)
            self._bars.start()
        self._task = self._bars.add_task(name, total=items)

    def _count(self, stage: _Stage, outcome: Outcome) -> None:
        stage.ended += 1
        stage.troubled += outcome is not Outcome.APPLIED
        if self._now() - stage.shown_at >= EVERY_SECONDS and stage.ended < stage.items:
            stage.shown_at = self._now()
            self._say(str(stage))

    def _end_stage(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None and (stage.troubled or self._now() - stage.began_at >= self._shortest):
            self._say(str(stage))

    def _say(self, text: str) -> None:
        if self._bars is not None:
            from rich.text import Text

            self._bars.console.print(Text(text))
        else:
            self._output.say(text)

    def _stop(self) -> None:
        self._end_stage()
        if self._bars is not None:
            self._bars.stop()
            self._bars = self._task = None
