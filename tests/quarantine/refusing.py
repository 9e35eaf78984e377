"""A service that refuses resources by name with a given message, and otherwise follows the sandbox's rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from syncengine.sandbox.store import CATEGORIES, TAGS, TYPES
from syncengine.service.operations import OPERATIONS
from tests.applying.picky import Picky, Refusal, picky

WORDS = "the code is reserved"
NAMES = ("tagName", "name", "externalId", "code")


class Refusing:
    """`refused` maps names of tags, externalIds and codes, as in requests, to messages."""

    def __init__(self, service: Picky) -> None:
        self._service = service
        self.url = service.url
        self.refused: dict[str, str] = {}
        self.operations: dict[str, tuple[int, Any]] = {}
        service.refuses = self._answer

    def refuse(self, *names: str, words: str = WORDS) -> None:
        self.refused |= dict.fromkeys(names, words)

    def heal(self) -> None:
        self.refused.clear()
        self.operations.clear()

    def _answer(self, operation: str, body: Any) -> Refusal | None:
        if operation in self.operations:
            return self.operations[operation]
        items = body.get(OPERATIONS[operation].items)
        named = [next((item[name] for name in NAMES if item.get(name)), "") for item in items or [body]]
        refused = [(index, self.refused[name]) for index, name in enumerate(named) if name in self.refused]
        if not refused:
            return None
        errors = [{"index": index, "errorDescription": words} for index, words in refused]
        return 400, {"errors": errors} if items else {"message": refused[0][1]}

    def sent(self, operation: str) -> list[list[str]]:
        return self._service.sent(operation)

    def tags(self) -> set[str]:
        return set(self._service.rules.store.keys(TAGS))

    def categories(self) -> set[str]:
        return {row["externalId"] for row in self._service.rules.store.rows(CATEGORIES)}

    def types(self) -> set[str]:
        return {row["code"] for row in self._service.rules.store.rows(TYPES) if not row["deleted"]}


@contextmanager
def refusing() -> Iterator[Refusing]:
    with picky() as service:
        yield Refusing(service)
