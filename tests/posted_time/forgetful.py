"""An HTTP receiver that ignores Idempotency-Key, so that a repeated request makes a second entry."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.posted_time.receiver import Got, Receiver, receiving

LATEST, LISTED = 40.0, 15.0
"""The longest delays, in seconds: until a request with a lost answer is executed, and until its entry is listed."""
PAGE = 3


@dataclass(frozen=True)
class Entry:
    """The entry that one request made, with the times from which it exists and from which it is listed."""

    reference: str
    secs: int
    number: int
    executed: float
    listed: float


@dataclass
class Forgetful:
    """Answers each POST by the next of `moods`, or by chance, and lists entries by a prefix of their reference."""

    now: Callable[[], float]
    chance: random.Random
    entries: list[Entry] = field(default_factory=list)
    moods: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    usual: tuple[str, ...] = ("take",)
    asking: tuple[str, ...] = ("answer",)
    latest: float = LATEST
    listing: float = LISTED
    receiver: Receiver = field(default_factory=Receiver)

    def answer(self, got: Got) -> tuple[int, Any] | None:
        if got.method == "GET":
            return self._listed(got.path)
        mood = self.moods.pop(0) if self.moods else self.chance.choice(self.usual)
        if mood in ("cut", "down"):
            return None if mood == "cut" else (503, {})
        if mood == "refuse":
            return 409, {}
        executed = self.now() + (self.chance.random() * self.latest if mood == "late" else 0.0)
        listed = executed + self.chance.random() * self.listing
        self.entries.append(Entry(got.body["ref"], got.body["secs"], len(self.entries), executed, listed))
        answers: dict[str, tuple[int, Any]] = {"take": (201, {"id": len(self.entries)}), "gateway": (504, {})}
        return answers.get(mood)

    def _listed(self, path: str) -> tuple[int, Any] | None:
        asked = parse_qs(urlsplit(path).query)
        self.questions.append(path)
        # Only one in ten later pages may fail: otherwise the 40 pages of 1,000 groups would never be read completely.
        fails = "at" not in asked or self.chance.random() < 0.1
        mood = self.chance.choice(self.asking) if fails else "answer"
        if mood != "answer":
            return {"cut": None, "down": (503, {}), "odd": (200, {"error": "no index"})}[mood]
        found = [one for one in self.entries if one.reference.startswith(asked["ref"][0]) and one.listed <= self.now()]
        start = int(asked.get("at", ["0"])[0])
        items = [{"id": one.number, "external": {"ref": one.reference}} for one in found[start : start + PAGE]]
        following = str(start + PAGE) if start + PAGE < len(found) else None
        return 200, {"data": {"entries": items}, "next_cursor": following}

    def has(self, reference: str) -> list[Entry]:
        return [one for one in self.entries if one.reference == reference]


FIND = (
    "find: {url: 'URL/entries', query: {ref: '{{ group.groupId }}', kind: time},"
    " entries: '{{ response.data.entries }}', reference: '{{ entry.external.ref }}', externalId: 'E{{ entry.id }}',"
    " paging: {cursor: at, at: next_cursor}, after: 60s}"
)


def finding_sink(url: str, find: str = FIND, name: str = "pms", more: str = "") -> str:
    """An `http` sink with `find`: it looks a group up at the receiver before it sends the group again."""
    body = "{ref: '{{ group.groupId }}', secs: '{{ duration.seconds }}'}"
    sink = f"- name: {name}\n  http: {{url: URL, {find}, json: {body}}}\n  externalId: 'E{{{{ response.id }}}}'\n{more}"
    return sink.replace("URL", f"{url}/api")


@contextmanager
def forgetting(now: Callable[[], float], seed: int = 0, **given: Any) -> Iterator[Forgetful]:
    with receiving() as receiver:
        found = Forgetful(now, random.Random(seed), receiver=receiver, **given)
        receiver.answer = found.answer
        yield found
