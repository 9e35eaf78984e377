"""Judge the answer of one call: the outcome of each of its items; pure (docs/planning.md 4.3, 4.4, 4.6, 4.9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncengine.service.answers import Answer, tidy
from syncengine.service.operations import Operation


@dataclass(frozen=True, slots=True)
class Accepted:
    """A 2xx. `errors` names the items that were not applied; `data` is the answer's object."""

    errors: Mapping[int, str] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemsRefused:
    """A 4xx that names items: those failed, the rest was not applied either and may be sent again."""

    errors: Mapping[int, str]
    status: int


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A 4xx for the call as a whole: nothing of it was applied."""

    message: str
    status: int


@dataclass(frozen=True, slots=True)
class Unclear:
    """An outcome that no answer tells. `reached`: the service may have seen the call."""

    message: str
    status: int | None = None
    reached: bool = True


Verdict = Accepted | ItemsRefused | RefusedCall | Unclear


def judge(operation: Operation, items: int, answer: Answer) -> Verdict:
    """Judge an answer by the interface of `operation`."""
    if answer.exhausted:
        return Unclear(answer.explained, answer.status, answer.reached)
    errors = _item_errors(answer.data) if operation.items else {}
    fits = errors is not None and all(0 <= index < items for index in errors)
    if answer.ok:
        return _judge_success(answer, errors if fits else None)
    assert answer.status is not None, "an answer without a status is exhausted"
    return ItemsRefused(errors, answer.status) if errors and fits else RefusedCall(_words(answer), answer.status)


def _judge_success(answer: Answer, errors: Mapping[int, str] | None) -> Verdict:
    if answer.data is None and answer.understood:
        return Accepted()
    if errors is None:
        return Unclear(f"item errors that match no item: {answer.text}", answer.status)
    if not isinstance(answer.data, dict):
        return Unclear(f"an answer that the specification does not allow: {answer.text}", answer.status)
    return Accepted(errors, answer.data)


def _item_errors(data: object) -> dict[int, str] | None:
    """{index: words} of an answer's `errors`; empty when there is none, None when it has another shape."""
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
        messages[index] = tidy(str(error.get("errorDescription") or "refused without a reason"))
    return messages


def _words(answer: Answer) -> str:
    """The service's words in an error body of unknown shape (docs/service.md §1)."""
    if isinstance(answer.data, dict):
        for name in ("message", "errorDescription", "error", "detail", "description"):
            if isinstance(words := answer.data.get(name), str) and words:
                return tidy(words)
    return answer.words if answer.data or not answer.understood else f"refused with {answer.status} and no message"
