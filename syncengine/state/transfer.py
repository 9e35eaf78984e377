"""Recorded rows ↔ an export as JSON lines: a header with their number, then one line per row; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from syncengine.document.json_paths import misfit
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.resource import Body, Key, Recorded, Row, Source, Status
from syncengine.state.codec import frozen
from syncengine.state.records import Facts, QuarantineRecord, Refusal, UndoneChange

FORMAT = "syncengine.state-export/v1"


CommitId = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$")]


class Head(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The first line of an export: lineage, service, team, last applied commit and undone changes of the state.

    `resources` is the number of lines that follow, which earlier versions did not write.
    """

    format: str = ""
    resources: int | None = None
    lineage: str | None = None
    base_url: str | None = None
    team: str | None = None
    commit: CommitId | None = None
    ancestors: tuple[CommitId, ...] = ()
    undone: tuple[tuple[str, str, str, str], ...] = ()


class _Place(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    file: str
    line: int
    data: Row | None = None


LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, in seconds since the epoch."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=LAST_SECOND)]


class _Refused(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The refusals of an exported resource, as in `Refusal`."""

    times: Annotated[int, msgspec.Meta(ge=1)]
    since: Seconds
    at: Seconds
    message: str
    content: str
    is_last: bool = field(default=True, name="last")


class _Quarantine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    reason: str
    at: Seconds
    content: str
    until: Seconds | None = None


class Line(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """One line of an export: a recorded resource."""

    address: str
    status: Status = Status.ACTIVE
    doubtful: bool = False
    confirmed: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    server_id: str | None = None
    source: _Place | None = None
    protect: bool = False
    former_categories: tuple[str, ...] = ()
    run: str | None = None
    plan: str | None = None
    refused: _Refused | None = None
    quarantine: _Quarantine | None = None


SAME = ("status", "doubtful", "confirmed", "server_id", "protect", "former_categories", "run", "plan")
"""The members of a line that are those of a `Recorded`."""


class SetAsideRows(NamedTuple):
    """The refusals and the quarantine of a state."""

    refusals: Mapping[Key, Refusal]
    quarantine: Sequence[QuarantineRecord]


class Exported(NamedTuple):
    head: Head
    rows: list[Recorded]
    aside: SetAsideRows

    @property
    def undone(self) -> list[UndoneChange]:
        return [UndoneChange(Key.parse(address), *of_run) for address, *of_run in self.head.undone]


def head_of(facts: Facts, undone: Iterable[UndoneChange], resources: int) -> Head:
    return Head(
        resources=resources,
        lineage=facts.lineage,
        base_url=facts.base_url,
        team=facts.team,
        commit=facts.commit,
        ancestors=facts.ancestors,
        undone=tuple((str(each.key), each.marks, each.run, each.undone_by) for each in undone),
    )


_encode = msgspec.json.Encoder().encode
_HEAD, _LINE = msgspec.json.Decoder(Head), msgspec.json.Decoder(Line)


def lines_of(head: Head, rows: Iterable[Recorded], aside: SetAsideRows) -> Iterator[str]:
    """Yield the lines of an export, each ending with a line feed.

    Raise `SyncengineError` at the end if there were not as many rows as the header says.
    """
    yield _encode(msgspec.structs.replace(head, format=FORMAT)).decode() + "\n"
    quarantine = {each.key: each for each in aside.quarantine}
    count = 0
    for row in rows:
        count += 1
        place, refusal, record = row.source, aside.refusals.get(row.key), quarantine.get(row.key)
        line = Line(
            address=str(row.key),
            fields=dict(row.body.fields),
            keywords=row.body.keywords,
            metadata=dict(row.body.metadata),
            source=_Place(*place) if place else None,
            refused=msgspec.convert(refusal, _Refused | None, from_attributes=True),
            quarantine=msgspec.convert(record, _Quarantine | None, from_attributes=True),
            **{name: getattr(row, name) for name in SAME},
        )
        yield _encode(line).decode() + "\n"
    if count != head.resources:
        raise SyncengineError("the state changed while it was exported: repeat the command", code="state-changed")


def read(data: bytes, file: str) -> Exported:
    """Read an export written by `lines_of`. Raise `Problems` that list every invalid line."""
    problems: list[Diagnostic] = []
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    head = _head(lines[0][1] if lines else b"", file)
    rows: dict[Key, Recorded] = {}
    refusals: dict[Key, Refusal] = {}
    quarantine: list[QuarantineRecord] = []
    for number, line in lines[1:]:
        try:
            parts = _LINE.decode(line)
            same = {name: getattr(parts, name) for name in SAME}
            row = Recorded(
                Key.parse(parts.address),
                Body({name: frozen(value) for name, value in parts.fields.items()}, parts.keywords, parts.metadata),
                source=Source(parts.source.file, parts.source.line, parts.source.data) if parts.source else None,
                # Nobody knows what has happened since the export (docs/planning.md 7).
                **same | {"doubtful": parts.doubtful or parts.status is not Status.DELETED},
            )
        except ValueError as error:  # also those of msgspec, and of text that is not UTF-8
            why = f"the line is not a recorded resource: {error}"
            if isinstance(error, msgspec.ValidationError):
                why = f"the line is not a recorded resource: {misfit(error)}"
            elif isinstance(error, UnicodeDecodeError | msgspec.DecodeError):
                why = "the line is not JSON: it was cut, or edited by hand"
            problems.append(_finding(file, number, "bad-row", why))
            continue
        if rows.setdefault(row.key, row) is not row:
            problems.append(_finding(file, number, "duplicate-resource", f"{row.key} appears twice in this file"))
        if parts.refused is not None:
            refusals[row.key] = Refusal(key=row.key, **asdict(parts.refused))
        if parts.quarantine is not None:
            quarantine.append(QuarantineRecord(key=row.key, **asdict(parts.quarantine)))
    if not problems and head.resources not in (None, len(lines) - 1):
        message = (
            f"the export is not whole: its first line announces {head.resources:,} resources, but {len(lines) - 1:,}"
            " lines follow; copy the file again, or export the state again"
        )
        problems.append(_finding(file, lines[-1][0], "incomplete-export", message))
    if problems:
        raise Problems(problems)
    return Exported(head, list(rows.values()), SetAsideRows(refusals, quarantine))


def _head(line: bytes, file: str) -> Head:
    try:
        head = _HEAD.decode(line)
        all(Key.parse(address) for address, *_ in head.undone)
    except (msgspec.MsgspecError, ValueError):
        head = Head()
    if head.format != FORMAT:
        message = f'the file was not written by `state export`: its first line has no "format": "{FORMAT}"'
        raise Problems([_finding(file, 1, "not-an-export", message)])
    return head


def _finding(file: str, line: int, code: str, message: str) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=code, message=message, file=file, line=line, column=1)
