"""Templates and expressions of posted time → compiled templates in a sandbox with a budget for each value.

No group and no template can keep other groups from being delivered, or a stop from being noticed. Missing fields of a
group are `None` at any depth; all filters of Jinja2 and public attributes of plain values are allowed.
"""

from __future__ import annotations

import math
import time as clocks
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_interface
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from jinja2 import StrictUndefined, Undefined, UndefinedError, pass_eval_context
from jinja2.filters import _GroupTuple
from jinja2.loaders import BaseLoader
from jinja2.nodes import EvalContext
from jinja2.runtime import Macro, TemplateReference, markup_join
from jinja2.sandbox import modifies_known_mutable
from jinja2.utils import Joiner, missing
from markupsafe import Markup

from syncengine.templating.budget import MAX_TEXT, Budget
from syncengine.templating.filters import FilterTrouble, UnfitValue
from syncengine.templating.metering import FILTERS_OF_JINJA, Filter
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import NoElement

SECONDS = 3.0
"""The maximum number of seconds that one value may take, since all other work waits for it."""
Names = Mapping[type[Any], Mapping[str, str]]
"""The fields of dataclasses by the names that templates use."""

_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES: tuple[Any, ...] = (
    *("", b"", True, 0, 0.0, {}, [], (), range(0), Markup(), Decimal(), Decimal().as_tuple(), UUID(int=0)),
    *(_MOMENT, date.min, time.min, timedelta(), _MOMENT.timetuple(), date.min.isocalendar()),
    *(UTC, ZoneInfo("UTC"), _GroupTuple(None, [])),
    *(IPv4Address(0), IPv6Address(0), IPv4Network(0), IPv6Network(0), ip_interface("0.0.0.0"), ip_interface("::")),  # noqa: S104 - no address that anything binds
)
"""One value of each type that a group, a row or a configuration may contain, or that filters make from them."""
_MACRO = frozenset({"name", "arguments", "catch_kwargs", "catch_varargs", "caller"})
_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """Set a budget for the templates that are rendered in the `with` block."""
    before = _budget.set(Budget(clocks.monotonic() + SECONDS))
    try:
        yield
    finally:
        _budget.reset(before)


def spent() -> Budget:
    """Return the current budget, or a new one outside of `limited`."""
    return _budget.get() or Budget(clocks.monotonic() + SECONDS)


def deliverable(value: Any) -> Any:
    """Return a value for delivery, with iterators as lists. Raise `FilterTrouble` for functions and infinities."""
    if type(value) is str:
        spent().wrote(len(value))
        return value
    if isinstance(value, Iterator):
        value = list(spent().turns(value, 0))
    if callable(value) and not isinstance(value, Undefined):
        raise FilterTrouble("the value is a function: call it with `()`")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise UnfitValue(f"{value} is not a number", message="a number must be finite")
    spent().weigh(value)  # raises for an undefined value
    return value


def _public(value: Any) -> frozenset[str]:
    return frozenset(n for n in dir(value) if not n.startswith("_") and not modifies_known_mutable(value, n))


def _is_of_driver(value: Any) -> bool:
    """Return whether a value has a type of a database driver, such as a range of dates."""
    return type(value).__module__.startswith("psycopg.types.")


class _Absent(StrictUndefined):
    """What a template names in vain: an error of the template, or of its data if it is an element of a value."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = missing,
        name: Any = None,
        exc: type[UndefinedError] = UndefinedError,
    ) -> None:
        # Without a name, it is the first of no items or the other case of a condition.
        super().__init__(hint, obj, name, exc if isinstance(name, str) else NoElement)


class DeliverySandbox(TemplateSandbox):
    """A sandbox in which fields have the interface's names, and any field of `None` is `None`."""

    attributes: ClassVar[Mapping[type, frozenset[str]]] = {
        **{type(value): _public(value) for value in _VALUES},
        Macro: _MACRO,
    }
    max_sought = MAX_TEXT

    def __init__(self, names: Names, filters: Mapping[str, Filter], loader: BaseLoader) -> None:
        super().__init__(spent, FILTERS_OF_JINJA, loader)
        self.undefined = _Absent
        self._names = names
        self.filters.update(filters)
        self.globals["joiner"] = Joiner

    def getattr(self, obj: Any, attribute: str) -> Any:
        if obj is None:
            return None
        names = self._names.get(type(obj))
        if names is None:
            return super().getattr(obj, attribute)
        return getattr(obj, names[attribute]) if attribute in names else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if obj is None or type(obj) in self._names:
            return self.getattr(obj, argument)
        if hasattr(type(obj), "__missing__"):
            return obj[argument]
        if isinstance(obj, bytes) and isinstance(argument, int) and -len(obj) <= argument < len(obj):
            return obj[argument]
        return super().getitem(obj, argument)

    def _attribute(self, obj: Any, name: str) -> Any:
        if isinstance(obj, TemplateReference) and not name.startswith("_"):
            try:
                return obj[name]
            except LookupError:
                return self.undefined(obj=obj, name=name)
        has_any = hasattr(type(obj), "__missing__") and not self.is_safe_attribute(obj, name)
        return obj[name] if has_any else super()._attribute(obj, name)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any = None) -> bool:
        return super().is_safe_attribute(obj, attr) or (_is_of_driver(obj) and attr in _public(obj))

    def finalized(self, value: Any) -> Any:
        return "" if value is None else deliverable(value)

    def text(self, value: Any) -> str:
        spent().weigh(value)
        return str(value)

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        return value[start:stop:step] if isinstance(value, bytes) else super()._slice(value, start, stop, step)

    def _turns(self, items: Iterable[Any], characters: int) -> Iterable[Any]:
        return () if items is None else super()._turns(items, characters)

    @pass_eval_context
    def _joined(self, context: EvalContext, parts: list[Any]) -> str:  # type: ignore[override] # Jinja2 gives it
        text = super()._joined(parts)
        return markup_join(parts) if context.autoescape else text
