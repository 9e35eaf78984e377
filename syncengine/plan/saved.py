"""Save plans to files, load them, and plan them again: no manifest is needed for that (docs/planning.md 6).

The file has the machine format of docs/formats.md with two more members: `execution` has what the plan was made of and
what it shows, in parts on a line each, and `digest` covers the whole file before it. A digest proves no author, so the
file is input from outside: it holds no calls. They follow from its inputs and today's rows as they did when it was
made, and what it shows must come out again. Places and reasons explain and are not compared.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from syncengine.content import GrowingSha256, sha256_of
from syncengine.document.json_text import InvalidJson, decode_json
from syncengine.effects import Effect
from syncengine.errors import StalePlan, SyncengineError
from syncengine.plan.aim import Note, aim
from syncengine.plan.build import derived, reasserted
from syncengine.plan.calls import Call
from syncengine.plan.checks import objections
from syncengine.plan.diff import REMOVALS, Action, Change, Difference, is_same
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.project.files import refuse_missing, write_whole
from syncengine.resource import LET_GO, Body, Key, Kind, Recorded, Removed, Resource, Source, Status
from syncengine.state.records import UndoneChange

INCONSISTENT = "plan-inconsistent"
"""The code of the error about a plan that shows one thing and would do another."""

FOLLOWING = frozenset({"create-only", "ignored", "not-enabled"})
"""The kinds of notes that follow from the content sent. Other notes are about resources that the plan leaves alone."""


class Replanned(NamedTuple):
    """A saved plan that was planned again, and the differences behind its changes."""

    plan: Plan
    differences: tuple[Difference, ...]


def inconsistent(why: str) -> StalePlan:
    return StalePlan(f"the plan file contradicts itself or the state: {why}; plan again", code=INCONSISTENT)


def keys_of(plan: Plan) -> set[Key]:
    """Return the resources whose rows decide a saved plan, apart from members of categories and a sweep's types."""
    inputs = plan.inputs
    named = {Key(each.key.kind, name) for each in inputs.desired for name in each.previously}
    kept = {note.key for note in plan.notes if note.kind == "kept"}
    places = {key for key, _ in inputs.places}
    return {*plan.prior, *(each.key for each in inputs.desired), *named, *_leaving(plan), *kept, *places}


def _leaving(plan: Plan) -> set[Key]:
    return {change.key for change in plan.changes if change.action in REMOVALS}


def planned_again(
    plan: Plan, rows: Mapping[Key, Recorded], *, is_begun: bool, owns: bool, deletes_tags: bool
) -> Replanned:
    """Plan a saved plan again over the `rows` of `keys_of`, every member of the categories that it deletes or renames,
    and every activity type if it sweeps. Raise `StalePlan` (`plan-inconsistent`) when that is impossible.

    `owns` says whether a sweep of the state was approved before. Of a plan that was begun only the rest is planned.
    """
    rows = dict(sorted(rows.items()))  # a database gives them in any order
    inputs = plan.inputs
    desired = {each.key: replace(each, outside=False) for each in inputs.desired}  # that follows from the rows
    for key, each in desired.items():
        if len({*each.body.keywords}) < len(each.body.keywords):
            raise inconsistent(f"{key} has a keyword twice")
        if not each.sound or each.status is not Status.ACTIVE:
            raise inconsistent(f"{key} would be sent without being managed, which only an undo does")
    reasserts = plan.reasserts and not is_begun  # the run that began it has put its rows in doubt
    doubted = reasserted(rows, desired) if reasserts else rows
    lines = {line.key: line for line in inputs.removed}
    rules = dataclasses.replace(inputs.rules, deletes_tags=deletes_tags)
    target = aim(doubted, desired, lines, rules, Scope(), before=rows, may_leave=_leaving(plan))
    # What the plan says it leaves on the service, for reasons outside the plan, is recorded as released.
    kept = [note.key for note in plan.notes if note.kind == "kept" and note.key in rows]
    left = [rows[key] for key in kept if key not in target.desired and key not in target.leaving]
    target.released += [row for row in left if row.status is not Status.RELEASED]
    noted = {note.key for note in plan.notes}
    for row in target.staying if plan.sweep is not None else ():
        if row.status is Status.ACTIVE and row.key not in noted:
            raise inconsistent(f"{row.key} would no longer be managed, which the plan does not show")
    for problem in (*target.problems, *objections(target, doubted)):
        raise inconsistent(f"{problem.address}: {problem.message}" if problem.address else problem.message)
    basis = replace(plan.basis, swept_before=owns)
    again, delta = derived(target, doubted, rows, basis, reasserts=reasserts, sweeps=plan.sweep is not None)
    summary = replace(again.summary, unchanged=plan.summary.unchanged, kept=plan.summary.kept)
    # New places of resources that stay as they are, and that are recorded as managed today.
    moved = ((key, source, rows[key]) for key, source in inputs.places if key in rows and key not in again.prior)
    places = [Effect(key=k, source=s, protect=row.protect) for k, s, row in moved if row.status is Status.ACTIVE]
    result = replace(
        plan,
        summary=summary,
        reasserts=reasserts,
        sweep=again.sweep,
        changes=again.changes,
        stages=again.stages,
        records=(*again.records, *places),
        wholes=again.wholes,
    )
    if not is_begun:
        _refuse_other(plan, result, again.notes)
        if unproven := [key for key in again.prior if key not in plan.prior]:
            raise inconsistent(f"it does not record the row of {unproven[0]} that it was made from")
    return Replanned(result, delta.differences)


def _refuse_other(plan: Plan, again: Plan, notes: Iterable[Note]) -> None:
    """Refuse a plan whose inputs give something else than it shows."""
    shown, made = ({each.key: each for each in one.changes} for one in (plan, again))
    for key in {**shown, **made}:
        if not is_same(shown.get(key), made.get(key)):
            raise inconsistent(f"it shows a different change of {key} than it would make")
    if len(plan.changes) != len(again.changes) or plan.summary != again.summary:
        raise inconsistent("its summary does not match the changes and requests that it would make")
    codes = [sorted(each.sweep.known) if each.sweep else None for each in (plan, again)]
    if codes[0] != codes[1]:
        raise inconsistent("its sync session does not match its changes")
    following = [
        sorted((replace(note, source=None) for note in some if note.kind in FOLLOWING), key=repr)
        for some in (plan.notes, notes)
    ]
    if following[0] != following[1]:
        raise inconsistent("it hides a note about a field that the service does not accept")


def renamed_and_going(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the former names of the categories that a plan renames, and the names of those that it deletes."""
    categories = [each for each in plan.changes if each.key.kind is Kind.CATEGORY]
    renamed = [each.previously for each in categories if each.previously is not None]
    return renamed, [each.key.name for each in categories if each.action is Action.DELETE]


T = TypeVar("T")
FORMAT = "syncengine.plan/v1"
START = f'{{"format":"{FORMAT}",'.encode()
CHANGES, EXECUTION, ID = b',"changes":[\n', b'\n],"execution":[\n', b'\n],"id":'
"""Separators in the file: before the changes, before the parts to execute, and after the parts."""
DIGEST, END = b',"digest":"', b'"}\n'
OBJECT = re.compile("(?:[0-9a-f]{40}|[0-9a-f]{64})?")
BLOCK = 1 << 20
"""The number of bytes that are searched at once."""
CHANGES_AT_ONCE = 200
"""The number of changes that are encoded together. A plan may have very many small ones."""
PART = 500
"""The largest number of changes, resources or digests on one line, so that reading needs little memory for a line."""
NO_CALL = Call("", "", ())
"""What a saved sweep has in place of its completion."""
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
        plan, inputs = self._plan, self._plan.inputs
        document = msgspec.to_builtins(self._shown.plan(replace(plan, changes=())))
        del document["id"], document["changes"]
        yield msgspec.json.encode(document)[:-1]
        yield CHANGES
        yield from _lines(map(self._shown.changes(plan), plan.changes), CHANGES_AT_ONCE)
        yield EXECUTION
        # Without calls, which follow from the inputs (`planned_again`), and with its parts on lines of their own.
        sweep = plan.sweep and replace(plan.sweep, uploads=(), complete=NO_CALL, needs=())
        rest = replace(inputs, desired=(), removed=(), places=())
        bare = replace(plan, changes=(), stages=(), records=(), wholes={}, prior={}, sweep=sweep, inputs=rest)
        keys = {change.key for change in plan.changes}
        parts = chain(
            (PlanPart(changes=some) for some in _some((each, plan.prior.get(each.key)) for each in plan.changes)),
            (PlanPart(desired=some) for some in _some(inputs.desired)),
            (PlanPart(removed=some) for some in _some(inputs.removed)),
            (PlanPart(places=some) for some in _some(inputs.places)),
            (PlanPart(prior=some) for some in _some(each for each in plan.prior.items() if each[0] not in keys)),
        )
        yield from _lines(chain((Header(bare),), parts))


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
    refuse_missing(path)
    try:
        if not path.is_file():
            raise _unfit(f"the plan {path} cannot be read: it is not a file")
        with path.open("rb") as file:
            plan = _loaded(path, file, display)
    except OSError as error:
        raise _unfit(f"the plan {path} cannot be read: {error.strerror}") from None
    tree = plan.basis.tree
    if not all(OBJECT.fullmatch(id) for id in (plan.basis.commit or "", tree.id if tree else "")):
        raise inconsistent(f"{path} names an invalid commit or tree")
    return plan


def _loaded(path: Path, file: BufferedReader, display: Shown) -> Plan:
    """Return the plan of a file whose bytes saving it again gives, so that its display, id and digest are genuine."""
    before, position, start = b"\n", 0, -1
    while start < 0 and (block := file.read(BLOCK)):
        if (found := (before + block).find(EXECUTION)) >= 0:
            start = position - len(before) + found + len(EXECUTION)
        position += len(block)
        before = block[-len(EXECUTION) :]
    if start < 0:
        raise _none(path)
    try:
        try:
            plan = _executed(file, start)
        except (ValueError, RecursionError):
            raise _of_another_version(path) from None
        again = _File(replace(plan, basis=replace(plan.basis, id=plan.id.rpartition("-")[0])), display)
        file.seek(0)
        if not all(file.read(len(piece)) == piece for piece in again.pieces()) or file.read():
            raise inconsistent(f"{path} shows other changes than it would apply")
        return plan
    except SyncengineError:
        file.seek(0)
        content = file.read()
        if _is_altered(content) or not content.endswith(END):  # then whatever else is wrong with it is no news
            raise _changed(path) from None
        raise


def _is_altered(content: bytes) -> bool:
    """Return whether a saved plan was cut short or altered, so that the digest at its end does not match."""
    end = content.rfind(DIGEST)
    digest = content[end + len(DIGEST) :].rstrip().removesuffix(END.rstrip())
    return digest.decode("ascii", "replace") != sha256_of(memoryview(content)[:end])  # which may be very long


def bare_plan(content: bytes, name: str) -> Plan | None:
    """Return a saved plan but for its parts, such as its changes; `None` if the content was printed and not saved.

    Raise `SyncengineError` (`plan-file`) if it was altered, or saved by another version; `name` is the file's name.
    """
    if (start := content.find(EXECUTION)) < 0:
        return None
    if _is_altered(content):
        raise _changed(name)
    start += len(EXECUTION)
    header = content[start : content.find(b"\n", start)].removesuffix(b",")
    try:
        return msgspec.json.decode(header, type=Header).plan
    except (ValueError, RecursionError):
        raise _of_another_version(name) from None


def _none(path: Path) -> SyncengineError:
    """Return the error for a file that `save` did not write."""
    whole = path.read_bytes().rstrip()
    if not whole:
        return _unfit(f"{path} is empty: the command that writes it may have been stopped early")
    try:
        printed: Printed = decode_json(whole, Printed)
    except InvalidJson:
        if whole.startswith(START):
            return _changed(path)
        printed = Printed()
    if printed.format != FORMAT:
        return _unfit(f"{path} is not a saved plan")
    if bytes(printed.execution):
        return _changed(path)
    return _unfit(f"{path} was printed, not saved: use `plan --out FILE`")


def _executed(file: BufferedReader, start: int) -> Plan:
    """Return the plan that the parts from `start` on make."""
    file.seek(start)
    plan = msgspec.json.decode(file.readline().removesuffix(b",\n"), type=Header).plan
    decoder, line = msgspec.json.Decoder(PlanPart), b""
    changes, prior = list[Change](), dict[Key, str]()
    desired, removed, places = list[Resource](), list[Removed](), list[tuple[Key, Source]]()
    for line in file:
        if line.startswith(ID[1:]):
            break
        part = decoder.decode(line.removesuffix(b",\n"))
        changes += (change for change, _ in part.changes)
        prior |= {change.key: digest for change, digest in part.changes if digest is not None}
        prior |= dict(part.prior)
        desired += part.desired
        removed += part.removed
        places += part.places
    id = msgspec.json.decode(line.removeprefix(ID[1:]).partition(DIGEST)[0], type=str)
    inputs = replace(plan.inputs, desired=tuple(desired), removed=tuple(removed), places=tuple(places))
    return replace(plan, basis=replace(plan.basis, id=id), changes=tuple(changes), prior=prior, inputs=inputs)


def _changed(path: Path | str) -> SyncengineError:
    return _unfit(f"the plan {path} is incomplete or was changed after it was saved: plan again")


def _of_another_version(path: Path | str) -> SyncengineError:
    return _unfit(f"{path} was saved by another version of syncengine, or is not a saved plan: plan again")


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="plan-file")


def redone_by(plan: Plan, rows: Mapping[Key, Recorded], undone: Sequence[UndoneChange]) -> list[UndoneChange]:
    """Return the undone changes that a saved plan would repeat, computed from its calls and not from its own claims."""
    if not undone:
        return []
    # The content and protection that the plan gives each resource, without content for a removal or release.
    contents: dict[Key, tuple[Body | None, bool | None]] = {}
    for effect in plan.records:
        if (row := rows.get(effect.key)) is not None:
            fields = {name: value for name, value in row.body.fields.items() if name not in effect.cleared}
            body = Body({**fields, **effect.fields}, row.body.keywords, row.body.metadata)
            is_let_go = effect.status in LET_GO or effect.status is Status.DELETED
            contents[effect.key] = (None if is_let_go else body, effect.protect)
    items = (*plan.wholes.values(), *(item for call in plan.calls() for item in call.items))
    wholes = (effect for item in items for effect in item.effects if effect.whole)
    contents |= {each.key: (Body(each.fields, each.keywords, each.metadata), each.protect) for each in wholes}
    formers = (Key(change.key.kind, change.previously) for change in plan.changes if change.previously)
    removals = (change.key for change in plan.changes if change.action in REMOVALS)
    contents |= dict.fromkeys((*formers, *removals), (None, None))
    return [
        each
        for each in undone
        if each.key in contents and each.is_made_by(contents[each.key][0], protect=contents[each.key][1])
    ]
