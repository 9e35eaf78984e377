"""The sandbox with a key that can be exchanged while it runs: `python -m trials.soak.service PORT KEYFILE`.

The key in the file is the one that counts, at any time.
"""

from __future__ import annotations

import sys
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from syncengine.http.server import origin_form
from syncengine.sandbox import app

INNER = "inner-key-of-the-sandbox"
HEADER = b"x-api-key"


class Exchanged:
    """Passes requests on, with the sandbox's own key in place of the one in the file."""

    def __init__(self, inner: ASGIApp, file: Path) -> None:
        self._inner = inner
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            key = self._file.read_bytes().strip()
            headers = [(n, INNER.encode() if n == HEADER and v == key else v) for n, v in scope["headers"]]
            scope = {**scope, "headers": headers}
        await self._inner(scope, receive, send)


def main(port: int, file: Path) -> None:
    def exchanging(application: ASGIApp) -> ASGIApp:
        return Exchanged(origin_form(application), file)

    assert app.origin_form is origin_form  # type: ignore[attr-defined] # the layer that is replaced: `app` imports it
    app.origin_form = exchanging  # type: ignore[attr-defined] # the same
    app.serve("127.0.0.1", port, None, INNER)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
