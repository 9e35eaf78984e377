"""recorded rows ↔ JSON lines that another state can import: a header, then a line for each row; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.resource import Body, Key, Recorded, Row, Source, Status
from syncengine.state.codec import frozen
from syncengine.state.undone import UndoneChange

FORMAT = "syncengine.state-export/v1"


class Head(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The first line: whose state it was, and what undone runs had made."""

    format: str = ""
    lineage: str | None = None
    base_url: str | None = None
    team: str | None = None
    undone: tuple[tuple[str, str, str, str], ...] = ()


class _Place(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    file: str
    line: int
    data: Row | None = None


class _Line(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A recorded resource."""

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


class Exported(NamedTuple):
    head: Head
    rows: list[Recorded]

    @property
    def undone(self) -> list[UndoneChange]:
        return [UndoneChange(Key.parse(address), *of_run) for address, *of_run in self.head.undone]


def undone_in(changes: Iterable[UndoneChange]) -> tuple[tuple[str, str, str, str], ...]:
    """What undone runs had made, as a head has it."""
    return tuple((str(each.key), each.made, each.run, each.undone_by) for each in changes)


_encode = msgspec.json.Encoder().encode
_HEAD, _LINE = msgspec.json.Decoder(Head), msgspec.json.Decoder(_Line)


def lines_of(head: Head, rows: Iterable[Recorded]) -> Iterator[str]:
    """The lines, each with its line feed."""
    yield _encode(msgspec.structs.replace(head, format=FORMAT)).decode() + "\n"
    for row in rows:
        yield _encode(_line(row)).decode() + "\n"


def read(data: bytes, file: str) -> Exported:
    """Read the lines of `lines_of`. Problems with every line that is not one of them; nothing is taken in halves."""
    problems: list[Diagnostic] = []
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    head = _head(lines[0][1] if lines else b"", file)
    rows: dict[Key, Recorded] = {}
    for number, line in lines[1:]:
        try:
            row = _row(_LINE.decode(line))
        except (msgspec.MsgspecError, ValueError) as error:
            problems.append(_finding(file, number, "bad-row", f"this is not a recorded resource: {error}"))
            continue
        if rows.setdefault(row.key, row) is not row:
            problems.append(_finding(file, number, "duplicate-resource", f"{row.key} appears twice in this file"))
    if problems:
        raise Problems(problems)
    return Exported(head, list(rows.values()))


def _head(line: bytes, file: str) -> Head:
    try:
        head = _HEAD.decode(line)
        all(Key.parse(address) for address, *_ in head.undone)
    except (msgspec.MsgspecError, ValueError):
        head = Head()
    if head.format != FORMAT:
        message = f'this is not what `state export` writes: its first line says "format": "{FORMAT}"'
        raise Problems([_finding(file, 1, "not-an-export", message)])
    return head


def _finding(file: str, line: int, code: str, message: str) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=code, message=message, file=file, line=line, column=1)


def _line(row: Recorded) -> _Line:
    body, source = row.body, row.source
    return _Line(
        address=str(row.key),
        status=row.status,
        doubtful=row.doubtful,
        confirmed=row.confirmed,
        fields=dict(body.fields),
        keywords=body.keywords,
        metadata=dict(body.metadata),
        server_id=row.server_id,
        source=_Place(*source) if source else None,
        protect=row.protect,
        former_categories=row.former_categories,
        run=row.run,
        plan=row.plan,
    )


def _row(line: _Line) -> Recorded:
    """A row of an export, doubtful, since nobody knows its fate since then (docs/planning.md 7)."""
    source = Source(line.source.file, line.source.line, line.source.data) if line.source else None
    return Recorded(
        Key.parse(line.address),
        Body({name: frozen(value) for name, value in line.fields.items()}, line.keywords, line.metadata),
        line.status,
        line.doubtful or line.status is not Status.DELETED,
        line.confirmed,
        line.server_id,
        source,
        line.protect,
        line.former_categories,
        line.run,
        line.plan,
    )
