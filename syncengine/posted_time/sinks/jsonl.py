"""Lines of JSON, of which an `AppendedFile` gets one for each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from syncengine.posted_time.sinks.appended_file import mend_end
from syncengine.posted_time.templates import Json, Variables, fields_of
from syncengine.posted_time.wire import document


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines that are one JSON object each: the `body`, or the whole group, with its tag if `each_tag` has a line."""

    body: Json | None
    each_tag: bool = False

    def render(self, variables: Variables, name: str) -> bytes:
        whole = self.body(variables) if self.body else self._group(variables)
        return document(whole, f"the line of {name}") + b"\n"

    def _group(self, variables: Variables) -> dict[str, Any]:
        tag = {"tag": variables["tag"]} if self.each_tag else {}
        narrative, seconds = variables["narrative"], variables["duration"].seconds
        return {**fields_of(variables["group"]), **tag, "narrative": narrative, "seconds": seconds}

    def shown(self, content: bytes) -> Any:
        return {"json": orjson.loads(content)}

    def mend(self, file: int) -> None:
        mend_end(file, b"\n", _whole)


def _whole(last: bytes) -> bytes:
    """Return a last line without its end as a whole one, or nothing if it is torn.

    A number counts as torn, since `12` may be the beginning of `123`: if it is whole, its note brings it back.
    """
    try:
        is_torn = type(orjson.loads(last)) in (int, float)
    except orjson.JSONDecodeError:
        is_torn = True
    return b"" if is_torn else last + b"\n"
