"""A service on loopback that lists groups as a function decides, and records the requests that it gets."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.quiet import QuietHandler, listening

Group = dict[str, Any]
Page = Callable[[int, int | None], Any]
"""The limit, and `submittedBefore` if it was sent → groups, the bytes of an answer, or a status with bytes."""


@dataclass
class Lister:
    url: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def listing(page: Page, team: str = "sandbox") -> Iterator[Lister]:
    lister = Lister()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            lister.requests.append(f"{self.command} {parts.path}")
            query = {name: int(value) for name, value in parse_qsl(parts.query)}
            is_list = parts.path.endswith("/postedtime/list")
            answer = page(query.get("limit", 100), query.get("submittedBefore")) if is_list else {"teamName": team}
            status, body = answer if isinstance(answer, tuple) else (200, answer)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.say(status, content, {"Content-Type": "application/json"})

    with listening(Handler) as url:
        lister.url = f"{url}/connect/api"
        yield lister


def group(number: int, at: int, *tags: str | Group, **more: Any) -> Group:
    named = [tag if isinstance(tag, dict) else {"name": tag} for tag in tags]
    return {"groupId": f"g{number}", "submissionTime": at, "tags": named, **more}


def obedient(groups: list[Group]) -> Page:
    """A page function that follows the API: the groups before an instant, newest first, up to the limit."""
    ordered = sorted(groups, key=lambda each: -each["submissionTime"])

    def page(limit: int, before: int | None) -> list[Group]:
        return [each for each in ordered if before is None or each["submissionTime"] < before][:limit]

    return page
