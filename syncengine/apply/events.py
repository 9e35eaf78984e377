"""Define the events of a running apply, which renderers and the report consume. Nothing here prints."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from syncengine.apply.report import CallError, Outcome, Session
from syncengine.resource import Key, Source


@dataclass(frozen=True, slots=True)
class StageStarted:
    """The start of a stage; `items` is the number of resources or parts of resources that it sends."""

    name: str
    items: int


class ItemEnded(Struct, frozen=True, gc=False):
    """The outcome of one item of a stage; `error` is the reason why it was not applied."""

    key: Key
    outcome: Outcome
    error: CallError | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call that will be repeated in `wait` seconds."""

    operation: str
    why: str
    wait: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pause of `seconds` in which nothing is sent, and its reason."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class SessionOpened:
    id: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A warning about the run as a whole."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """A request to end the run, which waits at most `seconds` for the answers to requests in flight."""

    seconds: float


Event = StageStarted | ItemEnded | Retrying | Waiting | Stopping | SessionOpened | Session | Remark
