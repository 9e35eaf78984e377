"""Judge the answer to one call: the outcome of each of its items. Pure (docs/planning.md 4.3, 4.4, 4.6, 4.9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from syncengine.http.exchange import tidy
from syncengine.service.answers import Answer
from syncengine.service.operations import Operation


@dataclass(frozen=True, slots=True)
class Accepted:
    """A 2xx answer. `errors` gives the items that were not applied, by index; `data` is the answer's JSON object."""

    errors: Mapping[int, str] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemsRefused:
    """A 4xx answer that names items: they failed; the others were not applied either and may be sent again."""

    errors: Mapping[int, str]
    status: int


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A 4xx answer to the call as a whole: nothing was applied."""

    message: str
    status: int


@dataclass(frozen=True, slots=True)
class Unclear:
    """A call whose outcome no answer reveals. `reached`: whether the service may have received the call."""

    message: str
    status: int | None = None
    reached: bool = True


Verdict = Accepted | ItemsRefused | RefusedCall | Unclear
T = TypeVar("T")


def unnamed(items: Iterable[T], errors: Collection[int]) -> list[T]:
    """Return the items of a call whose index is not among its errors."""
    return [item for index, item in enumerate(items) if index not in errors]


def judge(operation: Operation, items: int, answer: Answer) -> Verdict:
    """Return the verdict on the answer to a call of `operation` with `items` items."""
    if answer.exhausted:
        return Unclear(answer.explained, answer.status, answer.reached)
    assert answer.status is not None, "an answer without a status is exhausted"
    data = answer.data
    errors = _item_errors(data) if operation.items else {}
    fits = errors is not None and all(0 <= index < items for index in errors)
    if answer.ok:
        if data is None and answer.understood:
            return Accepted()
        if errors is None or not fits:
            return Unclear(f"the answer reports errors for items that were not sent: {answer.text}", answer.status)
        if not isinstance(data, dict):
            return Unclear(f"the answer does not match the service's specification: {answer.words}", answer.status)
        return Accepted(errors, data)
    if answer.status < 400:  # which decides nothing
        return Unclear(answer.explained, answer.status)
    if errors and fits:
        return ItemsRefused(errors, answer.status)
    # The shape of an error body is unknown (docs/service.md §1): the first text under a usual name is the message.
    for name in ("message", "errorDescription", "error", "detail", "description"):
        if isinstance(data, dict) and isinstance(words := data.get(name), str) and words:
            return RefusedCall(tidy(words), answer.status)
    says_something = data or not answer.understood
    return RefusedCall(
        answer.words if says_something else f"rejected with {answer.status} and no message", answer.status
    )


def _item_errors(data: object) -> dict[int, str] | None:
    """Return the messages in an answer's `errors` by index: empty without any, `None` when malformed."""
    entries = data.get("errors") if isinstance(data, dict) else None
    if entries is None:
        return {}
    if not isinstance(entries, list):
        return None
    messages: dict[int, str] = {}
    for error in entries:
        index = error.get("index") if isinstance(error, dict) else None
        if not isinstance(index, int) or isinstance(index, bool):
            return None
        messages[index] = tidy(str(error.get("errorDescription") or "rejected without a reason"))
    return messages
