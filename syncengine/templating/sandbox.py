"""Templates and expressions → compiled templates in a sandbox: the one of manifests, rules and deliveries.

Attributes by type, filters and functions are on allow lists. Everything else is undefined, so there is nothing to
escape to (`__class__`, a format string, a loader). `bounds` limits time, memory and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_interface
from typing import Any, ClassVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from jinja2 import (
    StrictUndefined,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    nodes,
    pass_context,
)
from jinja2.environment import TemplateModule
from jinja2.loaders import BaseLoader
from jinja2.runtime import BlockReference, LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment, modifies_known_mutable
from jinja2.utils import Joiner, Namespace, missing
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from syncengine.templating.bounds import (
    MAX_CAPTURED,
    MAX_SOUGHT,
    Allowance,
    TooMuch,
    WrongKind,
    bounded_range,
    check_number,
    check_operation,
    fits,
    join_pieces,
    weighed,
)
from syncengine.templating.filters import FILTERS, SIZES, TESTS, Filter, FilterTrouble, UnfitValue, alike, plain_text
from syncengine.templating.troubles import NoElement
from syncengine.templating.values import Named, Record, Unknown

_LOOP = frozenset(
    "index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle changed".split()  # noqa: SIM905 - words
)
_MACRO = frozenset({"name", "arguments", "catch_kwargs", "catch_varargs", "caller"})
_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN: tuple[Any, ...] = (
    *("", b"", True, 0, 0.0, {}, [], (), range(0), Markup(), Decimal(), Decimal().as_tuple(), UUID(int=0)),
    *(_MOMENT, date.min, time.min, timedelta(), _MOMENT.timetuple(), date.min.isocalendar(), UTC, ZoneInfo("UTC")),
)
"""One value of each type whose public attributes templates can use, but for `_NEVER` and those that change it."""
_OF_BYTES = frozenset({"decode", "hex"})
"""What makes text of bytes. Their other methods are those of texts, whose results `SIZES` does not know for bytes."""
_NEVER = frozenset({"now", "today", "utcnow", "to_bytes"})
"""Attributes by which equal rows would not make equal resources, so that nothing could be cached, or huge bytes."""


def public(value: Any) -> frozenset[str]:
    """Return the names of the attributes of a plain value that templates can use."""
    names = _OF_BYTES if isinstance(value, bytes) else frozenset(dir(value)) - _NEVER
    return frozenset(n for n in names if not n.startswith("_") and not modifies_known_mutable(value, n))


class Guarded(NodeTransformer):
    """A rewriting of what no method of a sandbox is called for: comparisons, keys, slices, loops and joined texts.

    The timer cannot interrupt them, since they run in C.
    """

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        if isinstance(node.value, float) and not math.isfinite(node.value):
            raise TemplateSyntaxError("the number is too large", node.lineno)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        node.iter = filtered(node.iter, "for")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        return filtered(nodes.List(node.nodes, lineno=node.lineno), "~")

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return filtered(node.node, "[:]", *(each or nodes.Const(None, lineno=node.lineno) for each in bounds))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        sides = (node.expr, *(operand.expr for operand in node.ops))
        if sum(not _is_constant(side) for side in sides) > 1:
            node.expr = filtered(node.expr, "==")
            for operand in node.ops:
                operand.expr = filtered(operand.expr, "==")
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = filtered(node.key, "==")
        return node


def _is_constant(node: nodes.Node) -> bool:
    """Return whether a node is a literal, so that comparing with it is fast."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)


def filtered(node: nodes.Node, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(
        cast("nodes.Expr", node), name, list(arguments), [], None, None, lineno=getattr(node, "lineno", 1)
    )


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The sandbox of one manifest, one `generate` block, one project's rules or its deliveries."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})
    attributes: ClassVar[Mapping[type, frozenset[str]]] = {
        **{type(value): public(value) for value in PLAIN},
        Named: frozenset(),
        LoopContext: _LOOP,
        Macro: _MACRO,
        BlockReference: frozenset({"super"}),
    }
    """The attributes that templates can use, by type. Subclasses inherit them."""
    rewritings: ClassVar[tuple[type[NodeTransformer], ...]] = (Guarded,)

    def __init__(self, loader: BaseLoader | None = None) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=False,
            optimized=False,  # nothing is evaluated without limits
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=50,
            loader=loader,
            finalize=pass_context(lambda _, value: self.finalized(value)),  # the context defers it to run time
        )
        # No template can spell the names of the filters that `Guarded` adds.
        own: dict[str, Filter] = {"~": self._joined, "[:]": self._slice, "==": weighed, "for": self.turns}
        self.filters = {**FILTERS, **own}
        self.tests = dict(TESTS)
        self.globals = {"range": bounded_range, "dict": dict, "namespace": Namespace, "joiner": Joiner}

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """Return a template's globals as one dict: each rendering copies them, which is slow for a chain of maps."""
        return {**self.globals, **(d or {})}

    def finalized(self, value: Any) -> Any:
        """Return what a template writes for a value."""
        return value if type(value) is str else self.text(value)

    def text(self, value: Any) -> str:
        """Return the text of a value that becomes part of a larger text."""
        return plain_text(weighed(value))

    def turns(self, items: Any) -> Any:
        """Return what a loop goes through."""
        return items

    def concat(self, pieces: Iterable[str]) -> str:
        """Return the joined captured text of a macro, `{% set %}`, `{% filter %}` or a recursive loop."""
        sentence = f"a value would be larger than {MAX_CAPTURED:,} characters"
        return join_pieces(pieces, MAX_CAPTURED, sentence)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for rewriting in self.rewritings:
            rewriting().visit(tree)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, str) or isinstance(obj, Undefined):
            return self._attribute(obj, argument)
        if isinstance(obj, dict | list | tuple | str | range):
            try:
                return obj[weighed(argument)]
            except (LookupError, TypeError):
                pass
        if isinstance(obj, Named | Record):
            return self.undefined(hint=obj.missing(self.text(argument)))
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        left, right = alike(left, right)
        is_joined = operator == "+" and isinstance(left, str) and isinstance(right, str)
        if not is_joined and (isinstance(left, Unknown) or isinstance(right, Unknown)):
            return Unknown(f"{left} {operator} {right}")
        check_operation(operator, left, right)
        result = super().call_binop(context, operator, left, right)
        check_number(result)
        return result

    def call(self, __context: Any, __obj: Any, *arguments: Any, **options: Any) -> Any:
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str):
            arguments = tuple(list(each) if isinstance(each, Iterator) else each for each in arguments)
            if __obj.__name__ in SIZES:
                given = {name: value for name, value in options.items() if not name.startswith("_")}  # not Jinja2's own
                fits(SIZES[__obj.__name__](owner, *arguments, **given))
            if any(isinstance(text, str) and len(text) > MAX_SOUGHT for text in arguments) and len(owner) > MAX_SOUGHT:
                raise TooMuch(f"the text to search for is longer than {MAX_SOUGHT:,} characters")
        elif isinstance(owner, list | tuple):
            weighed(owner)  # its items are compared with the arguments
        for value in arguments:
            weighed(value)  # or else nested calls could double it
        result = super().call(__context, __obj, *arguments, **options)
        check_number(result)
        return result

    def is_safe_attribute(self, obj: Any, attr: str, value: Any = None) -> bool:
        kinds, fields = self.attributes, getattr(type(obj), "_fields", ())  # those of a group of `groupby`
        return attr in fields or attr in next((kinds[kind] for kind in type(obj).__mro__ if kind in kinds), ())

    def is_safe_callable(self, obj: Any) -> bool:
        """Return true: attributes are allowed one by one, so any value with an allowed name may be called."""
        return True

    def _attribute(self, obj: Any, name: str) -> Any:
        if isinstance(obj, dict) and name in obj:
            return obj[name]
        if self.is_safe_attribute(obj, name):
            if type(obj) is str and name == "join":  # it takes values of any kind, as the filter does
                return lambda items: self.filters["join"](self, items, obj)
            if type(obj) is str and name == "replace":
                return lambda *arguments: self.filters["replace"](obj, *arguments)
            value = getattr(obj, name)
            return self.wrap_str_format(value) or value
        if isinstance(obj, Named | Record):
            return self.undefined(hint=obj.missing(name))
        if isinstance(obj, Namespace | TemplateModule) and not name.startswith("_"):
            value = getattr(obj, name, self.undefined(obj=obj, name=name))
            if isinstance(obj, Namespace) or isinstance(value, Macro | str | Undefined):
                return value
        if isinstance(obj, Undefined):
            str(obj)  # raises for an undefined value, with the missing name
        return self.undefined(obj=obj, name=name)

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        if isinstance(value, Undefined):
            str(value)
        if not isinstance(value, str | list | tuple | range | bytes):
            raise WrongKind("only texts and lists can be sliced, as in `[1:]`")
        return value[start:stop:step]

    def _joined(self, parts: list[Any]) -> str:
        texts = [part if type(part) is str else self.text(part) for part in parts]
        fits(sum(map(len, texts)))
        return "".join(texts)


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


class Null:
    """A null of an answer: none in conditions, as are all its fields, and an error where it would become text."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Null)

    def __hash__(self) -> int:
        return hash(None)

    def __str__(self) -> str:
        raise UndefinedError("a value of the answer is null")

    __repr__ = __str__


NULL = Null()


class _Object(dict[str, Any]):
    """An object of an answer. What it lacks is not known to be none either."""

    def get(self, name: str, default: Any = NULL) -> Any:
        return super().get(name, default)


def with_nulls(value: Any) -> Any:
    """Return parsed JSON with `NULL` instead of `None`, so that no text is made of it. Raise `RecursionError`."""
    if isinstance(value, dict):
        return _Object({name: with_nulls(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return [with_nulls(inner) for inner in value]
    return NULL if value is None else value


class DeliverySandbox(TemplateSandbox):
    """A sandbox in which fields have the interface's names, and any field of `None`, or of a null, is the same."""

    attributes: ClassVar[Mapping[type, frozenset[str]]] = {
        **TemplateSandbox.attributes,
        **{type(value): public(value) for value in _OF_DATABASES},
    }

    def __init__(self, fields: Fields, filters: Mapping[str, Filter], loader: BaseLoader) -> None:
        super().__init__(loader)
        self.undefined = _Absent
        self._fields = fields
        self.filters.update(filters)
        self.tests["none"] = lambda value: value is None or value is NULL

    def getattr(self, obj: Any, attribute: str) -> Any:
        if obj is None or obj is NULL:
            return obj
        if type(obj) not in self._fields:
            return super().getattr(obj, attribute)
        is_there = attribute in self._fields[type(obj)]
        return getattr(obj, attribute) if is_there else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if obj is None or obj is NULL or type(obj) in self._fields:
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
        return super().is_safe_attribute(obj, attr) or (
            # A type of a driver of databases, such as a range of dates.
            type(obj).__module__.startswith("psycopg.types.") and attr in public(obj)
        )

    def finalized(self, value: Any) -> Any:
        return "" if value is None else deliverable(value)

    def text(self, value: Any) -> str:
        return str(weighed(value))

    def turns(self, items: Any) -> Any:
        return () if items is None else items
