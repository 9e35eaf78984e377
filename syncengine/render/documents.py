"""Convert parts of JSON documents back into values, the inverse of `render.json`. Pure.

A document may come from anywhere: raise `ValueError` or `KeyError` for a word without a meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from syncengine.errors import Row
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.plan.model import Undo
from syncengine.render import formats
from syncengine.render.json import own_reason
from syncengine.resource import Body, Key, Source
from syncengine.state.codec import frozen


def document_in(content: bytes, kind: Any) -> Any:
    """Return the document of a `kind`, a model or a union of them, in the bytes of a file.

    Raise `msgspec.ValidationError` for another document, and `ValueError` for what is not JSON.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        raise
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if b"\\ud" not in content.lower():
            raise ValueError(str(error)) from None
        # It may have half of a surrogate pair, which only the slower reader accepts.
        return msgspec.convert(json.loads(content), type=kind)


def change_of(item: formats.ChangeItem) -> Change:
    """Return the change of a document, with its own reason and without the reason for which it waits."""
    return Change(
        key=Key.parse(item.address),
        action=Action[item.action.upper()],
        source=source_of(item.source),
        fields=tuple(map(_field, item.fields)),
        keywords_added=item.keywords.add,
        keywords_deleted=item.keywords.delete,
        metadata_set=item.metadata.set,
        metadata_deleted=item.metadata.delete,
        metadata_before=item.metadata.before,
        reason=own_reason(item),
        cascade=Key.parse(item.cascade) if item.cascade else None,
        previously=item.previously,
        opens=item.opens or UNSET,
        merges=item.merges or UNSET,
        removed=_removed(item.before) if item.before is not None else UNSET,
    )


def _removed(before: Mapping[str, Any]) -> Body:
    """Return the recorded content of a removed resource. A tag's has metadata, and keywords that are no field."""
    fields = {name: frozen(value) for name, value in before.items() if name != "metadata"}
    if "metadata" not in before:
        return Body(fields)
    keywords = fields.pop("keywords", ())
    return Body(fields, keywords if isinstance(keywords, tuple) else (), dict(before["metadata"]))


def _field(item: formats.FieldChangeItem) -> FieldChange:
    before, after = frozen(item.before), frozen(item.after)
    for value in (before, after):
        texts = value if isinstance(value, tuple) else ()
        if not (isinstance(value, str | bool | int | tuple | None) and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"the field {item.name} has a value of an unsupported type")
    return FieldChange(item.name, before, after, FieldEffect(item.effect))


def source_of(place: formats.Place | None) -> Source | None:
    return Source(place.file, place.line, row_of(place.data)) if place else None


def row_of(row: formats.DataRow | None) -> Row | None:
    return Row(row.file, row.row) if row else None


def undo_of(item: formats.UndoItem) -> Undo:
    """Return the undo that a plan's document describes."""
    selection = (item.targets, item.excludes)
    return Undo(item.run, item.command, item.started, item.commit, item.revert, item.forced, item.left_out, *selection)
