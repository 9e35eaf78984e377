"""Turn models into tables of readers, which read mappings field by field. Pure.

A field's name, type and description are only in its model; the tables and the JSON Schemas are made from it. Validation
is our own, because an error needs its line and 100,000 tags must be read fast.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from syncengine.document.diagnostics import INVALID, Collector, nearest
from syncengine.document.field_types import Reads
from syncengine.document.model import Model, constructed, fields_of
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar
from syncengine.document.scalar_readers import Reader, list_reader, refused, report_commas
from syncengine.document.scalar_readers import display as display

M = TypeVar("M", bound="Model")


@dataclass(frozen=True, slots=True)
class Table:
    """The readers of a model's fields by the name in the file, each with the name as one shared string.

    `synonyms` maps other names that people use to the names of fields.
    """

    title: str
    readers: AnyMapping[str, tuple[str, Reader]]
    required: frozenset[str]
    synonyms: AnyMapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: type[Model], title: str, synonyms: AnyMapping[str, str] | None = None) -> Table:
        by_name = {info.encode_name: info for info in fields_of(model)}
        return cls(
            title=title,
            readers={name: (name, _reader(name, info.type)) for name, info in by_name.items()},
            required=frozenset(name for name, info in by_name.items() if info.required),
            synonyms=synonyms or {},
        )

    def read(self, node: Mapping, findings: Collector) -> dict[str, Any]:
        """Return the values of the fields that `node` has. The value of a field that cannot be read is `INVALID`."""
        values, readers, before = {}, self.readers, len(findings.found)
        for key, value in zip(node.keys, node.values, strict=True):
            reader = readers.get(key.text)
            if reader is None:
                self._unknown(key, findings)
            else:
                values[reader[0]] = reader[1](value, findings)
        if before < len(findings.found):
            report_commas(node, findings)
        return values

    def missing(self, present: Iterable[str], node: Mapping, findings: Collector, address: str | None = None) -> bool:
        """Report absent required fields, except those that a misspelt key explains. Return whether any is absent."""
        absent = [name for name in self.readers if name in self.required.difference(present)]
        misspelt = {self._nearest(key.text) for key in node.keys if key.text not in self.readers} if absent else set()
        for name in absent:
            if name not in misspelt:
                findings.error("missing-field", node, f"{self.title} needs `{name}`", address)
        return bool(absent)

    def _unknown(self, key: Scalar, findings: Collector) -> None:
        near = self._nearest(key.text)
        hint = f"; did you mean `{near}`?" if near else ""
        findings.error("unknown-field", key, f"{self.title} has no field `{display(key.text)}`{hint}")

    def _nearest(self, name: str) -> str | None:
        return self.synonyms.get(name) or nearest(name, tuple(self.readers))


def model_reader(model: type[M], title: str) -> Reader:
    """Return a reader of a mapping as an instance of `model`. Its result is `INVALID` when any field is.

    The model's table is made when it is needed, since most files use few of many models.
    """
    table_of = cache(Table.of)

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Mapping):
            return refused(node, findings, title, "a mapping", empty="{}")
        table = table_of(model, title)
        values = table.read(node, findings)
        if table.missing(values, node, findings) or INVALID in values.values():
            return INVALID
        return constructed(model, values)

    return read


def fields_by_type(model: type[Model]) -> dict[str, tuple[Any, Callable[[str], Reader] | None]]:
    """Return each field's bare type, and the factory of its reader if it is annotated, by its name in the file."""
    bare = {info.encode_name: _bare(info.type) for info in fields_of(model)}
    return {name: (annotation, reads.make if reads else None) for name, (annotation, reads) in bare.items()}


def _reader(name: str, annotation: Any) -> Reader:
    annotation, reads = _bare(annotation)
    if reads:
        return reads.make(name)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return model_reader(annotation, name)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return _map_reader(name, lambda key: _reader(f"{name}.{key}", inner[-1]))
    return list_reader(name, _reader(name, inner[0]))


def _bare(annotation: Any, metadata: AnySequence[Any] = ()) -> tuple[Any, Reads | None]:
    """Return a type without annotations and `None`, and its `Reads` annotation if it has one."""
    for reads in metadata:
        if isinstance(reads, Reads):
            return annotation, reads
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bare(inner[0], inner[1:])
    if origin in (Union, types.UnionType):
        return _bare(next(a for a in inner if a is not type(None)))
    return annotation, None


def _map_reader(name: str, make: Callable[[str], Reader]) -> Reader:
    """Return a reader of a mapping whose messages name each value by its key."""

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Mapping):
            return refused(node, findings, name, "a mapping", empty="{}")
        pairs = zip(node.keys, node.values, strict=True)
        values = {key.text: make(display(key.text))(entry, findings) for key, entry in pairs}
        return INVALID if INVALID in values.values() else values

    return read


def unexamined(name: str) -> Reader:
    """Return a reader that keeps the node of a section unread, for a later stage."""

    def read(node: Node, findings: Collector) -> Any:
        return INVALID if isinstance(node, RefusedNode) else node

    return read
