"""Templates and expressions of manifests → compiled templates in a sandbox, with a budget for each file or block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any, ClassVar

from jinja2.filters import _GroupTuple
from jinja2.loaders import BaseLoader

from syncengine.templating.budget import MAX_SECONDS, Budget, OutOfBounds, clock, size_of, steps_of
from syncengine.templating.filters import plain_text
from syncengine.templating.metering import FILTERS_OF_MANIFESTS
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.values import Named

_TEXT = frozenset(
    "upper lower title capitalize casefold swapcase strip lstrip rstrip startswith endswith split rsplit splitlines "  # noqa: SIM905 - words
    "partition rpartition removeprefix removesuffix find rfind index rindex count isdigit isalpha isalnum isnumeric "
    "isdecimal isupper islower istitle isspace isascii isidentifier replace join".split()
)
_TIME = frozenset(
    "year month day hour minute second microsecond date time isoformat weekday isoweekday timestamp".split()  # noqa: SIM905 - words
)


class SandboxedEnvironment(TemplateSandbox):
    """The environment of one text template or one `generate` block. `budget` is its current budget."""

    attributes: ClassVar[Mapping[type, frozenset[str]]] = {
        str: _TEXT,
        dict: frozenset({"get", "items", "keys", "values"}),
        Named: frozenset(),
        list: frozenset({"index", "count"}),
        tuple: frozenset({"index", "count"}),
        _GroupTuple: frozenset({"grouper", "list"}),
        datetime: _TIME,
        date: _TIME,
        time: _TIME,
    }

    def __init__(self, loader: BaseLoader | None = None, clock: Callable[[], float] = clock) -> None:
        self.size = self.steps = 0
        self._clock = clock
        self.begin(clock() + MAX_SECONDS)
        super().__init__(lambda: self.budget, FILTERS_OF_MANIFESTS, loader)

    def begin(self, deadline: float, rows: int = 0) -> None:
        """Set the limits for all rows of a block, or for a file."""
        self.deadline, self.most_steps, self.most_size = deadline, steps_of(rows), size_of(rows)
        self.budget = Budget(deadline, self._clock)

    def another(self) -> Budget:
        """Return a new budget for a block's next value. Raise `OutOfBounds` when the block exceeds its limits."""
        self.steps += self.budget.spent
        budget = self.budget = Budget(self.deadline, self._clock)
        if self.steps > self.most_steps:
            needs = f"more than {self.most_steps:,} loop iterations and calls for all rows"
            raise OutOfBounds(f"the block needs {needs}: simplify its templates, or split it")
        budget.is_in_time()
        return budget

    def text(self, value: Any) -> str:
        self.budget.weigh(value)
        text = plain_text(value)
        self.budget.wrote(len(text))
        return text

    def finalized(self, value: Any) -> str:
        if type(value) is not str:
            return self.text(value)
        self.budget.wrote(len(value))
        return value

    def _method(self, obj: Any, name: str) -> Any:
        """Return an attribute. The methods `join` and `replace` of texts take values of any kind, as the filters do."""
        if type(obj) is str and name == "join":
            return lambda items: self.filters["join"](items, obj)
        if type(obj) is str and name == "replace":
            return lambda old, new: self.filters["replace"](obj, old, new)
        return super()._method(obj, name)
