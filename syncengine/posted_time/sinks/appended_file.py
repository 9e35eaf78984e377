"""Append a group to a file as one line, exactly once. A form says what a line is: a JSON object, or a record of CSV.

The place of each line is noted in the inbox before the line is written: after a crash the line is either complete in
that place, or a torn beginning is cut off. A line is on the disk before it is reported as written.

Two groups may render to the same line. If one was noted but not written before a crash, the other may have been written
to the same place since, so a line belongs to a group only while no other group has the same note.
"""

from __future__ import annotations

import asyncio
import csv
import errno
import fcntl
import io
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from syncengine.content import sha256_of
from syncengine.document.json_text import InvalidJson, decode_json, encode_json
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.pace import Turns, to_its_end
from syncengine.posted_time.sinks.contract import (
    NO_TEXT,
    Answer,
    Failed,
    Lacks,
    Notes,
    Recalled,
    RenderedGroup,
    Took,
    Words,
    document,
    reference,
    undeliverable,
)
from syncengine.posted_time.templates import Json, Variables, fields_of, plain
from syncengine.state.inbox_model import DeliveryKey

Result = TypeVar("Result")

_PERMISSIONS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_OPENED = _PERMISSIONS | {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EWOULDBLOCK, errno.ESTALE}
"""Errors of opening or locking a file. After any other error, a file that can be opened proves nothing."""
PATIENCE, BREATH = 10.0, 0.005
"""How long to wait for a file that another process has locked, and how long between two attempts, in seconds."""
LOCKED = "another program keeps the file locked"
_TAIL = 1 << 14
"""How many bytes are read first to find the last line, then twice as many each time: most lines are far shorter, and to
read a megabyte before each of them took a tenth of the processor time of a group."""

END = b"\r\n"
"""The end of a CSV record (RFC 4180). No value has it, as line breaks in values are line feeds alone: so the end of the
last whole record is found from the end of the file, whatever quotes and line breaks the values have.
"""

FORMULA = ("=", "+", "-", "@")
"""The first characters, after blanks, of a text that a spreadsheet would run as a formula."""

LONGEST_HEADER = 1 << 16
"""The most bytes that are read for the header of a file that another program may have written."""


class AnotherForm(OSError):
    """Raised when a file is not in the form of the sink, so that nothing may be appended. The message has the cure."""


def write(file: int, content: bytes) -> None:
    """Write all of the content: one call may write a part."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def mend_end(file: int, end: bytes, whole: Callable[[bytes], bytes]) -> None:
    """Make a file end in a whole line, of which each ends with `end`: complete a missing end, or cut off a torn line.

    `whole` gets what follows the last `end`, and returns what of it is whole, with an end that it lacks.
    """
    size = os.fstat(file).st_size
    start, tail = size, b""
    while start > 0 and end not in tail:
        start = max(0, start - max(_TAIL, size - start))
        tail = os.pread(file, size - start, start)
    last = tail.rpartition(end)[2]
    if (kept := whole(last) if last else b"").startswith(last):
        write(file, kept[len(last) :])
    else:
        os.ftruncate(file, size - len(last) + len(kept))


# --- the forms of lines


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines that are one JSON object each: the `body`, or the whole group, with its tag if `each_tag` has a line."""

    body: Json | None
    each_tag: bool = False

    def render(self, variables: Variables, name: str) -> bytes:
        if self.body is not None:
            whole = self.body.value(variables)
        else:
            whole = {
                **fields_of(variables["group"]),
                **({"tag": variables["tag"]} if self.each_tag else {}),
                "narrative": variables["narrative"],
                "seconds": variables["duration"].seconds,
            }
        return document(whole, f"the line of {name}") + b"\n"

    def shown(self, content: bytes) -> Any:
        return {"json": decode_json(content)}

    def mend(self, file: int) -> None:
        """Complete the end of a last line that is whole, or cut off a torn one."""

        def whole(last: bytes) -> bytes:
            try:
                # `12` may be the beginning of `123`: if the number was whole, its note brings it back
                is_torn = type(decode_json(last)) in (int, float)
            except InvalidJson:
                is_torn = True
                if not _BEGUN.fullmatch(last):  # nothing is cut off a file that is not ours
                    raise AnotherForm(
                        errno.EINVAL,
                        "the last line of the file has no end and is not JSON: move the file away, or end that line",
                    ) from None
            return b"" if is_torn else last + b"\n"

        mend_end(file, b"\n", whole)


@dataclass(frozen=True, slots=True)
class CsvRecords:
    """Records with these columns below a header, whose values `values` renders."""

    columns: Sequence[str]
    values: Json

    def render(self, variables: Variables, name: str) -> bytes:
        found = self.values.value(variables)
        try:
            return record(found[column] for column in self.columns).encode()
        except UnicodeEncodeError:
            raise undeliverable(NO_TEXT, f"the record of {name}") from None

    def shown(self, content: bytes) -> Any:
        (values,) = csv.reader(io.StringIO(content.decode(), newline=""))
        return {"columns": dict(zip(self.columns, values, strict=True))}

    def mend(self, file: int) -> None:
        """Cut off a torn record, and give an empty file its header. Records that another program wrote stay."""
        header, start = record(self.columns).encode(), os.pread(file, LONGEST_HEADER, 0)
        # First of all: nothing is cut off a file that is not ours.
        if not header.startswith(start) and not start.startswith(header):
            self._check(start)
        mend_end(file, END, _whole_records)
        if os.fstat(file).st_size == 0:
            write(file, header)

    def check(self, path: Path) -> None:
        """Raise `AnotherForm` if there is a file with another header. A file that cannot be read is left to `mend`."""
        try:
            with path.open("rb") as file:
                start = file.read(LONGEST_HEADER)
        except OSError:
            return
        if start and not record(self.columns).encode().startswith(start):  # or its header is torn
            self._check(start)

    def _check(self, start: bytes) -> None:
        # Some spreadsheets write the mark of UTF-8 at the beginning of a file.
        text = start.decode(errors="replace").removeprefix("\ufeff")
        found = next(csv.reader(io.StringIO(text, newline="")), [])
        if found != list(self.columns):
            raise AnotherForm(
                errno.EINVAL,
                f"the header of the file is `{','.join(found)[:200]}`, but `columns` says"
                f" `{','.join(self.columns)}`: move the file away, or set `columns` to its header",
            )


Form = JsonLines | CsvRecords

_BEGUN = re.compile(rb'[{["\0].*|[-+.\de]+|tr?u?|fa?l?s?|nu?l?', re.DOTALL | re.IGNORECASE)
"""The beginnings of JSON, and the zeros that a disk may have after a power failure."""


def _whole_records(last: bytes) -> bytes:
    """Return what is whole of the bytes after the last CR LF: records that another program ended with LF or CR.

    What has no end at all counts as torn, since `12` may be the beginning of `123`: if it was whole, its note brings it
    back.
    """
    if last.endswith(b"\r"):
        return last + b"\n"  # the end of ours, torn in the middle; to a record of another program it is the same
    kept, is_begin, is_quoted, is_open = 0, True, False, False
    for found in re.finditer(rb'[",\r\n]|[^",\r\n]+', last):
        piece = found[0]
        if piece == b'"':
            # It opens a value only where one begins, or again after its end (`""`): elsewhere it is an inch.
            is_quoted |= is_begin
            is_open = is_quoted and not is_open
        elif piece in b",\r\n" and not is_open:
            is_quoted = False
            kept = kept if piece == b"," else found.end()
        is_begin = piece in b",\r\n" and not is_open
    return last[:kept]


def record(values: Iterable[Any]) -> str:
    """Return one CSV record, with its end. Raise `UnicodeEncodeError` for text that UTF-8 cannot hold.

    People write texts, and other people open the table in a spreadsheet: a text that would run there as a formula gets
    an apostrophe in front, which spreadsheets take as the sign of a text. Numbers stay as they are.
    """

    def cell(value: Any) -> Any:
        match value:
            case bool() | list() | dict():
                return encode_json(value).decode()
            case str():
                text = value.replace("\r\n", "\n").replace("\r", "\n")
                return f"'{text}" if text.lstrip().startswith(FORMULA) else text
            case _:
                return value

    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=END.decode()).writerow([cell(plain(value)) for value in values])
    return text.getvalue()


# --- the sink


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The place of a line in the file: its first byte, its length in bytes, and the hash of its content."""

    offset: int
    length: int
    hash: str

    def has_line(self, file: int) -> bool:
        return self.offset >= 0 and sha256_of(os.pread(file, self.length, self.offset)) == self.hash


@dataclass(eq=False, repr=False)
class AppendedFile:
    """A sink that appends one line per group to a file. It fails if the file is locked for `patience` seconds."""

    name: str
    path: Path
    form: Form
    words: Words
    patience: float = PATIENCE
    asked_after: None = field(default=None, init=False)
    _turns: Turns = field(default_factory=lambda: Turns(1), init=False)

    def render(self, variables: Variables) -> bytes:
        return self.form.render(variables, self.name)

    def shown(self, content: bytes) -> Any:
        return {"path": str(self.path), **self.form.shown(content)}

    async def deliver(self, rendered: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        external_id = reference(self.words.external_id, rendered.variables)
        content, key = rendered.content, rendered.delivery

        def append(file: int) -> None:
            place: LinePlace | None = None
            if memo is None or not self._stands(file, key, memo, notes):
                place = LinePlace(os.fstat(file).st_size, len(content), sha256_of(content))
                notes.keep(key, encode_json(asdict(place)).decode())  # before the line: see above
                write(file, content)
            os.fsync(file)  # also for a line that stands: whoever wrote it may have died before its own
            is_kept = os.fstat(file).st_nlink > 0
            if place is not None and not place.has_line(file):
                # Still ours is a line at the end of a file that was cut before it was written.
                is_kept &= replace(place, offset=os.fstat(file).st_size - len(content)).has_line(file)
            if not is_kept:
                raise OSError(errno.ESTALE, "the file was removed or cut while it was written")

        try:
            await self._in_turn(append)
        except OSError as error:
            return replace(self._failed(error), is_sure=False, has_answered=error.errno not in _NOT_OPENED)
        return Took(external_id)

    def receiver(self) -> str:
        return self.name

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes, variables: Variables | None) -> Recalled:
        if memo is None:
            return Lacks()

        def look(file: int) -> Recalled:
            if self._stands(file, key, memo, notes):
                return Took()
            notes.keep(key, None)  # another line may get its place
            return Lacks()

        try:
            return await self._in_turn(look)
        except OSError as error:
            return self._failed(error)

    async def probe(self) -> SinkTrouble | None:
        try:
            await self._in_turn(lambda file: None)
        except OSError as error:
            failed = self._failed(error)
            return SinkTrouble(self.name, failed.kind, failed.message, failed.detail)
        return None

    async def close(self) -> None:
        """Do nothing: no file is open between two lines."""

    def _failed(self, error: OSError) -> Failed:
        kind = TroubleKind.PERMISSIONS if error.errno in _PERMISSIONS else TroubleKind.UNREACHABLE
        trouble = "does not permit us to write" if kind is TroubleKind.PERMISSIONS else "cannot be written"
        detail = LOCKED if error.errno == errno.EWOULDBLOCK else error.strerror
        return Failed(kind, f"{self.name} {trouble}.", detail=detail)

    def _stands(self, file: int, key: DeliveryKey, memo: str, notes: Notes) -> bool:
        """Return whether a line is in its place. A place noted for several lines belongs to the last of them."""
        return LinePlace(**decode_json(memo)).has_line(file) and not {*notes.with_note(self.name, memo)} - {key}

    async def _in_turn(self, work: Callable[[int], Result]) -> Result:
        """Return the result of `work` on the open file, which ends in a whole line and is locked for us.

        All of it happens in one thread, and goes on when the caller is cancelled: the next attempt must not come
        between a note and its line.
        """

        def opened() -> Result:
            try:
                file = _locked(self.path, self.form, self.patience)
            except BlockingIOError:
                self._turns.give_up()
                raise
            try:
                return work(file)
            finally:
                os.close(file)

        async with self._turns.one(BlockingIOError(errno.EWOULDBLOCK, LOCKED)):
            return await to_its_end(asyncio.to_thread(opened))


def _locked(path: Path, form: Form, patience: float) -> int:
    """Open the file (and create it if missing) and lock it. Raise EWOULDBLOCK when it stays locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            until = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise
                    time.sleep(BREATH)
            # Whoever held it may have replaced it, as a rotation of logs does.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file)):
                form.mend(file)
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
