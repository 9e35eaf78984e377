"""Append a group to a file as one line, exactly once. A form says what a line is: see `line_forms`.

The place of each line is noted in the inbox before the line is written: after a crash the line is either complete in
that place, or a torn beginning is cut off. A line is on the disk before it is reported as written.

Two groups may render to the same line. If one was noted but not written before a crash, the other may have been written
to the same place since, so a line belongs to a group only while no other group has the same note.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from syncengine.content import sha256_of
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.pace import to_its_end
from syncengine.posted_time.sinks.contract import Answer, Failed, Notes, RenderedGroup, Took, Words, reference
from syncengine.posted_time.templates import Variables
from syncengine.state.inbox_model import DeliveryKey

Result = TypeVar("Result")

_PERMISSIONS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_OPENED = _PERMISSIONS | {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EWOULDBLOCK, errno.ESTALE}
"""Errors of opening or locking a file. After any other error, a file that can be opened proves nothing."""
PATIENCE, BREATH = 10.0, 0.005
"""How long to wait for a file that another process has locked, and how long between two attempts, in seconds."""
_TAIL = 1 << 20
"""How many bytes are read at a time to find the last line: most lines are far shorter, and few are longer."""


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The place of a line in the file: its first byte, its length in bytes, and the hash of its content."""

    offset: int
    length: int
    hash: str

    def has_line(self, file: int) -> bool:
        return self.offset >= 0 and sha256_of(os.pread(file, self.length, self.offset)) == self.hash


class AnotherForm(OSError):
    """Raised when a file is not in the form of the sink, so that nothing may be appended. The message has the cure."""


class LineForm(Protocol):
    """What the lines of a file are."""

    def render(self, variables: Variables, name: str) -> bytes:
        """Return the line, with its end. `name` is the sink's."""

    def shown(self, content: bytes) -> Any:
        """Return the line as plain values, to show to people."""

    def mend(self, file: int) -> None:
        """Make the file, of any content, begin as it must and end in a whole line. Raise `AnotherForm` if it cannot."""


@dataclass(eq=False, repr=False)
class AppendedFile:
    """A sink that appends one line per group to a file. It fails if the file is locked for `patience` seconds."""

    name: str
    path: Path
    form: LineForm
    words: Words
    patience: float = PATIENCE
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

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
                notes.keep(key, orjson.dumps(asdict(place)).decode())  # before the line: see above
                write(file, content)
            os.fsync(file)  # also for a line that stands: whoever wrote it may have died before its own
            if os.fstat(file).st_nlink == 0 or (place is not None and not _is_kept(file, place)):
                raise OSError(errno.ESTALE, "the file was removed or cut while it was written")

        try:
            await self._in_turn(append)
        except OSError as error:
            return replace(self._failed(error), is_sure=False, has_answered=error.errno not in _NOT_OPENED)
        return Took(external_id)

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes) -> bool | Failed | None:
        if memo is None:
            return False

        def look(file: int) -> bool:
            if self._stands(file, key, memo, notes):
                return True
            notes.keep(key, None)  # another line may get its place
            return False

        try:
            return await self._in_turn(look)
        except OSError as error:
            return self._failed(error)

    async def probe(self) -> SinkTrouble | None:
        try:
            await self._in_turn(lambda file: None)
        except OSError as error:
            failed = self._failed(error)
            return SinkTrouble(self.name, failed.kind, failed.message)
        return None

    async def close(self) -> None:
        """Do nothing: no file is open between two lines."""

    def _failed(self, error: OSError) -> Failed:
        kind = TroubleKind.PERMISSIONS if error.errno in _PERMISSIONS else TroubleKind.UNREACHABLE
        trouble = "does not permit us to write" if kind is TroubleKind.PERMISSIONS else "cannot be written"
        detail = error.strerror if isinstance(error, AnotherForm) else None
        return Failed(kind, f"{self.name} {trouble}.", detail=detail)

    def _stands(self, file: int, key: DeliveryKey, memo: str, notes: Notes) -> bool:
        """Return whether a line is in its place. A place noted for several lines belongs to the last of them."""
        return LinePlace(**orjson.loads(memo)).has_line(file) and not {*notes.with_note(self.name, memo)} - {key}

    async def _in_turn(self, work: Callable[[int], Result]) -> Result:
        """Return the result of `work` on the open file, which ends in a whole line and is locked for us.

        All of it happens in one thread, and goes on when the caller is cancelled: the next attempt must not come
        between a note and its line.
        """

        def opened() -> Result:
            file = _locked(self.path, self.form, self.patience)
            try:
                return work(file)
            finally:
                os.close(file)

        async with self._turn:  # here, so that waiting lines take no threads
            return await to_its_end(asyncio.to_thread(opened))


def _is_kept(file: int, place: LinePlace) -> bool:
    """Return whether a line that was just written is in its place, or at the end, if the file was cut before it."""
    return place.has_line(file) or replace(place, offset=os.fstat(file).st_size - place.length).has_line(file)


def _locked(path: Path, form: LineForm, patience: float) -> int:
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
        start = max(0, start - _TAIL)
        tail = os.pread(file, size - start, start)
    last = tail.rpartition(end)[2]
    if (kept := whole(last) if last else b"").startswith(last):
        write(file, kept[len(last) :])
    else:
        os.ftruncate(file, size - len(last) + len(kept))
