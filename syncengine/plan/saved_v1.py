"""the content of a plan's file as it was written before → the plan; pure. The form of today is in `saved`.

All of it stood in one line: behind the shown document `execution`, one JSON value, and `digest`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.plan.calls import Item
from syncengine.plan.model import Plan
from syncengine.resource import Key

EXECUTION, DIGEST, END = b',"execution":{', b',"digest":"', b'"}'
SEAL = 20


class Execution(msgspec.Struct, frozen=True, gc=False):
    """A plan as JSON takes it: mappings are lists of pairs."""

    plan: Plan
    wholes: tuple[tuple[Key, Item], ...]
    prior: tuple[tuple[Key, str], ...]

    @classmethod
    def of(cls, plan: Plan) -> Execution:
        bare = replace(plan, wholes={}, prior={})
        return cls(bare, tuple(plan.wholes.items()), tuple(plan.prior.items()))

    def restored(self) -> Plan:
        return replace(self.plan, wholes=dict(self.wholes), prior=dict(self.prior))


class Saved(msgspec.Struct):
    """The part of a file that is applied."""

    execution: Execution


def unsealed(whole: bytes) -> bytes | None:
    """All but the digest, if that is right."""
    content, _, digest = whole.removesuffix(END).rpartition(DIGEST)
    return content if digest.decode("ascii", "replace") == sha256_of(content) else None


def executed(content: bytes) -> Plan:
    """The plan; MsgspecError, UnicodeDecodeError or RecursionError where there is none."""
    return msgspec.json.decode(content + b"}", type=Saved).execution.restored()


def is_as_written(content: bytes, plan: Plan, display: Callable[[Plan], object]) -> bool:
    """Whether the file shows the plan that it holds, under the id that names it."""
    encoded = msgspec.json.encode(Execution.of(plan))
    same = content == msgspec.json.encode(display(plan))[:-1] + EXECUTION[:-1] + encoded
    nameless = replace(plan, basis=replace(plan.basis, id=""))
    seal = sha256_of(msgspec.json.encode(Execution.of(nameless)))[:SEAL]
    return same and plan.id.rpartition("-")[2] == seal and plan.basis.settles is None
