"""The bounds of templates: the time and memory of a command, the sizes of values, and the work of one call in C.

A timer ends what runs too long or fills the memory, but only between two steps of Python. So every call that could take
long in C itself, such as a comparison of nested lists, is refused beforehand by the size of its values.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

MAX_SECONDS = 30.0
"""The most processor seconds of all templates in a run. Unlike elapsed time, they do not depend on a machine's load."""
SECONDS_A_ROW = 0.001
"""The seconds added for each row of a block: ten times as many as an ordinary row takes."""
MAX_MEMORY = 500_000_000
"""The most bytes by which a file or a block may let the process grow, to which `MEMORY_A_ROW` is added for each row."""
MEMORY_A_ROW = 10_000
TICK = 0.02
"""The processor seconds between two looks at the memory: one that copies texts in C fills about 100 MB in this time."""
GRACE = 1.0
"""The processor seconds after which a template is ended again, if the first exception was lost in a destructor."""
MAX_WRITTEN = 64 * 1024 * 1024
"""The most characters that one file may write, and of all parts of a value together."""
MAX_TEXT = 1_000_000
"""The maximum number of characters or items of any one value."""
MAX_CAPTURED = 10 * MAX_TEXT
"""The maximum number of characters of text in `{% set %}` and `{% filter %}`, which may be most of a file."""
# as in the sandbox of Jinja2
MAX_RANGE = 100_000
# An operation on larger numbers runs in C, where no limit of time can end it.
MAX_BITS = 4096
MAX_EXPONENT = 1000
"""The largest exponent of a decimal number, positive or negative."""
MAX_DEPTH = 200
"""The maximum number of levels of nested lists and mappings."""
MAX_SOUGHT = 1000
"""The maximum number of characters of a text that is searched for in another text, which takes quadratic time."""
_BYTES = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


class TooMuch(Exception):
    """Raised when a template exceeds a limit of time or size."""


class OutOfBounds(TooMuch):
    """Raised when a template exceeds a limit that every later row or template would exceed, too."""


class WrongKind(TypeError):
    """Raised for a value of a kind that an operation does not take. The text is a sentence for people."""


class _Watch:
    """A handler of the timer's signal: it ends what takes more time or memory than it may."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.deadline = time.process_time() + seconds
        self.memory = memory
        self.pauses = 0
        self.most: int | None = None
        """The most bytes of memory of the process, set at the first tick: most templates end before it."""

    def __call__(self, *_: object) -> None:
        if self.pauses:
            return
        now = time.process_time()
        try:
            memory = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
        except OSError:  # where the system does not say, the most that the process ever had
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES
        if self.most is None:
            self.most = memory + self.memory
        if now <= self.deadline and memory <= self.most:
            return
        why = "the template takes too long" if now > self.deadline else "the template needs too much memory"
        # Leave time to end the timer: it takes a while to free large values.
        self.deadline, self.most = max(self.deadline, now + GRACE), memory + self.memory
        raise OutOfBounds(why)


class Allowance:
    """The processor seconds that all templates of a run share, in addition to `SECONDS_A_ROW`.

    Only the main thread can be interrupted. In others, such as those of `serve`, neither time nor memory is limited.
    """

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self.remaining = seconds

    @property
    def is_used_up(self) -> bool:
        """Whether templates have used all the seconds."""
        return self.remaining <= 0

    @contextmanager
    def spend(self, rows: int = 0) -> Iterator[None]:
        """Limit the templates in the `with` block, for this number of rows, and subtract the time that they took.

        Raise `OutOfBounds` when no time remains, and wherever the block exceeds its time or memory.
        """
        if self.is_used_up:
            raise OutOfBounds(f"other templates have used up the {MAX_SECONDS:g} s that all templates of a run share")
        start, for_rows = time.process_time(), SECONDS_A_ROW * rows
        try:
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            watch = _Watch(self.remaining + for_rows, MAX_MEMORY + MEMORY_A_ROW * rows)
            before = signal.signal(signal.SIGPROF, watch)
            timer = signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_PROF, *timer)
                signal.signal(signal.SIGPROF, before)
        finally:
            self.remaining = max(0.0, self.remaining - max(0.0, time.process_time() - start - for_rows))


@contextmanager
def unlimited() -> Iterator[None]:
    """Pause the limits in the `with` block, whose code must not be interrupted, such as the reading of a source."""
    watch = signal.getsignal(signal.SIGPROF)
    if not isinstance(watch, _Watch) or threading.current_thread() is not threading.main_thread():
        yield
        return
    watch.pauses += 1
    try:
        yield
    finally:
        watch.most = None
        watch.pauses -= 1


def join_pieces(chunks: Iterable[str], most: int, sentence: str) -> str:
    """Return the joined pieces. Raise `TooMuch` with `sentence` as soon as they are longer than `most`."""
    pieces, size = [], 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size > most:
            raise TooMuch(sentence)
    return "".join(pieces)


def fits(size: int) -> None:
    """Raise `TooMuch` for a value that would have more characters or items than any may have."""
    if size > MAX_TEXT:
        raise TooMuch(f"a value would be larger than {MAX_TEXT:,} characters or items")


def weighed(value: Any) -> Any:
    """Return the value. Raise `TooMuch` if comparing or writing all its parts, however often they occur, takes long."""
    if type(value) is not str and type(value) is not int and value is not None:
        weight(value)
    return value


def weight(value: Any) -> int:
    """Return the number of characters of a nested value, in which an item counts as 16. Raise `TooMuch` as `weighed`.

    Raise for an undefined part as well.
    """
    parts, size, depth, level = 0, 0, 0, [value]
    while level:
        parts, depth = parts + len(level), depth + 1
        if depth > MAX_DEPTH:
            raise TooMuch("a value is nested too deeply")
        inside: list[Any] = []
        for part in level:
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, dict | list | tuple):
                inside.extend(part)
                if isinstance(part, dict):
                    inside.extend(part.values())
                fits(len(inside))
            elif not isinstance(part, int | float | None):
                from jinja2 import Undefined  # here, since commands without templates use these limits too

                if isinstance(part, Undefined):
                    str(part)  # raises for an undefined value
        if size > MAX_WRITTEN:
            raise TooMuch(f"a value would be larger than {MAX_WRITTEN:,} characters")
        level = inside
    return size + 16 * (parts - 1)


def check_number(value: Any) -> None:
    """Raise `TooMuch` for a number that takes long to write or to calculate with."""
    if isinstance(value, int):
        _bits(value.bit_length())
    elif isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > MAX_EXPONENT:
        raise TooMuch("a number would be too large")


def bounded_range(*bounds: int) -> range:
    """Return a `range`. Raise `TooMuch` when it has more than `MAX_RANGE` numbers."""
    numbers = range(*bounds)
    if numbers and (abs(numbers[-1] - numbers[0]) // abs(numbers.step)) >= MAX_RANGE:
        raise TooMuch(f"a range has more than {MAX_RANGE:,} numbers")
    return numbers


def check_operation(operator: str, left: Any, right: Any) -> None:
    """Raise `TooMuch` for an operation whose operands show that its result would be too large."""
    sized = [v for v in (left, right) if isinstance(v, str | list | tuple | bytes)]
    if operator == "+" and len(sized) == 2:
        fits(len(left) + len(right))
    elif operator == "%" and sized:
        raise WrongKind("`%` takes numbers; use `~` to join texts")
    elif operator == "*" and sized:
        times = right if sized[0] is left else left
        fits(len(sized[0]) * times if isinstance(times, int) else 0)
    elif operator == "*" and isinstance(left, int) and isinstance(right, int):
        _bits(left.bit_length() + right.bit_length())
    elif operator == "**" and isinstance(right, int | float | Decimal):
        bits = left.bit_length() if isinstance(left, int) else 64
        _bits(int(bits * max(1.0, abs(float(right)))))


def _bits(count: int) -> None:
    if count > MAX_BITS:
        raise TooMuch("a number would be too large")
