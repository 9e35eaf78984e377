"""The limits of templates in steps, time and size, and the budgets that are charged when templates run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any

MAX_STEPS = 5_000_000
"""The maximum number of loop iterations and calls of one file, all together."""
STEPS_OF_BLOCK = 20_000_000
"""The maximum number of steps of all rows of a block together, to which `STEPS_A_ROW` is added for each row."""
STEPS_A_ROW = 500
MAX_SECONDS = 30.0
"""The most processor seconds of all templates in a run. Unlike elapsed time, they do not depend on a machine's load."""
SECONDS_A_ROW = 0.001
"""The seconds added for each row of a block: ten times as many as an ordinary row takes."""
MAX_CHARACTERS = 64 * 1024 * 1024
"""The maximum number of characters that one file may write."""
MAX_OF_BLOCK = 32 * 1024 * 1024
"""The most characters of all rows of a block together, to which `CHARACTERS_A_ROW` is added for each row."""
CHARACTERS_A_ROW = 2000
MAX_TEXT = 1_000_000
"""The maximum number of characters or items of any one value."""
MAX_CAPTURED = 10 * MAX_TEXT
"""The maximum number of characters of text in `{% set %}` and `{% filter %}`, which may be most of a file."""
MAX_RANGE = 100_000
MAX_BITS = 4096
MAX_EXPONENT = 1000
"""The largest exponent of a decimal number, positive or negative."""
MAX_DEPTH = 200
"""The maximum number of levels of nested lists and mappings."""
MAX_SOUGHT = 1000
"""The maximum number of characters of a text that is searched for in another text."""
MAX_MADE = 2 * MAX_CHARACTERS
"""The most characters that filters, methods and slices of one file may create. An item counts as `OF_AN_ITEM`."""
OF_AN_ITEM = 16
_TEXTS = frozenset({str})
CHECKED_EVERY = 256
CHECKED_EACH = 64 * 1024
"""The characters processed between two checks of the clock. A call counts as `OF_A_CALL` characters."""
OF_A_CALL = 128
PARTS_OF_A_STEP = 8
"""The number of list items that are counted in the time of one loop iteration."""
MAX_MEMORY = 700_000_000
"""The most bytes of memory for the rows of a live source: enough for a million rows with five columns of text."""
OF_A_ROW = 104
"""The bytes that a record takes besides its mapping and values, for its place and number."""
WORK_OF_A_STEP = 20
"""The number of characters that are processed in the time of one loop iteration."""
STEPS_OF_A_FILTER = 4
"""The steps that one item in a filter counts as, since it costs more than a loop iteration."""


clock = time.thread_time
"""The default clock of deadlines, which counts the processor time of the thread."""


class Allowance:
    """The processor seconds that all templates of a run share, in addition to `SECONDS_A_ROW`.

    A copy in another process is that process's own allowance.
    """

    def __init__(self, seconds: float = MAX_SECONDS, clock: Callable[[], float] = clock) -> None:
        self.remaining = seconds
        self.clock = clock

    def __reduce__(self) -> tuple[Callable[[], Allowance], tuple[()]]:
        return allowance_of_process, ()

    @property
    def is_used_up(self) -> bool:
        """Whether templates have used all the seconds."""
        return self.remaining <= 0

    @contextmanager
    def spend(self, rows: int = 0) -> Iterator[float]:
        """Yield the deadline of a block with this number of rows, then subtract the time that it took.

        Raise `OutOfBounds` when no time remains.
        """
        if self.is_used_up:
            raise OutOfBounds(f"other templates have used up the {MAX_SECONDS:g} s that all templates of a run share")
        start, for_rows = self.clock(), SECONDS_A_ROW * rows
        try:
            yield start + self.remaining + for_rows
        finally:
            self.remaining = max(0.0, self.remaining - max(0.0, self.clock() - start - for_rows))


@cache
def allowance_of_process() -> Allowance:
    """Return the allowance of a worker process, which reads a part of the files."""
    return Allowance()


def steps_of(rows: int) -> int:
    """Return the most steps of a block with this number of rows."""
    return STEPS_OF_BLOCK + STEPS_A_ROW * rows


def size_of(rows: int) -> int:
    """Return the most characters of a block with this number of rows."""
    return MAX_OF_BLOCK + CHARACTERS_A_ROW * rows


def memory_of(row: Any) -> int:
    """Return the bytes of memory that a row takes as a record, with all its values."""
    size, waiting = OF_A_ROW, [row]
    while waiting:
        part = waiting.pop()
        size += sys.getsizeof(part)
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
    return size


class TooMuch(Exception):
    """Raised when a template exceeds a limit of steps, time or size."""


class OutOfBounds(TooMuch):
    """Raised when a template exceeds a limit that every later row or template would exceed, too."""


def join_pieces(chunks: Iterable[str], most: int, sentence: str) -> str:
    """Return the joined pieces. Raise `TooMuch` with `sentence` as soon as they are longer than `most`."""
    pieces, size = [], 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size > most:
            raise TooMuch(sentence)
    return "".join(pieces)


class Budget:
    """The budget of one file, or of one value in a block, with a deadline of `clock`."""

    def __init__(self, deadline: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps = 0
        self.characters = 0
        self._size = 0
        self._work = 0
        self._worked = 0
        self._look_at = CHECKED_EVERY
        self.deadline = deadline
        self._clock = clock

    @property
    def spent(self) -> int:
        """The steps of all work so far."""
        return self.steps + (self._worked + self._work) // WORK_OF_A_STEP

    def walk(self, steps: int) -> None:
        """Charge several steps at once."""
        self.steps += steps - 1
        self.step()

    def is_in_time(self) -> None:
        if self._clock() > self.deadline:
            raise OutOfBounds("the template takes too long")

    def step(self) -> None:
        self.steps += 1
        if self.steps >= self._look_at:
            self._look_at = self.steps + CHECKED_EVERY
            self.is_in_time()
        if self.steps > MAX_STEPS:
            raise TooMuch(f"the template needs more than {MAX_STEPS:,} loop iterations and calls")

    def wrote(self, characters: int) -> None:
        self.characters += characters
        if self.characters > MAX_CHARACTERS:
            raise TooMuch(f"the template writes more than {MAX_CHARACTERS // 1024 // 1024} MB")

    def filtered(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield `items`, charging each for its use in a filter."""
        for item in items:
            self.walk(STEPS_OF_A_FILTER)
            yield item

    def turns(self, items: Iterable[Any], characters: int) -> Iterator[Any]:
        """Yield `items`, charging each as a step that writes this number of characters of constant text."""
        for item in items:
            self.step()
            self.wrote(characters)
            yield item

    def fits(self, size: int) -> None:
        """Charge one value of `size`. A negative size, as of a text times -1, counts as 0: the result is empty."""
        if size > MAX_TEXT:
            raise TooMuch(f"a value would be larger than {MAX_TEXT:,} characters or items")
        self.wrote(max(size, 0))
        self.works(max(size, 0))

    def works(self, characters: int) -> None:
        """Charge one call that processes this number of characters."""
        self._work += characters + OF_A_CALL
        if self._work > CHECKED_EACH:
            self._worked, self._work = self._worked + self._work, 0
            self.is_in_time()

    def took(self, value: Any, characters: int = 0) -> Any:
        """Return the value that a filter, a method or a slice created, after charging its size."""
        kind = type(value)
        if kind is str or kind is list or kind is tuple or kind is dict:
            size = len(value)
            if size > MAX_CAPTURED:
                raise TooMuch(f"a value would be larger than {MAX_CAPTURED:,} characters or items")
            self._size += size if kind is str else OF_AN_ITEM * size
            if self._size > MAX_MADE:
                raise TooMuch("the template creates too many large values")
            characters += size
        else:
            check_number(value)
        self.works(characters)
        return value

    def weigh(self, value: Any, is_written: bool = True) -> int:
        """Return the number of parts in a nested value, after charging a step for every `PARTS_OF_A_STEP` of them."""
        if type(value) is list and set(map(type, value)) <= _TEXTS:
            self.walk(1 + len(value) // PARTS_OF_A_STEP)
            self.wrote(sum(map(len, value)) if is_written else 0)
            return 1 + len(value)
        from jinja2 import Undefined  # the import takes half the start time of a plan

        parts, depth, level = 0, 0, [value]
        while level:
            parts, depth = parts + len(level), depth + 1
            if depth > MAX_DEPTH:
                raise TooMuch("a value is nested too deeply")
            inside: list[Any] = []
            for part in level:
                if isinstance(part, str):
                    self.wrote(len(part) if is_written else 0)
                elif isinstance(part, dict | list | tuple):
                    self._into(part, inside)
                elif isinstance(part, Undefined):
                    str(part)  # raises for an undefined value
            level = inside
        return parts

    def _into(self, value: Any, inside: list[Any]) -> None:
        self.walk(1 + len(value) // PARTS_OF_A_STEP)
        inside.extend(value)
        if isinstance(value, dict):
            inside.extend(value.values())
        if len(inside) > MAX_TEXT:
            raise TooMuch(f"a value would be larger than {MAX_TEXT:,} items")


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


def check_operation(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Raise `TooMuch` for an operation whose operands show that its result would be too large."""
    budget.step()
    sized = [v for v in (left, right) if isinstance(v, str | list | tuple | bytes)]
    if operator == "+" and len(sized) == 2:
        budget.fits(len(left) + len(right))
    elif operator == "%" and sized:
        raise TypeError("`%` takes numbers; use `~` to join texts")
    elif operator == "*" and sized:
        times = right if sized[0] is left else left
        budget.fits(len(sized[0]) * times if isinstance(times, int) else 0)
    elif operator == "*" and isinstance(left, int) and isinstance(right, int):
        _bits(left.bit_length() + right.bit_length())
    elif operator == "**" and isinstance(right, int | float | Decimal):
        bits = left.bit_length() if isinstance(left, int) else 64
        _bits(int(bits * max(1.0, abs(float(right)))))


def _bits(count: int) -> None:
    if count > MAX_BITS:
        raise TooMuch("a number would be too large")
