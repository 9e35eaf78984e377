"""A state ↔ its export as JSON lines: a header with their number, then one for each row, refusal, quarantine; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.json_text import InvalidJson, UnfitJson, decode_json, encode_json
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.resource import Key, Recorded, Status
from syncengine.state.records import Facts, QuarantineRecord, Refusal, UndoneChange

FORMAT = "syncengine.state-export/v2"

CommitId = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]


class Head(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The first line of an export: lineage, service, team, last applied commit and undone changes of the state.

    `lines` is the number of lines that follow.
    """

    format: str = ""
    lines: int = -1
    lineage: str | None = None
    base_url: str | None = None
    team: str | None = None
    commit: CommitId | None = None
    ancestors: tuple[CommitId, ...] = ()
    undone: tuple[UndoneChange, ...] = ()


class Line(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A line of an export: a recorded resource, its refusals, or its quarantine."""

    row: Recorded | None = None
    refused: Refusal | None = None
    quarantine: QuarantineRecord | None = None


class Exported(NamedTuple):
    head: Head
    rows: Sequence[Recorded]
    refusals: Sequence[Refusal]
    quarantine: Sequence[QuarantineRecord]


def lines_of(
    facts: Facts,
    undone: Iterable[UndoneChange],
    rows: Iterable[Recorded],
    count: int,
    refusals: Iterable[Refusal],
    quarantine: Iterable[QuarantineRecord],
) -> Iterator[bytes]:
    """Yield the lines of an export, each ending with a line feed. There are `count` rows, which are read lazily.

    Raise `SyncengineError` at the end if there were not as many rows.
    """
    decisions = [*(Line(refused=each) for each in refusals), *(Line(quarantine=each) for each in quarantine)]
    head = Head(
        format=FORMAT,
        lines=count + len(decisions),
        lineage=facts.lineage,
        base_url=facts.base_url,
        team=facts.team,
        commit=facts.commit,
        ancestors=facts.ancestors,
        undone=tuple(undone),
    )
    yield encode_json(head) + b"\n"
    for row in rows:
        count -= 1
        yield encode_json(Line(row=row)) + b"\n"
    if count:
        raise SyncengineError("the state changed while it was exported: repeat the command", code="state-changed")
    for line in decisions:
        yield encode_json(line) + b"\n"


def read(data: bytes, file: str) -> Exported:
    """Read an export written by `lines_of`. Raise `Problems` that list every invalid line."""
    problems: list[Diagnostic] = []
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    head = _head(lines[0][1] if lines else b"", file)
    found: dict[tuple[type, Key], Recorded | Refusal | QuarantineRecord] = {}
    for number, text in lines[1:]:
        try:
            line: Line = decode_json(text, Line)
            parts = [part for part in (line.row, line.refused, line.quarantine) if part is not None and part.key.name]
            why = "" if len(parts) == 1 else "the line is not one recorded resource, refusal or quarantine"
        except UnfitJson as error:
            why = f"the line is not a recorded resource: {error}"
        except InvalidJson:
            why = "the line is not JSON: it was cut, or edited by hand"
        if why:
            problems.append(_finding(file, number, "bad-row", why))
            continue
        part = parts[0]
        if found.setdefault((type(part), part.key), part) is not part:
            problems.append(_finding(file, number, "duplicate-resource", f"{part.key} appears twice in this file"))
    if not problems and head.lines != len(lines) - 1:
        message = (
            f"the export is not whole: its first line announces {head.lines:,} lines, but {len(lines) - 1:,} follow;"
            " copy the file again, or export the state again"
        )
        problems.append(_finding(file, lines[-1][0], "incomplete-export", message))
    if problems:
        raise Problems(problems)
    rows = [each for each in found.values() if isinstance(each, Recorded)]
    return Exported(
        head,
        # Nobody knows what has happened since the export (docs/planning.md 7).
        [replace(row, doubtful=row.doubtful or row.status is not Status.DELETED) for row in rows],
        [each for each in found.values() if isinstance(each, Refusal)],
        [each for each in found.values() if isinstance(each, QuarantineRecord)],
    )


def _head(line: bytes, file: str) -> Head:
    try:
        head: Head = decode_json(line, Head)
    except InvalidJson:
        head = Head()
    if head.format != FORMAT:
        message = f'the file was not written by `state export`: its first line has no "format": "{FORMAT}"'
        raise Problems([_finding(file, 1, "not-an-export", message)])
    return head


def _finding(file: str, line: int, code: str, message: str) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=code, message=message, file=file, line=line, column=1)
