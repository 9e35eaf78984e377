"""JSON file → Markdown and outputs. Any defect of the file is an error.

Files are documents of docs/formats.md that `plan`, `apply` and `validate` print or write, and saved plans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from syncengine.apply.report import Outcome, Report, RunStatus
from syncengine.document.json_paths import misfit
from syncengine.errors import SyncengineError
from syncengine.plan import saved
from syncengine.plan.model import Plan
from syncengine.project import git
from syncengine.project.files import refuse_links, write_whole
from syncengine.render import formats
from syncengine.render.documents import SHOWN, diagnostics_of, document_in, plan_of, report_of
from syncengine.render.markdown import Size, plan_markdown, report_markdown, trouble_markdown
from syncengine.render.style import Look

CURE = "write it with `syncengine plan --report json=FILE`"
SAFE = re.compile(r"[0-9A-Za-z._-]*")
"""The letters of an output, which is always one line."""
PLAN_ID = re.compile(r"[0-9A-Za-z._-]{0,200}")
COUNTED = ("create", "update", "delete", "retire", "forget")
"""The actions that outputs count. Those from the third on are removals."""

Outputs = Mapping[str, str]
"""The names and values for later steps and jobs: words, numbers and ids, never text from a manifest."""


class Publication(NamedTuple):
    """A document to publish. `markdown` renders it, in at most a number of units of a measure.

    `has_commit` is whether the document names its commit wherever there is one, as all do but errors.
    """

    markdown: Callable[[Look, int, Size], str]
    outputs: Outputs
    commit: str | None = None
    has_commit: bool = False


def publication_of(path: Path, name: str, approved: Callable[[Plan], Plan]) -> Publication:
    """Return the publication of a file, called `name` in messages. Raise `SyncengineError` for any other file.

    `approved` applies approvals to a saved plan, whose file contains none.
    """
    try:
        refuse_links(path)
    except OSError:
        raise _unfit(
            f"{name} is a symbolic link or in a linked folder, which may lead to what this run did not write: {CURE}"
        ) from None
    try:
        if not path.is_file():  # reading a pipe would block
            raise _unfit(f"{name} {'is not a file' if path.exists() else 'does not exist'}: {CURE}")
        content = path.read_bytes()
    except OSError as error:
        raise _unfit(f"{name} cannot be read: {error.strerror}") from None
    if not content.strip():
        raise _unfit(f"{name} is empty: the command that writes it must have been stopped early")
    try:
        is_saved = bool(bytes(msgspec.json.decode(content, type=saved.Printed).execution))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        is_saved = False
    if is_saved:
        return _of_plan(approved(saved.load(path, SHOWN)), name)
    try:
        document = document_in(content, formats.PlanFormat | formats.ReportFormat | formats.Diagnostics)
    except msgspec.ValidationError as error:
        if "$.format" in str(error) or "`format`" in str(error):
            raise _unfit(f"{name} is neither a plan nor a report of this version: {CURE}") from None
        raise _unfit(f"{name} is damaged: {misfit(error)}; make it again") from None
    except ValueError:
        raise _unfit(f"{name} is not JSON: {CURE}") from None
    try:
        match document:
            case formats.PlanFormat():
                return _of_plan(plan_of(document), name)
            case formats.ReportFormat():
                return _of_report(report_of(document), name)
            case _:
                found = diagnostics_of(document.diagnostics)
                return Publication(partial(trouble_markdown, found), _outputs({}, False, False, "", name))
    except (ValueError, KeyError) as error:
        raise _unfit(f"{name} is damaged: {misfit(error)}; make it again") from None


def refuse_committed(publication: Publication, path: Path, name: str, head: str | None) -> None:
    """Refuse a file that this run did not write: one that Git has, or one made at another commit than `head`.

    Whoever can commit a file can commit a forged plan, but none that names its own commit.
    """
    if git.may_keep(path.parent, path.name):
        cure = "write it elsewhere, or delete it from Git"
        raise _unfit(f"{name} is in Git, or Git cannot say, so that it may not be what this run wrote: {cure}")
    if head and publication.commit != head and (publication.commit or publication.has_commit):
        made = f"at commit {publication.commit[:12]}" if publication.commit else "outside of Git"
        raise _unfit(f"{name} was made {made}, and {head[:12]} is checked out: {CURE}")


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="publish-file")


def _of_plan(plan: Plan, name: str) -> Publication:
    counts = {word: getattr(plan.summary, word) for word in COUNTED}
    outputs = _outputs(counts, plan.changes_something, plan.gate.is_closed, plan.id, name)
    return Publication(partial(plan_markdown, plan), outputs, plan.basis.commit, has_commit=True)


def _of_report(report: Report, name: str) -> Publication:
    """Return the publication of a report, whose outputs count the applied changes."""
    applied = Counter(result.action.word for result in report.results if result.outcome is Outcome.APPLIED)
    is_closed = any(diagnostic.code == "gate" for diagnostic in report.diagnostics)
    return Publication(
        partial(report_markdown, report),
        _outputs(applied, report.totals.applied > 0, is_closed, report.plan or "", name),
        report.circumstances.commit,
        # Else the project may have been unreadable, with its commit.
        has_commit=report.status is not RunStatus.REFUSED,
    )


def _outputs(counts: Mapping[str, int], changes: bool, is_closed: bool, plan_id: str, name: str) -> Outputs:
    if not PLAN_ID.fullmatch(plan_id):
        raise _unfit(f"{name} is damaged: its plan id is malformed")
    create, update, *removals = (counts.get(word, 0) for word in COUNTED)
    return {
        "has_changes": str(changes).lower(),
        "create": str(create),
        "update": str(update),
        "remove": str(sum(removals)),
        "gate": str(is_closed).lower(),
        "plan_id": plan_id,
    }


# --- outputs, which CI passes to later steps and jobs


def write_dotenv(outputs: Outputs, path: Path) -> None:
    """Write a file of `name=value` lines, from which GitLab reads variables for later jobs."""
    try:
        write_whole(path, [_lines(outputs).encode()])
    except OSError as error:
        raise _unwritable(path, "the outputs", error) from None


def append_outputs(outputs: Outputs, path: Path) -> None:
    """Append the outputs to the file of a step's outputs, which other programs may write, too."""
    append(path, _lines(outputs), "the outputs")


def append(path: Path, text: str, purpose: str) -> None:
    """Append text to a file that CI reads. Raise `SyncengineError` when that fails."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise _unwritable(path, purpose, error) from None


def _lines(outputs: Outputs) -> str:
    assert all(SAFE.fullmatch(value) for value in outputs.values())
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def _unwritable(path: Path, purpose: str, error: OSError) -> SyncengineError:
    return SyncengineError(f"{path}: {purpose} cannot be written: {error.strerror}", code="report-file")
