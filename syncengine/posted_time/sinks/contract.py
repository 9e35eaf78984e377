"""The contract between delivery and sinks, which SQL, HTTP and JSONL keep, and their answers. Types only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from syncengine.database.trouble import TroubleKind
from syncengine.posted_time.templates import Text, Variables
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.state.inbox_entries import DeliveryKey


@dataclass(frozen=True, slots=True)
class Words:
    """Words about a delivery: its reference, and the sentence of a refusal."""

    external_id: Text | None
    refused: Text | None


@dataclass(frozen=True, slots=True)
class RenderedGroup:
    """One group, or the part of it for one tag, rendered for one sink. `content` is in the sink's own form; `digest`
    is that of the posted content. `key` is the sink's name, or begins with it, and identifies the part at the sink.
    """

    group_id: str
    key: str
    revision: int
    digest: str
    content: Any
    variables: Variables

    @property
    def mark(self) -> tuple[str, str]:
        """The key of the group at a target."""
        return self.group_id, self.key

    @property
    def delivery(self) -> DeliveryKey:
        """The key of the delivery in the inbox."""
        return DeliveryKey(self.group_id, self.revision, self.key)


@dataclass(frozen=True, slots=True)
class Took:
    """The answer of a sink that has the group, now or since before. `external_id` is its reference."""

    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The sink refused the group, which the user can correct. `message` is for the user, `detail` for the operator."""

    message: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Differs:
    """The sink has the group with another content: a matter for a person. `divided`: whole, where it was to be given
    tag by tag now, or the other way round.
    """

    divided: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """Trouble. `is_sure`: the sink does not have the group. `is_down`: it would not take any other either.

    `is_echo`: another group met it, and this one was not tried. `has_answered`: it could be reached, so that it can be
    reached again proves nothing. `message` is for who posted, `detail` for whoever runs this, `where` the part if
    that is not the sink itself.
    """

    kind: TroubleKind
    message: str
    is_sure: bool = True
    is_down: bool = True
    has_answered: bool = False
    detail: str | None = None
    where: str | None = None
    is_echo: bool = False


Answer = Took | Refused | Differs | Failed


class Notes(Protocol):
    """Notes that sinks need after a crash, kept in the inbox. Called in whichever thread a sink works in."""

    def keep(self, memos: Sequence[tuple[DeliveryKey, str | None]]) -> None:
        """Keep these, all or none; None removes a note."""

    def with_notes(self, sink: str, memos: Collection[str]) -> Sequence[tuple[DeliveryKey, str]]:
        """Deliveries of the sink with one of these notes, and which."""


class Sink(Protocol):
    """A target of posted time."""

    @property
    def name(self) -> str: ...

    def render(self, variables: Variables) -> Any:
        """The content to deliver; RenderTrouble. Touches nothing outside."""

    def shown(self, content: Any) -> Any:
        """The same for people: as plain values, without secrets."""

    async def deliver(self, parcel: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        """Hand it over; many may be handed over side by side. `memo` is the note of an earlier attempt."""

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes) -> bool | Failed | None:
        """Whether the sink has the group under this key from an attempt whose answer was lost.

        None: nobody will ever be able to tell; Failed: it cannot be asked now.
        """

    async def probe(self) -> SinkTrouble | None:
        """The trouble that keeps the sink from taking anything now. None does not prove that it takes a group."""

    async def close(self) -> None: ...
