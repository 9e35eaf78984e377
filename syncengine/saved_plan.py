"""plan ↔ file. A saved plan holds everything that its apply needs, and reads no manifest (engine.md §6).

The file is the machine format of product.md §7 with one more member, `execution`: the calls, what they leave, and
the digests of the rows that they stand on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import orjson
from msgspec.structs import replace

from syncengine.calls import Item
from syncengine.collection import no_collection
from syncengine.errors import SyncengineError
from syncengine.plan import Plan
from syncengine.resource import Key
from syncengine.whole_file import write_whole

FORMAT = "syncengine.plan/v1"
NOTHING = msgspec.Raw(b"")


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
    digest: str = ""
    execution: msgspec.Raw = NOTHING


def save(plan: Plan, document: Mapping[str, object], path: Path) -> None:
    """Write `plan` beside its public `document`, readable by its owner alone (engine.md 1.4)."""
    execution = msgspec.json.encode(Execution.of(plan))
    head = orjson.dumps({**document, "digest": _digest(execution)})
    try:
        write_whole(path, (memoryview(head)[:-1], b',"execution":', execution, b"}"), mode=0o600)
    except OSError as error:
        raise SyncengineError(f"the plan cannot be written to {path}: {error.strerror}", code="plan-file") from None


def is_saved_plan(path: Path) -> bool:
    """Whether the file is one of our documents, told by its `format` key, and no manifest. `load` wants a plan."""
    try:
        with path.open("rb") as file:
            start = file.read(200).lstrip()
    except OSError:
        return False
    return start.startswith(b"{") and b'"format"' in start and b'"syncengine.' in start


def load(path: Path) -> Plan:
    """Read a saved plan; SyncengineError (`plan-file`) for anything that `save` did not write."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=Saved)
    except OSError as error:
        raise _unfit(f"the plan {path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unfit(f"{path} is not a saved plan: {error}") from None
    if saved.format != FORMAT:
        raise _unfit(f"{path} is not a saved plan of this version ({FORMAT})")
    execution = memoryview(saved.execution)
    if not execution:
        raise _unfit(f"{path} was printed, not saved: use `plan --out FILE`")
    if saved.digest != _digest(execution):
        raise _unfit(f"{path} was changed after it was saved: plan again")
    try:
        with no_collection():
            return msgspec.json.decode(execution, type=Execution).restored()
    except msgspec.ValidationError:
        raise _unfit(f"{path} was saved by another version of syncengine") from None


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="plan-file")


def _digest(execution: bytes | memoryview) -> str:
    return hashlib.sha256(execution).hexdigest()
