"""The service's data as plain values, and the draft that collects the changes of one request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from syncengine.service.operations import BATCH_LIMIT

Json = dict[str, Any]
"""A JSON object of a request or an answer."""

SETTINGS = "settings"
"""The key of the only row of the table `settings`."""

CONNECTION = "connection"
"""The key of the only row of the table `connection`."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag. `fields` maps the interface's names to the values that are set; a cleared field is absent."""

    name: str
    fields: Mapping[str, Any]
    keywords: frozenset[str] = frozenset()
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def category_id(self) -> str | None:
        return self.fields.get("tagCategoryId")


@dataclass(frozen=True, slots=True)
class Category:
    """A tag category, with the service's `id`, the connected system's `external_id`, and its other `fields`."""

    id: str
    external_id: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActivityType:
    """An activity type. `touched` is the time of its last upload, in milliseconds since the epoch."""

    code: str
    label: str
    description: str = ""
    enabled: bool = False
    deleted: bool = False
    touched: int = 0


@dataclass(frozen=True, slots=True)
class SyncSession:
    """A sync session. Its `state` is open, completed, cancelled or expired."""

    id: str
    started: int
    state: str = "open"


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The sandbox's settings: its behaviour where the interface leaves the service a choice.

    `tag_limit` is `None` when the team's plan has no limit. A fetch is held for `hold_seconds`. A group is offered
    again `reoffer_seconds` after a fetch without acknowledgement, and `retry_seconds` after a retriable failure. A
    webhook is called up to `webhook_calls` times for a group, and may take `webhook_timeout_seconds` each time.
    """

    team_name: str = "Sandbox"
    tag_limit: int | None = None
    batch_limit: int = BATCH_LIMIT
    status_for_item_errors: int = 200
    hold_seconds: float = 60
    reoffer_seconds: float = 480
    retry_seconds: float = 60
    webhook_timeout_seconds: float = 30
    webhook_calls: int = 10
    connector_configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A group's status, from the connector's status update or from its webhook's answer (HTTP status `http`)."""

    at: int
    status: str
    message: str | None = None
    external_id: str | None = None
    http: int | None = None


@dataclass(frozen=True, slots=True)
class PostedTime:
    """A posted time group.

    `group` is the posted content by the interface's names, and `number` the order of posting. `recorded` is whether
    a fetch client or a webhook was registered at that time (docs/interface.md 3). `state` is posted, offered, success,
    failed or retrying. `due` is the time from which the group is offered, or `None` when it is no longer offered.
    `offers` lists the times of its offers; `calls` counts the webhook calls since it was posted.
    """

    id: str
    number: int
    group: Mapping[str, Any]
    recorded: bool
    state: str = "posted"
    due: int | None = None
    offers: tuple[int, ...] = ()
    calls: int = 0
    told: tuple[StatusUpdate, ...] = ()

    @property
    def submitted(self) -> int:
        submitted: int = self.group["submissionTime"]
        return submitted


@dataclass(frozen=True, slots=True)
class Connection:
    """The team's connector. `mechanism` is fetch, webhook or `None`.

    `health` is the reported failure and `connector` the registration, both as sent. `keyed` is whether the webhook
    was registered with a key, which is the connector's secret and is kept in memory only.
    """

    mechanism: str | None = None
    callback_url: str | None = None
    keyed: bool = False
    caller_key: str | None = None
    health: Mapping[str, Any] | None = None
    connector: Mapping[str, Any] | None = None

    @property
    def key_is_lost(self) -> bool:
        """Whether the webhook's key was lost in a restart of the sandbox. The webhook would refuse calls without it."""
        return self.keyed and self.caller_key is None


Row = Tag | Category | ActivityType | SyncSession | SandboxSettings | PostedTime | Connection
R = TypeVar("R")

Changes = dict[str, dict[str, Row | None]]
"""The changed rows by table and key. `None` stands for a deleted row."""


class World:
    """All data of the service. Two indexes find category ids by external id, and a category's tags by its id."""

    def __init__(self) -> None:
        self.tags: dict[str, Tag] = {}
        self.categories: dict[str, Category] = {}
        self.activity_types: dict[str, ActivityType] = {}
        self.sessions: dict[str, SyncSession] = {}
        self.settings: dict[str, SandboxSettings] = {SETTINGS: SandboxSettings()}
        self.posted_time: dict[str, PostedTime] = {}
        self.connection: dict[str, Connection] = {CONNECTION: Connection()}
        self.category_ids: dict[str, str] = {}
        self.members: dict[str, set[str]] = {}

    def apply(self, changes: Changes) -> None:
        """Apply the changes to the tables and the indexes."""
        for table, rows in changes.items():
            stored: dict[str, Row] = getattr(self, table)
            for key, row in rows.items():
                before = stored.pop(key, None) if row is None else stored.get(key)
                self._forget(before)
                if row is not None:
                    stored[key] = row
        for rows in changes.values():
            for row in rows.values():
                self._index(row)

    def _forget(self, row: Row | None) -> None:
        if isinstance(row, Tag) and row.category_id:
            self.members[row.category_id].discard(row.name)
        elif isinstance(row, Category):
            self.category_ids.pop(row.external_id, None)

    def _index(self, row: Row | None) -> None:
        if isinstance(row, Tag) and row.category_id:
            self.members.setdefault(row.category_id, set()).add(row.name)
        elif isinstance(row, Category):
            self.category_ids[row.external_id] = row.id


class DraftTable(Generic[R]):
    """A table as one request sees it: the stored rows, overlaid with the request's changes."""

    def __init__(self, stored: Mapping[str, R]) -> None:
        self.stored = stored
        self.changes: dict[str, R | None] = {}

    def get(self, key: str) -> R | None:
        return self.changes[key] if key in self.changes else self.stored.get(key)

    def put(self, key: str, row: R) -> None:
        self.changes[key] = row

    def drop(self, key: str) -> None:
        self.changes[key] = None

    def growth(self) -> int:
        """Return the number of rows added, less the number of rows deleted."""
        return sum((row is not None) - (key in self.stored) for key, row in self.changes.items())


class Draft:
    """The changes that one request makes to the world. They are discarded when the request is refused."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tags = DraftTable(world.tags)
        self.categories = DraftTable(world.categories)
        self.activity_types = DraftTable(world.activity_types)
        self.sessions = DraftTable(world.sessions)
        self.settings = DraftTable(world.settings)
        self.posted_time = DraftTable(world.posted_time)
        self.connections = DraftTable(world.connection)
        self.category_ids = DraftTable(world.category_ids)

    @property
    def chosen(self) -> SandboxSettings:
        """The settings in force."""
        return self.settings.get(SETTINGS) or SandboxSettings()

    @property
    def connection(self) -> Connection:
        return self.connections.get(CONNECTION) or Connection()

    def connect(self, connection: Connection) -> None:
        self.connections.put(CONNECTION, connection)

    def changes(self) -> Changes:
        """Return the changed rows of all tables. The indexes are derived from them."""
        tables: dict[str, Mapping[str, Row | None]] = {
            "tags": self.tags.changes,
            "categories": self.categories.changes,
            "activity_types": self.activity_types.changes,
            "sessions": self.sessions.changes,
            "settings": self.settings.changes,
            "posted_time": self.posted_time.changes,
            "connection": self.connections.changes,
        }
        return {table: dict(rows) for table, rows in tables.items() if rows}
