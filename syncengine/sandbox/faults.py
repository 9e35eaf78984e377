"""Faults that a test asks for: which requests they hit, and how a hit request is answered. No I/O."""

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
"""The operation of a fault that hits requests to any operation of the interface."""

WEBHOOK_CALL = "webhookCall"
"""The operation of a fault that hits the sandbox's own calls of the registered webhook."""


CUT, HOLD = "cut", "hold"


@dataclass(frozen=True, slots=True)
class Late:
    """The late execution of a call, which has no effect until then.

    `seconds` is the delay, or `None` to wait for the control API. `answer` is a status to answer at once, `cut` to cut
    the connection at once, or `hold` to keep the client waiting until the call is executed and answered.
    """

    seconds: float | None = None
    answer: int | str = HOLD

    @property
    def status(self) -> int | None:
        """The status that is answered at once, or `None` when there is no immediate answer."""
        return self.answer if isinstance(self.answer, int) else None


@dataclass(frozen=True, slots=True)
class Transfer:
    """The way an answer is sent. `size` is the number of bytes to pad its body to, before compression.

    `drip` is the pause in seconds between two bytes of the body, and with `drip_head` of the head as well.
    """

    size: int = 0
    gzip: bool = False
    drip: float | None = None
    drip_head: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that hits requests to `operation`.

    It spares the first `after` requests and hits the next `times`, or all when `times` is `None`. `status` and `body`
    replace the answer, and the request changes nothing unless `apply` is set. `drop` cuts the connection before or
    after the request is processed. `item_errors` makes items fail while the others are applied. `delay` is the number
    of seconds between the change and its answer. `late` executes the request later, with `body` and `headers` in the
    immediate answer. `transfer` is the way in which any answer is sent.
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
        """Whether the fault replaces the whole answer. With item errors, `status` only changes the answer's status."""
        return self.body is not None or (self.status is not None and not self.item_errors)

    @property
    def processes(self) -> bool:
        return self.drop == "after" or (self.drop is None and (self.apply or not self.answers))


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP reply, or a connection that is cut when `status` is `None`. A `body` of text is sent unchanged."""

    status: int | None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    transfer: Transfer = Transfer()


def reply_under(fault: Fault, handle: Callable[[Mapping[int, str]], RuleAnswer]) -> HttpReply:
    """Return the reply to a request that `fault` hits. `handle` processes the request, given the items to fail."""
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
        """Return the fault that hits a request to `operation`, or `None`. Every matching fault counts the request."""
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
    """Read faults from JSON. Raise `ApiError` for an invalid fault, since a fault that never happens tests nothing."""
    if not isinstance(body, list):
        raise ApiError(400, "the body must be an array of faults")
    return [_fault(item) for item in body]


def _fault(item: Any) -> Fault:
    values = read_known(item, _SHAPES, nullable="times")
    operation = required(values, "operation")
    if "itemErrors" in values:
        if operation not in _WITH_ITEM_ERRORS:
            raise ApiError(400, f"only {' and '.join(_WITH_ITEM_ERRORS)} can have itemErrors")
        values["itemErrors"] = dict(map(_item_error, values["itemErrors"]))
    if "late" in values:
        values["late"] = _late(values)
    return Fault(transfer=Transfer(**attributes(values, Transfer)), **attributes(values, Fault))


def _late(values: Json) -> Late:
    if values["operation"] == WEBHOOK_CALL:
        raise ApiError(400, f"{WEBHOOK_CALL} cannot be late, since the sandbox itself makes this call")
    if others := sorted(values.keys() - _WITH_LATE):
        raise ApiError(400, f"late cannot be combined with {', '.join(others)}")
    return Late(**read_known(values["late"], _LATE, nullable="seconds"))


def _item_error(item: Any) -> tuple[int, str]:
    values = read_fields(item, _ITEM_ERROR)
    return required(values, "index"), values.get("errorDescription", "injected")
