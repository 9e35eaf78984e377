"""plan ↔ file. A saved plan holds everything that its apply needs, and reads no manifest (docs/planning.md 6).

The file is the machine format of docs/formats.md with two more members: `execution` holds the calls, what they
leave, and the digests of the rows that they stand on; `digest` is over the whole file before it. A digest proves no
author: what a file says is held against the state when it is applied (`consistency`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import orjson
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.document.gc_pause import no_collection
from syncengine.errors import SyncengineError
from syncengine.plan.calls import Item
from syncengine.plan.model import Plan
from syncengine.plan.saved_aim import inconsistent
from syncengine.project.atomic_write import write_whole
from syncengine.resource import Key

FORMAT = "syncengine.plan/v1"
NOTHING = msgspec.Raw(b"")
EXECUTION, DIGEST, END = b',"execution":', b',"digest":"', b'"}'
"""What stands before the calls, before the digest of all that comes before it, and behind that."""
COMMIT = re.compile("(?:[0-9a-f]{40}|[0-9a-f]{64})?")
SEAL = 20
"""Letters of an id that name the plan's content."""


class Execution(msgspec.Struct, frozen=True, gc=False):
    """A plan as JSON takes it: what is looked up by key is a list of pairs."""

    plan: Plan
    wholes: tuple[tuple[Key, Item], ...]
    prior: tuple[tuple[Key, str], ...]

    @classmethod
    def of(cls, plan: Plan) -> Execution:
        listed = replace(plan, wholes={}, prior={})
        return cls(listed, tuple(plan.wholes.items()), tuple(plan.prior.items()))

    def restored(self) -> Plan:
        return replace(self.plan, wholes=dict(self.wholes), prior=dict(self.prior))


class Saved(msgspec.Struct):
    """What a file must hold to be applied; the public document around it is for other readers."""

    format: str = ""
    execution: msgspec.Raw = NOTHING


def save(plan: Plan, shown: Callable[[Plan], Mapping[str, object]], path: Path) -> Plan:
    """Write `plan` beside what is `shown` of it, readable by its owner alone (docs/planning.md 1.4).

    The plan as it was written: its id ends in a digest of its content, so that no other plan can pass for it.
    """
    plan = _sealed(plan)
    content = orjson.dumps(shown(plan))[:-1] + EXECUTION + msgspec.json.encode(Execution.of(plan))
    try:
        write_whole(path, (content, DIGEST, sha256_of(content).encode(), END), mode=0o600)
    except OSError as error:
        raise SyncengineError(f"the plan cannot be written to {path}: {error.strerror}", code="plan-file") from None
    return plan


def _sealed(plan: Plan) -> Plan:
    """The plan under an id that names its content."""
    plain = replace(plan, basis=replace(plan.basis, id="", settles=None))
    return replace(plain, basis=replace(plain.basis, id=f"{plan.id}-{_seal(plain)}"))


def _seal(plan: Plan) -> str:
    """A digest of everything but the id."""
    return sha256_of(msgspec.json.encode(Execution.of(replace(plan, basis=replace(plan.basis, id="")))))[:SEAL]


def is_saved_plan(path: Path) -> bool:
    """Whether the file is one of our documents, told by its `format` key, and no manifest. `load` wants a plan."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            start = file.read(200).lstrip()
    except OSError:
        return False
    return start.startswith(b"{") and b'"format"' in start and b'"syncengine.' in start


def load(path: Path, shown: Callable[[Plan], Mapping[str, object]]) -> Plan:
    """Read a saved plan; SyncengineError (`plan-file`) for anything that `save` did not write.

    StalePlan (`plan-inconsistent`) where the file shows another plan than it holds.
    """
    content = _content(path)
    plan = _executed(path, content)
    if content != orjson.dumps(shown(plan))[:-1] + EXECUTION + msgspec.json.encode(Execution.of(plan)):
        raise inconsistent(f"{path} shows another plan than it holds")
    if plan.id.rpartition("-")[2] != _seal(plan) or plan.basis.settles is not None:
        raise inconsistent(f"{path} has the id of another plan")
    if not COMMIT.fullmatch(plan.basis.commit or ""):
        raise inconsistent(f"{path} names a commit that cannot be one")
    return plan


def _content(path: Path) -> bytes:
    """All of a file but its digest, which must be right."""
    try:
        if not path.is_file():
            raise _unfit(f"the plan {path} cannot be read: it is {'no file' if path.exists() else 'not there'}")
        whole = path.read_bytes().rstrip()
    except OSError as error:
        raise _unfit(f"the plan {path} cannot be read: {error.strerror}") from None
    if EXECUTION not in whole:
        raise _unfit(_why_none(path, whole))
    content, _, digest = whole.removesuffix(END).rpartition(DIGEST)
    if digest.decode("ascii", "replace") != sha256_of(content):
        raise _unfit(f"{path} was changed after it was saved: plan again")
    return content


def _why_none(path: Path, whole: bytes) -> str:
    """Why a file without anything to execute is no saved plan."""
    try:
        found = msgspec.json.decode(whole, type=Saved).format
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = ""
    return f"{path} was printed, not saved: use `plan --out FILE`" if found == FORMAT else f"{path} is no saved plan"


def _executed(path: Path, content: bytes) -> Plan:
    try:
        with no_collection():
            saved = msgspec.json.decode(content + b"}", type=Saved)
            if saved.format != FORMAT:
                raise _unfit(f"{path} is not a saved plan of this version ({FORMAT})")
            return msgspec.json.decode(saved.execution, type=Execution).restored()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _unfit(f"{path} was saved by another version of syncengine, or is no saved plan") from None


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="plan-file")
