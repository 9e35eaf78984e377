"""Templates and expressions → compiled templates in a sandbox of allowed names and limited work.

Attributes by type, filters and functions are on allow lists. Everything else is undefined, so there is nothing to
escape to (`__class__`, a format string, a loader). Manifests and posted time each have a sandbox with lists and written
values of its own; a `Budget` is charged for all work.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

from jinja2 import StrictUndefined, TemplateRuntimeError, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.environment import TemplateModule
from jinja2.loaders import BaseLoader
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from syncengine.templating.budget import MAX_SOUGHT, TooMuch, bounded_range, check_number, check_operation
from syncengine.templating.filters import alike
from syncengine.templating.metering import Filter, FilterTable, Spent, check_method, comparable, filters_of, tests_of
from syncengine.templating.rewriting import Bounded, is_internal
from syncengine.templating.values import Named, Record, Unknown

_OF_JINJA = (LoopContext, Macro, BlockReference, TemplateModule, Namespace)
_LOOP = frozenset(
    "index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle changed".split()  # noqa: SIM905 - words
)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The base of the sandboxes in which templates run. `spent` returns the current budget."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})
    attributes: ClassVar[Mapping[type, frozenset[str]]]
    """The attributes that templates can use, by type. Subclasses inherit them."""
    rewritings: ClassVar[tuple[type[NodeTransformer], ...]] = (Bounded,)
    max_sought: ClassVar[int] = MAX_SOUGHT

    def __init__(self, spent: Spent, table: FilterTable, loader: BaseLoader | None = None) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=False,
            optimized=False,  # nothing is evaluated without a budget
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=50,
            loader=loader,
            finalize=pass_context(lambda _, value: self.finalized(value)),  # the context defers it to run time
        )
        self.spent = spent
        self.filters = {**filters_of(spent, table), **self._own_filters()}
        self.tests.update(tests_of(spent))
        self.globals = {"range": bounded_range, "dict": dict, "namespace": Namespace}

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """Return a template's globals as one dict: each rendering copies them, which is slow for a chain of maps."""
        return {**self.globals, **(d or {})}

    @abstractmethod
    def finalized(self, value: Any) -> Any:
        """Return the written form of a value."""

    @abstractmethod
    def text(self, value: Any) -> str:
        """Return the text of a value that becomes part of a larger text."""

    def _own_filters(self) -> dict[str, Filter]:
        return {
            "_turns": self._turns,
            "_joined": self._joined,
            "_kept": lambda value: self.spent().took(value),
            "_part": self._slice,
            "_comparable": lambda value: comparable(self.spent(), value),
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for call in tree.find_all(nodes.Filter):
            if is_internal(call.name):
                raise TemplateSyntaxError(f"No filter named {call.name!r}.", call.lineno, name, filename)
        for rewriting in self.rewritings:
            tree = rewriting().visit(tree)
        return tree

    def call_filter(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a filter whose name is an argument of `map`. Raise `TemplateRuntimeError` for an internal filter."""
        if is_internal(name):
            raise TemplateRuntimeError(f"No filter named {name!r}.")
        return super().call_filter(name, *arguments, **options)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, str) or isinstance(obj, Undefined):
            return self._attribute(obj, argument)
        if isinstance(obj, dict | list | tuple | str | range):
            comparable(self.spent(), argument)
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        left, right = alike(left, right)
        is_joined = operator == "+" and isinstance(left, str) and isinstance(right, str)
        if not is_joined and (isinstance(left, Unknown) or isinstance(right, Unknown)):
            return Unknown(f"{left} {operator} {right}")
        check_operation(self.spent(), operator, left, right)
        result = super().call_binop(context, operator, left, right)
        check_number(result)
        return result

    def call(self, __context: Any, __obj: Any, *arguments: Any, **options: Any) -> Any:
        budget = self.spent()
        budget.step()
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)
        if isinstance(owner, str):
            arguments = tuple(list(budget.turns(v, 0)) if isinstance(v, Iterator) else v for v in arguments)
            check_method(budget, __obj.__name__, owner, arguments, options)
        if not isinstance(__obj, Macro):
            self._check_call(owner, arguments)
        return budget.took(super().call(__context, __obj, *arguments, **options))

    def _check_call(self, owner: Any, arguments: tuple[Any, ...]) -> None:
        """Charge a method for comparing its arguments with all items of its owner."""
        budget = self.spent()
        if isinstance(owner, str):
            budget.works(len(owner))
            if any(isinstance(text, str) and len(text) > self.max_sought for text in arguments):
                raise TooMuch(f"the text to search for is longer than {self.max_sought:,} characters")
        elif isinstance(owner, list | tuple):
            budget.weigh(owner, is_written=False)
        for value in arguments:
            comparable(budget, value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any = None) -> bool:
        kinds = self.attributes
        return attr in next((kinds[kind] for kind in type(obj).__mro__ if kind in kinds), ())

    def is_safe_callable(self, obj: Any) -> bool:
        """Return true: attributes are allowed one by one, so any value with an allowed name may be called."""
        return True

    def _attribute(self, obj: Any, name: str) -> Any:
        if isinstance(obj, dict) and name in obj:
            return obj[name]
        if self.is_safe_attribute(obj, name):
            return self._method(obj, name)
        if isinstance(obj, Named | Record):
            return self.undefined(hint=obj.missing(name))
        if isinstance(obj, _OF_JINJA) and not name.startswith("_"):
            return self._of_jinja(obj, name)
        if isinstance(obj, Undefined):
            str(obj)  # raises for an undefined value, with the missing name
        return self.undefined(obj=obj, name=name)

    def _method(self, obj: Any, name: str) -> Any:
        """Return the value of an allowed attribute."""
        value = getattr(obj, name)
        return self.wrap_str_format(value) or value

    def _of_jinja(self, obj: Any, name: str) -> Any:
        if isinstance(obj, LoopContext) and name in _LOOP:
            return getattr(obj, name)
        if isinstance(obj, Namespace):
            return getattr(obj, name, self.undefined(obj=obj, name=name))
        if isinstance(obj, TemplateModule) and isinstance(value := getattr(obj, name, None), Macro | str):
            return value
        if isinstance(obj, BlockReference) and name == "super":
            return obj.super
        return self.undefined(obj=obj, name=name)

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        if isinstance(value, Undefined):
            str(value)
        if not isinstance(value, str | list | tuple | range):
            raise TypeError("only texts and lists can be sliced, as in `[1:]`")
        return self.spent().took(value[start:stop:step])

    def _turns(self, items: Iterable[Any], characters: int) -> Iterable[Any]:
        if isinstance(items, Undefined):
            str(items)
        return self.spent().turns(items, characters)

    def _joined(self, parts: list[Any]) -> str:
        texts = [part if type(part) is str else self.text(part) for part in parts]
        self.spent().fits(sum(map(len, texts)))
        return "".join(texts)
