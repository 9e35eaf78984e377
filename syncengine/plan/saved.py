"""Save plans to files and load them. Applying a saved plan needs no manifest (docs/planning.md 6).

The file has the machine format of docs/formats.md with two more members: `execution` has what the plan was made of and
what it shows, in parts on a line each, and `digest` covers the whole file before it. A digest proves no author, so the
plan is made again from its inputs when it is applied (`replan`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from syncengine.document.digest import GrowingSha256, sha256_of
from syncengine.document.gc_pause import no_collection
from syncengine.errors import SyncengineError
from syncengine.plan.calls import Call
from syncengine.plan.diff import Change
from syncengine.plan.model import Plan, Tree
from syncengine.plan.replan import inconsistent
from syncengine.project.atomic_write import write_whole
from syncengine.project.content import refuse_missing
from syncengine.resource import Key, Removed, Resource, Source

T = TypeVar("T")
FORMAT = "syncengine.plan/v1"
START = f'{{"format":"{FORMAT}",'.encode()
CHANGES, EXECUTION, ID = b',"changes":[\n', b'\n],"execution":[\n', b'\n],"id":'
"""Separators in the file: before the changes, before the parts to execute, and after the parts."""
DIGEST, END = b',"digest":"', b'"}\n'
WHOLE = re.compile(rb',"digest":"[0-9a-f]{64}"\}\s*$')
"""The end of a file that is not cut short."""
OBJECT = re.compile("(?:[0-9a-f]{40}|[0-9a-f]{64})?")
BLOCK = 1 << 20
"""The number of bytes that are searched at once."""
CHANGES_AT_ONCE = 200
"""The number of changes that are encoded together. A plan may have very many small ones."""
PART = 500
"""The largest number of changes, resources or digests on one line, so that reading needs little memory for a line."""
NO_CALL = Call("", "", ())
"""What a saved sweep has in place of its completion."""
TAIL = 200
"""The number of bytes at the end of a file that show whether it is whole."""
SEAL = 20
"""The number of characters of a plan's id that identify its content."""


class Shown(NamedTuple):
    """The functions that render a plan and each of its changes for readers of the file."""

    plan: Callable[[Plan], object]
    changes: Callable[[Plan], Callable[[Change], object]]


class Header(msgspec.Struct, frozen=True, tag_field="format", tag="syncengine.execution/v7"):
    """The first line of what is executed, with the plan but for its parts."""

    plan: Plan


class PlanPart(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A line with some of a plan's changes, each with the digest of the row that it is based on, or of its inputs.

    `prior` are the digests of other rows.
    """

    changes: tuple[tuple[Change, str | None], ...] = ()
    desired: tuple[Resource, ...] = ()
    removed: tuple[Removed, ...] = ()
    places: tuple[tuple[Key, Source], ...] = ()
    prior: tuple[tuple[Key, str], ...] = ()


class Printed(msgspec.Struct):
    """The format that a document names, and the parts to execute if it has any."""

    format: str = ""
    execution: msgspec.Raw = msgspec.Raw()


def save(plan: Plan, display: Shown, path: Path) -> Plan:
    """Write `plan` and its `display` to a file that only its owner can read (docs/planning.md 1.4).

    Return the plan as written, whose id ends in a digest of its content so that no other plan can pass for it.
    """
    file = _File(plan, display)
    try:
        write_whole(path, file.pieces(), mode=0o600)
    except OSError as error:
        raise SyncengineError(f"the plan cannot be written to {path}: {error.strerror}", code="plan-file") from None
    return replace(plan, basis=replace(plan.basis, id=file.id, settles=None), gate=plan.gate.bare())


class _File:
    """The content of a plan's file. `id` is set once all `pieces` were consumed."""

    def __init__(self, plan: Plan, display: Shown) -> None:
        self._plan = replace(plan, basis=replace(plan.basis, id="", settles=None), gate=plan.gate.bare())
        self._name = plan.id
        self._shown = display
        self.id = ""

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file in order, a piece at a time."""
        total = GrowingSha256()
        for piece in self._content():
            total.add(piece)
            yield piece
        self.id = f"{self._name}-{total.text()[:SEAL]}"
        id_line = ID + msgspec.json.encode(self.id)
        total.add(id_line)
        yield from (id_line, DIGEST, total.text().encode(), END)

    def _content(self) -> Iterator[bytes]:
        document = msgspec.to_builtins(self._shown.plan(replace(self._plan, changes=())))
        del document["id"], document["changes"]
        yield msgspec.json.encode(document)[:-1]
        yield CHANGES
        yield from _lines(map(self._shown.changes(self._plan), self._plan.changes), CHANGES_AT_ONCE)
        yield EXECUTION
        yield from _lines(chain((Header(_head_of(self._plan)),), _parts_of(self._plan)))


def _head_of(plan: Plan) -> Plan:
    """Return the plan without its parts and without calls, which follow from its inputs (`replan`)."""
    sweep = plan.sweep and replace(plan.sweep, uploads=(), complete=NO_CALL, needs=())
    inputs = replace(plan.inputs, desired=(), removed=(), places=())
    return replace(plan, changes=(), stages=(), records=(), wholes={}, prior={}, sweep=sweep, inputs=inputs)


def _parts_of(plan: Plan) -> Iterator[PlanPart]:
    inputs, keys = plan.inputs, {change.key for change in plan.changes}
    yield from (PlanPart(changes=some) for some in _some((each, plan.prior.get(each.key)) for each in plan.changes))
    yield from (PlanPart(desired=some) for some in _some(inputs.desired))
    yield from (PlanPart(removed=some) for some in _some(inputs.removed))
    yield from (PlanPart(places=some) for some in _some(inputs.places))
    yield from (PlanPart(prior=some) for some in _some(each for each in plan.prior.items() if each[0] not in keys))


def _joined(head: Plan, parts: Iterable[PlanPart]) -> Plan:
    changes: list[Change] = []
    prior: dict[Key, str] = {}
    desired, removed, places = list[Resource](), list[Removed](), list[tuple[Key, Source]]()
    for part in parts:
        changes += (change for change, _ in part.changes)
        prior |= {change.key: digest for change, digest in part.changes if digest is not None}
        prior |= dict(part.prior)
        desired += part.desired
        removed += part.removed
        places += part.places
    inputs = head.inputs and replace(head.inputs, desired=tuple(desired), removed=tuple(removed), places=tuple(places))
    return replace(head, changes=tuple(changes), prior=prior, inputs=inputs)


def _some(values: Iterable[T]) -> Iterator[tuple[T, ...]]:
    rest = iter(values)
    while some := tuple(islice(rest, PART)):
        yield some


def _lines(values: Iterable[object], at_once: int = 1) -> Iterator[bytes]:
    """Yield the values as JSON, each on a line, `at_once` in a piece. JSON has no line ends within a value."""
    encode, rest, before = msgspec.json.Encoder().encode_lines, iter(values), b""
    while some := list(islice(rest, at_once)):
        yield before + encode(some)[:-1].replace(b"\n", b",\n")
        before = b",\n"


def is_saved_plan(path: Path) -> bool:
    """Return whether a file looks like a syncengine document by its `format` key. `load` accepts only saved plans."""
    try:
        if not path.is_file():  # reading a pipe would block
            return False
        with path.open("rb") as file:
            start = file.read(200).lstrip()
    except OSError:
        return False
    return start.startswith(b"{") and b'"format"' in start and b'"syncengine.' in start


def load(path: Path, display: Shown) -> Plan:
    """Read a saved plan. Raise `SyncengineError` (`plan-file`) for any file that `save` did not write.

    Raise `StalePlan` (`plan-inconsistent`) when the file shows other changes than it would apply.
    """
    with no_collection(), _opened(path) as file:
        start = _start_of_execution(file)
        if start is None:
            raise _none(path)
        try:
            plan = _as_written(path, file, start, display)
        except SyncengineError:
            if not _is_whole(file):
                raise _incomplete(path) from None
            if _has_its_digest(file):
                raise
            raise _changed(path) from None
    tree = plan.basis.tree
    if not all(OBJECT.fullmatch(id) for id in (plan.basis.commit or "", tree.id if isinstance(tree, Tree) else "")):
        raise inconsistent(f"{path} names an invalid commit or tree")
    return plan


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    refuse_missing(path)
    try:
        if not path.is_file():
            raise _unfit(f"the plan {path} cannot be read: it is not a file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _unfit(f"the plan {path} cannot be read: {error.strerror}") from None


def _start_of_execution(file: BufferedReader) -> int | None:
    """Return the position of the parts to execute, or `None` for a file without such parts."""
    before, position = b"\n", 0
    while block := file.read(BLOCK):
        if (found := (before + block).find(EXECUTION)) >= 0:
            return position - len(before) + found + len(EXECUTION)
        position += len(block)
        before = block[-len(EXECUTION) :]
    return None


def _is_whole(file: BufferedReader) -> bool:
    """Return whether a file has the end of a saved plan."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    return WHOLE.search(file.read()) is not None


def _has_its_digest(file: BufferedReader) -> bool:
    """Return whether the digest at the end of the file matches its content."""
    file.seek(0)
    total, last = GrowingSha256(), b""
    for line in file:
        total.add(last)
        last = line
    content, _, digest = last.removesuffix(END).rpartition(DIGEST)
    total.add(content)
    return digest.decode("ascii", "replace") == total.text()


def is_altered(content: bytes) -> bool:
    """Return whether a saved plan's content was altered, so that its digest no longer matches."""
    return EXECUTION in content and not _is_sealed(content.rstrip())


def _is_sealed(whole: bytes) -> bool:
    """Return whether the digest at the end of a file matches its content."""
    content, _, digest = whole.removesuffix(END.rstrip()).rpartition(DIGEST)
    return digest.decode("ascii", "replace") == sha256_of(content)


def _none(path: Path) -> SyncengineError:
    """Return the error for a file that `save` did not write."""
    whole = path.read_bytes().rstrip()
    if not whole:
        return _unfit(f"{path} is empty: the command that writes it may have been stopped early")
    try:
        printed = msgspec.json.decode(whole, type=Printed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if whole.startswith(START):
            return _incomplete(path)
        printed = Printed()
    if printed.format != FORMAT:
        return _unfit(f"{path} is not a saved plan")
    if bytes(printed.execution):
        return _changed(path)
    return _unfit(f"{path} was printed, not saved: use `plan --out FILE`")


def _as_written(path: Path, file: BufferedReader, start: int, display: Shown) -> Plan:
    """Return the plan of a file whose bytes saving it again gives, so that its display, id and digest are genuine.

    Raise `SyncengineError` for any other file.
    """
    try:
        plan = _executed(file, start)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _of_another_version(path) from None
    again = _File(replace(plan, basis=replace(plan.basis, id=plan.id.rpartition("-")[0])), display)
    file.seek(0)
    if not all(file.read(len(piece)) == piece for piece in again.pieces()) or file.read():
        raise inconsistent(f"{path} shows other changes than it would apply")
    return plan


def _executed(file: BufferedReader, start: int) -> Plan:
    """Return the plan that the parts from `start` on make."""
    decoder, line = msgspec.json.Decoder(PlanPart), b""

    def parts() -> Iterator[PlanPart]:
        nonlocal line
        for line in file:
            if line.startswith(ID[1:]):
                return
            yield decoder.decode(line.removesuffix(b",\n"))

    file.seek(start)
    header = msgspec.json.decode(file.readline().removesuffix(b",\n"), type=Header)
    plan = _joined(header.plan, parts())
    id = msgspec.json.decode(line.removeprefix(ID[1:]).partition(DIGEST)[0], type=str)
    return replace(plan, basis=replace(plan.basis, id=id))


def _changed(path: Path) -> SyncengineError:
    return _unfit(f"{path} was changed after it was saved: plan again")


def _incomplete(path: Path) -> SyncengineError:
    return _unfit(f"the plan {path} is incomplete or was changed: plan again")


def _of_another_version(path: Path) -> SyncengineError:
    return _unfit(f"{path} was saved by another version of syncengine, or is not a saved plan: plan again")


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="plan-file")
