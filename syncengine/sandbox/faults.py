"""Faults that a test asks for: which requests they hit, and how a request that is hit is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from syncengine.sandbox.bodies import ApiError, Count, Flag, KnownBody, RuleAnswer, Seconds, TextMap, read, reading
from syncengine.sandbox.store import Json
from syncengine.service.operations import OPERATIONS

ANY_OPERATION = "*"
"""The operation of a fault that hits requests to any operation of the interface."""

WEBHOOK_CALL = "webhookCall"
"""The operation of a fault that hits the sandbox's own calls of the registered webhook."""

HOLD: Final = "hold"


def _hittable(operation: str) -> str:
    if operation not in {*OPERATIONS, ANY_OPERATION, WEBHOOK_CALL}:
        raise ValueError(operation)
    return operation


_Status = Annotated[int, Field(ge=200, le=599)]


class Late(KnownBody):
    """The late execution of a call, which has no effect until then.

    `seconds` is the delay, or `None` to wait for the control API. `answer` is a status to answer at once, `cut` to cut
    the connection at once, or `hold` to keep the client waiting until the call is executed and answered.
    """

    seconds: Seconds = None
    answer: Annotated[_Status | Literal["cut", "hold"], Field(description="a status, cut or hold")] = HOLD


class ItemError(KnownBody):
    index: Annotated[int, Field(ge=0, description="a non-negative integer")]
    error_description: Annotated[str, Field(description="a string")] = "injected"


class Fault(KnownBody):
    """A fault that hits requests to `operation`.

    It spares the first `after` requests and hits the next `times`, or all when `times` is `None`. `status` and `body`
    replace the answer, and the request changes nothing unless `apply` is set. `drop` cuts the connection before or
    after the request is processed. `item_errors` makes items fail while the others are applied. `delay` is the number
    of seconds between the change and its answer. `late` executes the request later, with `body` and `headers` in the
    immediate answer.
    """

    operation: Annotated[str, AfterValidator(_hittable), Field(description="the id of an operation or *")]
    times: Count = 1
    after: Annotated[int, Field(ge=0, description="a non-negative integer")] = 0
    status: Annotated[_Status | None, Field(description="a status from 200 to 599")] = None
    headers: TextMap = None
    body: Annotated[str | Json | list[Any] | None, Field(description="text, an object or an array")] = None
    delay: Annotated[float, Field(ge=0, le=10**9, description="a number of seconds")] = 0
    drop: Annotated[Literal["before", "after"] | None, Field(description="before or after")] = None
    apply: Flag = None
    item_errors: Annotated[
        list[Annotated[ItemError, reading(ItemError)]] | None,
        Field(description="an array of {index, errorDescription}"),
    ] = None
    expire_session: Flag = None
    late: Annotated[Late | None, reading(Late)] = None

    @property
    def answers(self) -> bool:
        """Whether the fault replaces the whole answer. With item errors, `status` only changes the answer's status."""
        return self.body is not None or (self.status is not None and not self.item_errors)

    @property
    def processes(self) -> bool:
        return self.drop == "after" or (self.drop is None and (bool(self.apply) or not self.answers))


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP reply, or a connection that is cut when `status` is `None`. A `body` of text is sent unchanged."""

    status: int | None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0


def reply_under(fault: Fault, handle: Callable[[Mapping[int, str]], RuleAnswer]) -> HttpReply:
    """Return the reply to a request that `fault` hits.

    `handle` processes the request, given the errors of the items to fail by their index.
    """
    failing = {each.index: each.error_description for each in fault.item_errors or ()}
    answer = handle(failing) if fault.processes else RuleAnswer(0, None)
    if fault.drop:
        return HttpReply(None, delay=fault.delay)
    if fault.answers:
        return HttpReply(fault.status or 200, fault.body, fault.headers or {}, fault.delay)
    status = fault.status if fault.status and answer.status < 400 else answer.status
    return HttpReply(status, answer.body, fault.headers or {}, fault.delay)


@dataclass(slots=True)
class _Waiting:
    fault: Fault
    requests: int = 0
    uses: int = 0


class Faults:
    """The active faults, in the order in which they were requested."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def add(self, faults: list[Fault]) -> None:
        self._waiting += map(_Waiting, faults)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, operation: str) -> Fault | None:
        """Return the fault that hits a request to `operation`, or `None`. Every matching fault counts the request."""
        # `*` stands for the interface, to which the sandbox's own calls do not belong.
        names = {operation} if operation == WEBHOOK_CALL else {operation, ANY_OPERATION}
        due = None
        for each in self._waiting:
            if each.fault.operation in names:
                each.requests += 1
                is_left = each.fault.times is None or each.uses < each.fault.times
                due = each if due is None and is_left and each.requests > each.fault.after else due
        if due is None:
            return None
        due.uses += 1
        return due.fault


_WITH_ITEM_ERRORS = ("upsertTags", "uploadActivityTypes")
_WITH_LATE = {"operation", "times", "after", "headers", "body", "late"}


def faults_from(body: Any) -> list[Fault]:
    """Read faults from JSON. Raise `ApiError` for an invalid fault, since a fault that never happens tests nothing."""
    if not isinstance(body, list):
        raise ApiError(400, "the body must be an array of faults")
    faults = [read(Fault, item) for item in body]
    for fault in faults:
        if fault.item_errors is not None and fault.operation not in _WITH_ITEM_ERRORS:
            raise ApiError(400, f"only {' and '.join(_WITH_ITEM_ERRORS)} can have itemErrors")
        if fault.late and fault.operation == WEBHOOK_CALL:
            raise ApiError(400, f"{WEBHOOK_CALL} cannot be late, since the sandbox itself makes this call")
        others = {str(Fault.model_fields[name].alias) for name in fault.model_fields_set - _WITH_LATE}
        if fault.late and others:
            raise ApiError(400, f"late cannot be combined with {', '.join(sorted(others))}")
    return faults
