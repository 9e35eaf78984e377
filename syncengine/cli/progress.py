"""Events of an apply → progress on a terminal's stderr, and remarks anywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from syncengine.apply.events import (
    Event,
    ItemEnded,
    Remark,
    Retrying,
    SessionEnded,
    SessionOpened,
    StageStarted,
    Stopping,
    Waiting,
)
from syncengine.cli.output import Output

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class Progress:
    """A bar a stage where there is a terminal; trouble is told everywhere. Use as a context manager."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._draws = sys.stderr.isatty() and not (output.given.quiet or output.given.debug)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def tell(self, event: Event) -> None:
        """Hear one event."""
        match event:
            case StageStarted(name, items):
                self._start_stage(name, items)
            case ItemEnded():
                if self._bars is not None and self._task is not None:
                    self._bars.advance(self._task)
            case Retrying(operation, why, wait):
                self._say(f"{operation}: {why}; again in {wait:.1f} s")
            case Waiting(seconds, why):
                self._say(f"waiting up to {seconds:.0f} s: {why}")
            case Stopping(seconds):
                self._say(f"stopping: answers under way are waited for, {seconds:g} s at most; once more ends at once")
            case SessionOpened(id):
                if self._output.given.verbose:
                    self._say(f"sync session {id} started")
            case SessionEnded(id, outcome, reason):
                if outcome != "completed":
                    self._say(f"sync session {id or '(none)'} {outcome or 'not completed'}: {reason}")
            case Remark(_, message):
                self._say(message)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No bars while a person is asked."""
        self._stop()
        yield

    def _start_stage(self, name: str, items: int) -> None:
        if not self._draws:
            if self._output.given.verbose:
                self._say(f"{name}: {items}")
            return
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bars = Bars(*columns, console=Console(stderr=True), transient=True)
            self._bars.start()
        self._task = self._bars.add_task(name, total=items)

    def _say(self, text: str) -> None:
        if self._bars is not None:
            from rich.text import Text

            self._bars.console.print(Text(text))
        else:
            self._output.say(text)

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = self._task = None
