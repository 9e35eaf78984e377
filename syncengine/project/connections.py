"""Turn a source's name or a URL into a connection: URL, headers and secrets. Opens nothing.

Secrets are read anew each time they are needed. `what` describes a secret in the message that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from syncengine.project.delivery_schema import (
    HttpSinkConfig,
    HttpSourceSection,
    LookupQuery,
    SourceConfig,
    SqlSinkConfig,
)
from syncengine.project.references import URL, Reference, located, may_be_path, secret_at, setting_problem
from syncengine.project.types import Written

HTTP_TIMEOUT = 30.0
"""Seconds to wait for an answer when neither the source nor the sink sets `timeout`."""


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """The address of an HTTP service. `headers` are as written; `secrets` are readers of secret headers."""

    url: Callable[[], str]
    headers: Mapping[str, Written | Reference]
    secrets: Mapping[str, Callable[[], str]]
    timeout: float


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections under `sources:` of one project, by name."""

    sources: Mapping[str, SourceConfig]
    root: Path
    environ: Mapping[str, str] = field(repr=False)

    def database(self, config: LookupQuery | SqlSinkConfig, owner: str) -> tuple[str, str]:
        """Return the display name and the URL of a database; without a source, `owner` is its name."""
        name = f"source {config.source.text}" if config.source else owner
        place = self.sources[config.source.text].sql if config.source else config.url
        assert place is not None
        return name, self.database_url(place, f"the database of {name}")

    def database_url(self, place: Reference | str, what: str) -> str:
        """Return the URL or path of a database. Raise `Problems` when it cannot be determined or is neither."""
        text = self.reader(place, what)()
        if not URL.match(text) and not may_be_path(text):
            expected = "a path, sqlite:///PATH, postgresql://USER@HOST/DATABASE or mssql+pyodbc://USER@HOST/DATABASE"
            message = f"{what} is neither a URL nor a path: expected {expected}"
            raise setting_problem("database-url", f"{message}, not a connection string such as `Server=…;Database=…`")
        return located(text, self.root)

    def http(
        self, config: HttpSinkConfig | HttpSourceSection, what: str, header: Callable[[str], str]
    ) -> HttpConnection:
        """Return the connection of a source or sink; a sink's settings win. `header` describes a secret header."""
        named = self.sources[config.source.text].http if isinstance(config, HttpSinkConfig) and config.source else None
        url = named.url if named else config.url
        assert url is not None
        headers = {**((named and named.headers) or {}), **(config.headers or {})}
        references = {name: value for name, value in headers.items() if isinstance(value, Reference)}
        return HttpConnection(
            self.reader(url, what),
            headers,
            {name: self.reader(value, header(name)) for name, value in references.items()},
            config.timeout or (named and named.timeout) or HTTP_TIMEOUT,
        )

    def reader(self, setting: Reference | str, what: str) -> Callable[[], str]:
        """Return a function that reads a setting anew. `what` describes it in the message that it is missing."""
        if isinstance(setting, str):
            return lambda: setting
        return secret_at(setting, self.root, self.environ, what).read
