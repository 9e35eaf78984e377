"""The protocol that every sink implements, the answers that sinks give, and the forms that targets take. Pure.

A value that no target can hold is refused with a message to the user. A header's value is sent as UTF-8 (RFC 9110 §5.5
leaves the meaning of bytes beyond ASCII to sender and receiver). A receiver that reads headers as Latin-1 has to decode
them again; for a receiver that accepts only ASCII, a project uses `{{ user.name | urlencode }}`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from syncengine.document.json_text import encode_json
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.group import NOT_TEXT, clean
from syncengine.posted_time.templates import RenderTrouble, Text, Undeliverable, Variables, plain
from syncengine.state.inbox_model import DeliveryKey
from syncengine.templating.sandbox import with_nulls


@dataclass(frozen=True, slots=True)
class Words:
    """The templates of a sink's texts: the reference of a delivery, and the message of a refusal."""

    external_id: Text | None
    refused: Text | None


@dataclass(frozen=True, slots=True)
class RenderedGroup:
    """A group, or its part for one tag, rendered for one sink.

    `content` is in the sink's own form, and `digest` is that of the posted content. `key` identifies the part at the
    sink, and is or begins with the sink's name.
    """

    group_id: str
    key: str
    revision: int
    digest: str
    content: Any
    variables: Variables

    @property
    def mark(self) -> tuple[str, str]:
        """The id of the group and the key of its part, which identify a receipt in a target."""
        return self.group_id, self.key

    @property
    def delivery(self) -> DeliveryKey:
        """The key under which the inbox keeps the delivery."""
        return DeliveryKey(self.group_id, self.revision, self.key)


@dataclass(frozen=True, slots=True)
class Took:
    """The answer of a sink that took the group, now or earlier. `external_id` is the sink's reference."""

    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of a sink that refused the group. `message` is for the user, `detail` for the operator."""

    message: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Differs:
    """The answer of a sink that has the group with different content, which a person must resolve.

    `divided` means that the group was delivered whole and would now be delivered tag by tag, or the reverse. With more
    than one of `copies` the sink has the group that often.
    """

    divided: bool = False
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Lacks:
    """The answer of a sink that does not have the group."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer of a sink in trouble. `message` is for the user, `detail` for the operator.

    `is_sure`: the sink does not have the group. `is_down`: the sink would not take any other group either.
    `has_answered`: the sink could be reached, so a good probe does not prove that it works again. `where`: the part in
    trouble, if it is not the sink. `rest`: the seconds for which the sink asked to be sent nothing.
    """

    kind: TroubleKind
    message: str
    is_sure: bool = True
    is_down: bool = True
    has_answered: bool = False
    detail: str | None = None
    where: str | None = None
    rest: float = 0.0


Answer = Took | Refused | Differs | Failed
Recalled = Took | Differs | Lacks | Failed | None
"""What a sink says about a group that it may have: `None` if it can never tell, `Failed` if it cannot be asked now."""


class Notes(Protocol):
    """The notes that sinks need after a crash, kept in the inbox. Called in threads."""

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        """Store the note of a delivery. `None` removes it."""

    def with_note(self, sink: str, memo: str) -> Sequence[DeliveryKey]:
        """Return the sink's deliveries that have this note."""


class Sink(Protocol):
    """A target of posted time."""

    @property
    def name(self) -> str: ...

    @property
    def asked_after(self) -> float | None:
        """The seconds after an attempt of unknown end until the sink can tell whether it has the group.

        It is then asked by `recall` before it gets the group again. `None`: a repeat needs no question, since the sink
        itself recognizes it, or since it cannot be asked.
        """

    def receiver(self) -> str:
        """Return what identifies the target. Raise `Problems` if that cannot be read."""

    def render(self, variables: Variables) -> Any:
        """Return the content to deliver, without reading or writing the target. Raise `RenderTrouble` when it fails."""

    def shown(self, content: Any) -> Any:
        """Return the content as plain values without secrets, to show to people."""

    async def deliver(self, rendered: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        """Deliver a group, and return the answer. `memo` is the note of an earlier attempt. May run concurrently."""

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes, variables: Variables | None) -> Recalled:
        """Return whether the sink has the group under this key.

        `variables` are those of the group without lookups and narrative, `None` if its content is gone.
        """

    async def probe(self) -> SinkTrouble | None:
        """Return the trouble that keeps the sink from taking groups now. `None` does not prove that it takes any."""

    async def close(self) -> None: ...


LONGEST_REST = 86_400.0
"""The longest time, in seconds, for which a sink is left alone at its own request: a wrong clock must not end it."""
MAX_LINE = 8000
"""The most bytes of a header or path: every recipient accepts as many (RFC 9112 §3), and many accept no more."""
MAX_MESSAGE = 1000
"""The maximum number of characters of a message to a user."""
MAX_REFERENCE = 1000
"""The maximum number of characters of a sink's reference, which the service keeps with the group."""

CONTROL = "it contains a line break or another control character where only one line of text can be sent"
TOO_LONG = "something in it is too long to be sent"
TOO_LARGE = "a number in it is too large for a database"
NO_TEXT = "part of it is not valid text"
_SENTENCE = "This time cannot be delivered: {why}. Please post it again without that, or ask your administrator."


def objection(text: str) -> str | None:
    """Return the reason why a header cannot hold this text, or `None`."""
    if NOT_TEXT.search(text):
        return NO_TEXT
    if re.search(r"[\x00-\x1f\x7f-\x9f]", text):
        return CONTROL
    return TOO_LONG if len(text.encode()) > MAX_LINE else None


def line(text: str, name: str) -> str:
    """Return the text, or raise `Undeliverable` if no header or path can hold it. `name` is shown to the operator."""
    why = objection(text)
    if why is not None:
        raise undeliverable(why, name)
    return text


def undeliverable(why: str, name: str) -> Undeliverable:
    return Undeliverable(_SENTENCE.format(why=why), f"{name} cannot be sent: {why}")


def document(value: Any, name: str) -> bytes:
    """Return the value as JSON in UTF-8. Raise `Undeliverable` when it cannot be encoded."""
    try:
        return encode_json(plain(value))
    except (UnicodeEncodeError, RecursionError):
        raise undeliverable(NO_TEXT, name) from None


def parameter(text: str) -> str:
    """Return the text, or raise `Undeliverable` when not every database accepts it."""
    if NOT_TEXT.search(text):
        raise undeliverable(NO_TEXT, "a parameter")
    return text


def reference(text: Text | None, variables: Variables) -> str | None:
    """Return a sink's reference, or `None` if it has none. Raise `Undeliverable` if the service would not accept it."""
    value = text.render(variables) if text else ""
    if NOT_TEXT.search(value) or len(value) > MAX_REFERENCE:
        raise undeliverable(NO_TEXT if NOT_TEXT.search(value) else TOO_LONG, "externalId")
    return value or None


def reference_in_answer(text: Text | None, variables: Variables) -> str | None:
    """Return the reference in an answer, or `None` when its template fails: the group is delivered nevertheless.

    It also fails where a text would be made of a value that the answer lacks.
    """
    try:
        answers = {name: with_nulls(variables[name]) for name in ("response", "entry") if name in variables}
        return reference(text, {**variables, **answers})
    except (RenderTrouble, RecursionError):
        return None


def message(text: str | None) -> str | None:
    """Return a message to a user in a form that the service accepts: without control characters, and not too long."""
    if text is None:
        return None
    words = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+", " ", clean(text))  # tabs and line feeds stay
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"
