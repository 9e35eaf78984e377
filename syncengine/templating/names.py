"""A parsed template → the names in it that cannot exist: variables, and fields of known shapes. Pure.

All fields of a group of posted time are known, so that `tag.nmae` is an error at startup instead of with the first
group. Of the rows and variables of manifests, only the names are known.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from jinja2 import Environment, nodes

from syncengine.document.diagnostics import suggestion

SAME_ITEMS = frozenset({"sort", "reverse", "list", "unique", "selectattr", "rejectattr", "select", "reject", "for"})
ATTRIBUTE_FIRST = frozenset({"attr", "groupby", "selectattr", "rejectattr", "sum"})
"""The filters whose first argument is an attribute's name."""
ONE_ITEM = frozenset({"first", "last", "min", "max"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a value: its fields by name (`None`: any value), or its items. `title` is its name in messages."""

    title: str
    fields: Mapping[str, Shape | None] | None = None
    item: Shape | None = None


class Finding(NamedTuple):
    """A problem in a template: its line, from 1, and a message."""

    line: int
    message: str


Scope = Mapping[str, Shape | None]
"""The variables of a template and their shapes. `None` is an unknown shape."""


def shape_of(kind: type[Any], fields: Mapping[type[Any], Collection[str]], title: str) -> Shape:
    """Return the shape of a class, with those of its `fields` that templates can use."""
    hints = get_type_hints(kind)
    return Shape(title, {name: _hinted(hints[name], fields, name) for name in fields[kind]})


def _hinted(hint: Any, fields: Mapping[type[Any], Collection[str]], title: str) -> Shape | None:
    if get_origin(hint) in (Union, types.UnionType):
        return next((shape for inner in get_args(hint) if (shape := _hinted(inner, fields, title))), None)
    if get_origin(hint) is tuple:
        return Shape(title, item=_hinted(get_args(hint)[0], fields, f"an item of {title}"))
    return shape_of(hint, fields, title) if hint in fields else None


def unknown_names(tree: nodes.Template, names: Iterable[str]) -> list[Finding]:
    """Return the names in a template that have no value, with their lines and suggestions."""
    from jinja2.meta import TrackingCodeGenerator

    looking = TrackingCodeGenerator(cast("Environment", tree.environment))
    looking.optimizer = None  # like `optimized=False`, which `find_undeclared_variables` does not set
    looking.visit(tree)
    missing = looking.undeclared_identifiers - {*names, "range", "dict", "namespace"}
    places = {n.name: n.lineno for n in reversed(list(tree.find_all(nodes.Name))) if n.name in missing}
    return [Finding(places.get(name, 1), f"`{name}` is undefined{suggestion(name, names)}") for name in sorted(missing)]


def unknown_fields(template: nodes.Template, scope: Scope) -> list[Finding]:
    """Return names that neither `scope` nor the template defines, fields that no shape has, and unsafe attributes."""
    own = {name.name for name in template.find_all(nodes.Name) if name.ctx != "load"}
    own |= {part.target for part in template.find_all(nodes.Import)}
    own |= {n if isinstance(n, str) else n[1] for part in template.find_all(nodes.FromImport) for n in part.names}
    own |= {macro.name for macro in template.find_all(nodes.Macro)} | {
        "loop",
        "caller",
        "varargs",
        "kwargs",
        "self",
    }
    shapes = {name: shape for name, shape in scope.items() if name not in own}
    for loop in template.find_all(nodes.For):
        if isinstance(loop.target, nodes.Name) and loop.target.name not in scope:
            iterated = _shape(loop.iter, shapes)
            shapes[loop.target.name] = iterated.item if iterated else None
    misspelt = [
        Finding(name.lineno, f"there is no variable `{name.name}`{suggestion(name.name, scope)}")
        for name in template.find_all(nodes.Name)
        if name.ctx == "load" and name.name not in scope and name.name not in own
    ]
    found = set(misspelt)
    for access in _accesses(template):
        name, shape = _name(access), _shape(access.node, shapes)
        if name is not None and shape is not None and shape.fields is not None and name not in shape.fields:
            words = f"`{shape.title}` has no field `{name}`{suggestion(name, shape.fields)}"
            found.add(Finding(access.lineno, words))
        # Through these Python itself could be reached. The sandbox does not offer them either.
        if name is not None and _is_unsafe(name):
            found.add(Finding(access.lineno, f"templates cannot use `{name}`"))
    for call in template.find_all(nodes.Filter):
        named = (k.value for k in call.kwargs if k.key == "attribute")
        for arg in (*call.args[: call.name in ATTRIBUTE_FIRST], *named):
            path = arg.value if isinstance(arg, nodes.Const) and isinstance(arg.value, str) else ""
            if any(map(_is_unsafe, path.split("."))):
                found.add(Finding(call.lineno, f"templates cannot use `{path}`"))
    return sorted(found)


def variables_of(template: nodes.Template) -> set[str]:
    """Return the names that a template reads, including `tags` when it reads `group.tags`."""
    names = {name.name for name in template.find_all(nodes.Name) if name.ctx == "load"}
    owners = ((_name(access), access.node) for access in _accesses(template))
    of_group = any(name == "tags" and isinstance(node, nodes.Name) and node.name == "group" for name, node in owners)
    return names | ({"tags"} if of_group else set())


def _is_unsafe(name: str) -> bool:
    return name.startswith("_") or name.endswith("__")


def _accesses(template: nodes.Template) -> Iterator[nodes.Getattr | nodes.Getitem]:
    yield from template.find_all(nodes.Getattr)
    yield from template.find_all(nodes.Getitem)


def _name(access: nodes.Getattr | nodes.Getitem) -> str | None:
    if isinstance(access, nodes.Getattr):
        return access.attr
    argument = access.arg
    return argument.value if isinstance(argument, nodes.Const) and isinstance(argument.value, str) else None


def _shape(node: nodes.Node, shapes: Scope) -> Shape | None:
    """Return the shape of an expression's value, or `None` when it is unknown."""
    match node:
        case nodes.Name():
            return shapes.get(node.name)
        case nodes.Getattr():
            return _part(node, shapes)
        case nodes.Getitem():
            return _part(node, shapes)
        case nodes.Filter() if node.node is not None:
            shape = _shape(node.node, shapes)
            if node.name in SAME_ITEMS:
                return shape
            return shape.item if shape and node.name in ONE_ITEM else None
        case _:
            return None


def _part(access: nodes.Getattr | nodes.Getitem, shapes: Scope) -> Shape | None:
    outer, name = _shape(access.node, shapes), _name(access)
    if outer is None:
        return None
    if name is not None:
        return outer.fields.get(name) if outer.fields else None
    return outer.item if isinstance(access, nodes.Getitem) and not isinstance(access.arg, nodes.Slice) else None
