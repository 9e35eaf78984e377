"""Read a reviewed plan from a file, or reject the file (docs/reviews.md).

`plan --format json` prints and `plan --out` saves the same document. The file may come from anywhere: a document that
is damaged, cut off or of another kind is rejected, and nothing in it is executed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from syncengine.document.gc_pause import no_collection
from syncengine.errors import SyncengineError
from syncengine.plan import saved
from syncengine.plan.diff import Change
from syncengine.plan.judgement import POLICY_DENIED
from syncengine.plan.review import ReviewedPlan
from syncengine.project.content import refuse_missing
from syncengine.render.documents import change_of, document_in
from syncengine.render.formats import Diagnostics, PlanBasis, PlanFormat
from syncengine.resource import Key

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
