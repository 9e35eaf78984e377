"""The settings by which a list of an HTTP service is read page by page: the model `Paging`. Data only."""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import Identity, Reads
from syncengine.document.model import JsonSchema, Model
from syncengine.document.nodes import Mapping, Node
from syncengine.document.scalar_readers import flag, tested, whole_number
from syncengine.document.template_types import one_of, one_of_schema

PAGINGS = ("next", "page", "cursor", "offset", "link")
PAGING_NEEDS = {"cursor": ["at"], "at": ["cursor"], "limit": ["offset", "size"], "size": ["limit"]}
"""The fields of `paging` that need others."""


def paging_reader(name: str) -> Any:
    """Return a reader of `paging` that also reports fields without those that they need."""
    read_one = one_of(Paging, "`paging`", PAGINGS)(name)

    def read(node: Node, findings: Collector) -> Any:
        value = read_one(node, findings)
        if value is INVALID or not isinstance(node, Mapping):
            return value
        for key in node.keys:
            missing = [f"`{other}`" for other in PAGING_NEEDS.get(key.text, ()) if node.get(other) is None]
            if missing:
                value = findings.error("missing-field", key, f"`{key.text}` needs {' and '.join(missing)} beside it")
        return value

    return read


_true = tested(flag, bool, "bad-value", "can only be true")


class Paging(Model, frozen=True):
    """The paging of a long list: how its next page is requested."""

    beyond_fields: ClassVar[AnyMapping[str, Any]] = {**one_of_schema(*PAGINGS), "dependentRequired": PAGING_NEEDS}

    next: Annotated[
        Identity | None, Meta(description="Path of the next page's URL in the answer, such as `links.next`.")
    ] = None
    page: Annotated[
        Identity | None, Meta(description="Query parameter for the page number; an empty page ends the list.")
    ] = None
    cursor: Annotated[
        Identity | None, Meta(description="Query parameter for the token of the next page, which the answer has `at`.")
    ] = None
    at: Annotated[
        Identity | None,
        Meta(description="Path of the next page's token in the answer, such as `nextPageToken`; without one it ends."),
    ] = None
    offset: Annotated[
        Identity | None,
        Meta(description="Query parameter for the number of rows read so far; an empty page ends the list."),
    ] = None
    limit: Annotated[Identity | None, Meta(description="Query parameter for the number of rows of a page.")] = None
    size: Annotated[
        Annotated[int, Reads(whole_number(1, 1_000_000))] | None,
        Meta(description="Number of rows of a page, for `limit`."),
    ] = None
    link: Annotated[
        Annotated[bool, Reads(_true), JsonSchema({"const": True})] | None,
        Meta(description='Follow the header `Link` with `rel="next"`.'),
    ] = None
    first: Annotated[
        Annotated[int, Reads(whole_number(0, 1_000_000))] | None,
        Meta(description="Number of the first page, 1 by default; or the first offset, 0 by default."),
    ] = None


PagingSection = Annotated[Paging, Reads(paging_reader)]
