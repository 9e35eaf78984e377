"""Templates and expressions of posted time → compiled templates in the sandbox, in which what a group lacks is none.

Fields of a group have the interface's names. They are `None` if they are missing, at any depth.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_interface
from typing import Any, ClassVar

from jinja2 import StrictUndefined, Undefined, UndefinedError
from jinja2.loaders import BaseLoader
from jinja2.runtime import TemplateReference
from jinja2.utils import missing

from syncengine.templating.bounds import Allowance, weighed
from syncengine.templating.filters import Filter, FilterTrouble, UnfitValue
from syncengine.templating.sandbox import TemplateSandbox, public
from syncengine.templating.troubles import NoElement

SECONDS = 3.0
"""The most processor seconds that one value may take in the main thread, where all other work waits for it."""
Fields = Mapping[type[Any], Collection[str]]
"""The fields of classes that templates can use."""
_OF_DATABASES: tuple[Any, ...] = (
    *(IPv4Address(0), IPv6Address(0), IPv4Network(0), IPv6Network(0), ip_interface("0.0.0.0"), ip_interface("::")),  # noqa: S104 - no address that anything binds
)
"""One value of each type besides the plain ones that a row of a database may contain."""


def limited() -> AbstractContextManager[None]:
    """Return a context that limits the template in it, as in a command. In a thread it may take any time."""
    return Allowance(SECONDS).spend()


def deliverable(value: Any) -> Any:
    """Return a value for delivery, with iterators as lists. Raise `FilterTrouble` for functions and infinities."""
    if type(value) is str:
        return value
    if isinstance(value, Iterator):
        value = list(value)
    if callable(value) and not isinstance(value, Undefined):
        raise FilterTrouble("the value is a function: call it with `()`")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise UnfitValue(f"{value} is not a number", message="a number must be finite")
    return weighed(value)  # raises for an undefined value


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
        **TemplateSandbox.attributes,
        **{type(value): public(value) for value in _OF_DATABASES},
    }

    def __init__(self, fields: Fields, filters: Mapping[str, Filter], loader: BaseLoader) -> None:
        super().__init__(loader)
        self.undefined = _Absent
        self._fields = fields
        self.filters.update(filters)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if obj is None:
            return None
        if type(obj) not in self._fields:
            return super().getattr(obj, attribute)
        is_there = attribute in self._fields[type(obj)]
        return getattr(obj, attribute) if is_there else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if obj is None or type(obj) in self._fields:
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
        return super().is_safe_attribute(obj, attr) or (_is_of_driver(obj) and attr in public(obj))

    def finalized(self, value: Any) -> Any:
        return "" if value is None else deliverable(value)

    def text(self, value: Any) -> str:
        return str(weighed(value))

    def turns(self, items: Any) -> Any:
        return () if items is None else items
