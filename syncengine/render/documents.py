"""Convert parts of JSON documents back into values, the inverse of `render.json`. Pure.

A document may come from anywhere: raise `ValueError` or `KeyError` for a word without a meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.gc_pause import no_collection
from syncengine.errors import Row, SyncengineError
from syncengine.plan import saved
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.plan.judgement import POLICY_DENIED
from syncengine.plan.model import Undo
from syncengine.plan.review import ReviewedPlan
from syncengine.project.content import refuse_missing
from syncengine.render import formats
from syncengine.render.formats import Diagnostics, PlanBasis, PlanFormat
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
    """Return the change of a document."""
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
        reason=item.reason,
        cascade=Key.parse(item.cascade) if item.cascade else None,
        previously=item.previously,
        opens=item.opens or UNSET,
        merges=item.merges or UNSET,
        removed=_removed(item.before) if item.before is not None else UNSET,
        cause=item.cause or UNSET,
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


CODE = "plan-file"
MAX_BYTES = 512 * 1024 * 1024
Printed = PlanFormat | Diagnostics


def read_reviewed(path: Path, file: str) -> ReviewedPlan:
    """Read the plan at `path`, or raise `SyncengineError` (`plan-file`); `file` is its name in messages."""
    return reviewed_in(_content(path, file), file)


def reviewed_in(data: bytes, file: str) -> ReviewedPlan:
    """Read the plan from the bytes of a document, or raise `SyncengineError` (`plan-file`)."""
    with no_collection():
        document = _document(data, file)
        if isinstance(document, Diagnostics):
            raise _unfit(f"{file} contains no plan, because planning failed: fix the errors and plan again")
        if document.basis is None:
            raise _unfit(f"{file} is from an earlier version of syncengine and does not name its state: plan again")
        try:
            return _reviewed(document, document.basis, file)
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(file) from error


def _content(path: Path, file: str) -> bytes:
    refuse_missing(path, file)
    try:
        if not path.is_file():
            raise _unfit(f"{file} is not a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unfit(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise _unfit(f"{file} is larger than {MAX_BYTES // 1024 // 1024} MB, which is too large for a plan")
    if saved.is_altered(data):
        raise _unfit(f"{file} was changed after it was saved: plan again")
    return data


def _document(data: bytes, file: str) -> Printed:
    try:
        document: Printed = document_in(data, Printed)
    except (msgspec.ValidationError, ValueError) as error:
        raise _damaged(file) from error
    return document


def _reviewed(document: PlanFormat, basis: PlanBasis, file: str) -> ReviewedPlan:
    return ReviewedPlan(
        file=file,
        plan=document.id,
        base_url=document.service.base_url,
        team=document.service.team,
        lineage=basis.lineage,
        environment=basis.environment,
        changes=_by_key(replace(change_of(item), source=None) for item in document.changes),
        sweep=frozenset(document.sweep.known) if document.sweep else None,
        is_denied=any(item.code == POLICY_DENIED for item in document.diagnostics),
    )


def _by_key(changes: Iterable[Change]) -> dict[Key, Change]:
    by_key: dict[Key, Change] = {}
    for change in changes:
        if by_key.setdefault(change.key, change) is not change:
            raise ValueError(f"{change.key} appears twice")
    return by_key


def _damaged(file: str) -> SyncengineError:
    return _unfit(f"{file} is not a plan or is damaged: use a file that `plan --format json` or `plan --out` wrote")


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code=CODE)
