"""Faults that a test requests: their effects, the requests that meet them, and their answers. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from syncengine.sandbox.request import (
    COUNT,
    FLAG,
    OBJECT,
    SECONDS,
    TEXT,
    TEXT_MAP,
    ApiError,
    FieldType,
    RuleAnswer,
    attributes,
    read_fields,
    read_known,
    required,
)
from syncengine.sandbox.world import Json
from syncengine.service.operations import OPERATIONS

ANY_OPERATION = "*"
"""Any operation of the interface."""

WEBHOOK_CALL = "webhookCall"
"""The sandbox's own request: a call of the registered webhook."""


CUT, HOLD = "cut", "hold"


@dataclass(frozen=True, slots=True)
class Late:
    """A call that is executed after its time; until then the world is as if it had not come.

    `seconds` None: only when the control API says so. `answer`: a status that is answered at once, `cut` for a
    connection that is cut at once, or `hold`: nothing until the call is executed, and then its own answer.
    """

    seconds: float | None = None
    answer: int | str = HOLD

    @property
    def status(self) -> int | None:
        """Answered at once; None: the connection is cut."""
        return self.answer if isinstance(self.answer, int) else None


@dataclass(frozen=True, slots=True)
class Transfer:
    """How an answer travels. `size`: bytes that it is filled up to with blanks, before it is compressed.

    `drip`: seconds between two bytes of its body, or of its head, too.
    """

    size: int = 0
    gzip: bool = False
    drip: float | None = None
    drip_head: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """An effect on a request.

    `times` None: for ever. The first `after` requests are spared. `status` or `body`: answered instead, without a
    change of the world unless `apply`. `drop`: the connection is cut, before or after the request is processed.
    `item_errors`: these items fail and the others are applied. `delay`: seconds between the change and its answer.
    `late`: the request is executed later, and `body` and `headers` are sent with the immediate answer. `transfer`: how
    any answer travels.
    """

    operation: str
    times: int | None = 1
    after: int = 0
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0
    drop: str | None = None
    apply: bool = False
    item_errors: Mapping[int, str] = field(default_factory=dict)
    expire_session: bool = False
    late: Late | None = None
    transfer: Transfer = Transfer()

    @property
    def answers(self) -> bool:
        """Whether the answer is the fault's own. With item errors, `status` is only theirs."""
        return self.body is not None or (self.status is not None and not self.item_errors)

    @property
    def processes(self) -> bool:
        return self.drop == "after" or (self.drop is None and (self.apply or not self.answers))


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply. `status` None: the connection is cut without one. A text `body` is sent unchanged."""

    status: int | None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    transfer: Transfer = Transfer()


def reply_under(fault: Fault, handle: Callable[[Mapping[int, str]], RuleAnswer]) -> HttpReply:
    """The reply to a request that meets `fault`; `handle` processes it, with the items that are to fail."""
    answer = handle(fault.item_errors) if fault.processes else RuleAnswer(0, None)
    if fault.drop:
        return HttpReply(None, delay=fault.delay)
    if fault.answers:
        return HttpReply(fault.status or 200, fault.body, fault.headers, fault.delay, fault.transfer)
    status = fault.status if fault.status and answer.status < 400 else answer.status
    return HttpReply(status, answer.body, fault.headers, fault.delay, fault.transfer)


class Faults:
    """The active faults, in the order in which they were requested."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def add(self, faults: list[Fault]) -> None:
        self._waiting += [_Waiting(fault) for fault in faults]

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, operation: str) -> Fault | None:
        """The fault that a request to this operation meets. Every fault counts every request that it could meet."""
        met = [waiting for waiting in self._waiting if waiting.meets(operation)]
        due = next((waiting for waiting in met if waiting.is_due()), None)
        if due is None:
            return None
        due.uses += 1
        return due.fault


@dataclass(slots=True)
class _Waiting:
    fault: Fault
    requests: int = 0
    uses: int = 0

    def meets(self, operation: str) -> bool:
        meets = self.fault.operation == operation
        meets |= self.fault.operation == ANY_OPERATION and operation != WEBHOOK_CALL
        self.requests += meets
        return meets

    def is_due(self) -> bool:
        return self.requests > self.fault.after and (self.fault.times is None or self.uses < self.fault.times)


_STATUS = FieldType("a status from 200 to 599", lambda value: COUNT.fits(value) and 200 <= value <= 599)
_LATE = {
    "seconds": SECONDS,
    "answer": FieldType("a status, cut or hold", lambda value: value in (CUT, HOLD) or _STATUS.fits(value)),
}
_TRANSFER = {"size": COUNT, "gzip": FLAG, "drip": SECONDS, "dripHead": FLAG}
_SHAPES = {
    **_TRANSFER,
    "operation": FieldType(
        "the id of an operation or *", lambda value: value in {*OPERATIONS, ANY_OPERATION, WEBHOOK_CALL}
    ),
    "times": COUNT,
    "after": COUNT,
    "status": _STATUS,
    "headers": TEXT_MAP,
    "body": FieldType("text, an object or an array", lambda value: isinstance(value, (str, dict, list))),
    "delay": SECONDS,
    "drop": FieldType("before or after", lambda value: value in ("before", "after")),
    "apply": FLAG,
    "itemErrors": FieldType("an array of {index, errorDescription}", lambda value: isinstance(value, list)),
    "expireSession": FLAG,
    "late": OBJECT,
}
_ITEM_ERROR = {"index": COUNT, "errorDescription": TEXT}
_WITH_ITEM_ERRORS = ("upsertTags", "uploadActivityTypes")
_WITH_LATE = {"operation", "times", "after", "headers", "body", "late"}


def faults_from(body: Any) -> list[Fault]:
    """Read a list of faults as JSON. ApiError when one is not understood: a fault that never happens tests nothing."""
    if not isinstance(body, list):
        raise ApiError(400, "an array of faults is expected")
    return [_fault(item) for item in body]


def _fault(item: Any) -> Fault:
    values = read_known(item, _SHAPES, nullable="times")
    operation = required(values, "operation")
    if "itemErrors" in values:
        if operation not in _WITH_ITEM_ERRORS:
            raise ApiError(400, f"itemErrors are answered only by {', '.join(_WITH_ITEM_ERRORS)}")
        values["itemErrors"] = dict(map(_item_error, values["itemErrors"]))
    if "late" in values:
        values["late"] = _late(values)
    return Fault(transfer=Transfer(**attributes(values, Transfer)), **attributes(values, Fault))


def _late(values: Json) -> Late:
    if values["operation"] == WEBHOOK_CALL:
        raise ApiError(400, f"{WEBHOOK_CALL} cannot be late: the sandbox itself makes this call")
    if others := sorted(values.keys() - _WITH_LATE):
        raise ApiError(400, f"late cannot be combined with {', '.join(others)}")
    return Late(**read_known(values["late"], _LATE, nullable="seconds"))


def _item_error(item: Any) -> tuple[int, str]:
    values = read_fields(item, _ITEM_ERROR)
    return required(values, "index"), values.get("errorDescription", "injected")
