"""File → the plan, report or diagnostics in it: the one reader for `show`, `publish`, `--reviewed` and `--since`.

`plan --format json` prints and `plan --out` saves the same document. It may come from anywhere: nothing in it is
executed, and only `apply` proves a saved plan (`plan/saved.py`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType, convert, structs

from syncengine.document.json_text import misfit
from syncengine.errors import SyncengineError
from syncengine.plan import saved
from syncengine.plan.diff import Action, Change, FieldChange
from syncengine.plan.judgement import POLICY_DENIED
from syncengine.plan.model import Plan
from syncengine.plan.planner import with_approvals
from syncengine.plan.request import PlanRequest
from syncengine.plan.review import ReviewedPlan
from syncengine.project.files import content_of
from syncengine.project.model import Project
from syncengine.render.documents import gate_state
from syncengine.render.formats import ChangeItem, Diagnostics, PlanFormat, ReportFormat
from syncengine.resource import Body, Key

CURE = "use a file that `plan --report json=FILE` or `plan --out FILE` wrote"

Document = PlanFormat | ReportFormat | Diagnostics


class PlanFile(NamedTuple):
    """The document of a plan. `saved` is a saved plan but for its parts: its document lacks the approvals."""

    document: PlanFormat
    saved: Plan | None

    def judged(self, project: Project) -> PlanFormat:
        """Return the document with the approvals of the project, if it is of a saved plan."""
        if self.saved is None:
            return self.document
        plan = with_approvals(self.saved, project, PlanRequest("show"))
        return structs.replace(self.document, gate=gate_state(plan.gate, has_base=plan.base is not None))


def file_content(path: Path, name: str) -> bytes:
    """Return the content of a file, called `name` in messages. Raise an error if it is missing, no file, or empty."""
    if os.path.lexists(path) and not path.is_file():  # reading a pipe would block
        raise unfit(f"{name} is not a file: {CURE}")
    content = content_of(path, name)
    if not content or content.isspace():
        raise unfit(f"{name} is empty: the command that writes it may have been stopped early")
    return content


def document_in(content: bytes, name: str) -> Document:
    """Return the document in the content of a file, or raise `SyncengineError` (`plan-file`)."""
    try:
        try:
            found: Document = msgspec.json.decode(content, type=Document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if isinstance(error, msgspec.ValidationError) or b"\\ud" not in content.lower():
                raise
            # It may have half of a surrogate pair, which only the slower reader accepts.
            found = convert(json.loads(content), type=Document)
    except msgspec.ValidationError as error:
        if "$.format" in str(error) or "`format`" in str(error):
            raise unfit(f"{name} is neither a plan nor a report of this version: {CURE}") from None
        raise damaged(name, error) from None
    except (ValueError, RecursionError):
        raise unfit(f"{name} is not JSON, or incomplete: {CURE}") from None
    return found


def plan_in(content: bytes, name: str) -> PlanFile:
    """Return the plan in the content of a file, or raise `SyncengineError` (`plan-file`)."""
    document = document_in(content, name)
    if isinstance(document, Diagnostics):
        raise unfit(f"{name} contains no plan, because planning failed: fix the errors and plan again")
    if isinstance(document, ReportFormat):
        raise unfit(f"{name} is not a plan, but the report of an apply: {CURE}")
    return PlanFile(document, saved.bare_plan(content, name))


def reviewed_in(content: bytes, name: str) -> ReviewedPlan:
    """Return the reviewed plan in the content of a file, or raise `SyncengineError` (`plan-file`)."""
    document = plan_in(content, name).document
    try:
        changes: dict[Key, Change] = {}
        for item in document.changes:
            change = change_of(item)
            if changes.setdefault(change.key, change) is not change:
                raise ValueError(f"{change.key} appears twice")
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(name, error) from error
    return ReviewedPlan(
        file=name,
        plan=document.id,
        base_url=document.service.base_url,
        team=document.service.team,
        lineage=document.basis.lineage,
        environment=document.basis.environment,
        changes=changes,
        sweep=frozenset(document.sweep.known) if document.sweep else None,
        is_denied=any(item.code == POLICY_DENIED for item in document.diagnostics),
    )


def unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="plan-file")


def damaged(name: str, error: Exception) -> SyncengineError:
    return unfit(f"{name} is damaged: {misfit(error)}; make it again")


def change_of(item: ChangeItem) -> Change:
    """Return the change of a reviewed document, which today's change is compared with; places are not."""
    removed: Body | UnsetType = UNSET
    if item.before is not None:
        fields = dict(item.before)
        metadata = fields.pop("metadata", None)
        # A tag's content has metadata, and keywords that are no field; a category's keywords are one.
        keywords = () if metadata is None else fields.pop("keywords", ())
        removed = convert({"fields": fields, "keywords": keywords, "metadata": metadata or {}}, Body)
    return Change(
        key=Key.parse(item.address),
        action=Action[item.action.upper()],
        source=None,
        fields=tuple(FieldChange(f.name, f.before, f.after, f.effect, f.replaced) for f in item.fields),
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
        removed=removed,
        cause=item.cause or UNSET,
    )
