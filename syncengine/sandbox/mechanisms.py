"""The service's rules for receiving posted time by fetch or by webhook, but not both (docs/interface.md 3). Pure."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from syncengine.sandbox.request import TEXT, ApiError, RuleAnswer, RuleRequest, read_fields, required
from syncengine.sandbox.world import Connection, Draft

FETCH = "fetch"
WEBHOOK = "webhook"


def register_fetch(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    _none_yet(draft)
    return _connected(draft, replace(draft.connection, mechanism=FETCH))


def register_fetch_implicitly(draft: Draft) -> None:
    """Register a fetch client by its first fetch, which turns recording on (docs/interface.md 4, fetch rule 3)."""
    no_webhook(draft)
    if draft.connection.mechanism is None:
        _connected(draft, replace(draft.connection, mechanism=FETCH))


def unregister_fetch(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    no_webhook(draft)
    if draft.connection.mechanism is None:
        raise ApiError(404, "no fetch client is registered")
    return _connected(draft, replace(draft.connection, mechanism=None))


def register_webhook(draft: Draft, request: RuleRequest) -> RuleAnswer:
    values = read_fields(request.body, {"callbackUrl": TEXT, "callerKey": TEXT})
    url = required(values, "callbackUrl")
    if not _is_callable(url):
        raise ApiError(400, "callbackUrl must be an http or https URL")
    if not _lost_its_key(draft.connection, url):
        _none_yet(draft)
    key = values.get("callerKey")
    hook = Connection(WEBHOOK, url, keyed=key is not None, caller_key=key)
    return _connected(draft, _of_the_team(draft, hook))


def _lost_its_key(connection: Connection, url: str) -> bool:
    """Return whether the webhook at `url` is registered but its key is lost. Registering it again restores the key."""
    return connection.mechanism == WEBHOOK and connection.callback_url == url and connection.key_is_lost


def unregister_webhook(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    if draft.connection.mechanism != WEBHOOK:
        raise ApiError(404, "no webhook is registered")
    return _connected(draft, _of_the_team(draft, Connection()))


def _of_the_team(draft: Draft, connection: Connection) -> Connection:
    """Return `connection` with the team's current connector registration and health failure."""
    return replace(connection, health=draft.connection.health, connector=draft.connection.connector)


def no_webhook(draft: Draft) -> None:
    """Refuse an operation of a fetch client while a webhook is registered (docs/service.md §1)."""
    if draft.connection.mechanism == WEBHOOK:
        raise ApiError(409, "the team has a webhook; unregister it before fetching posted time")


def _none_yet(draft: Draft) -> None:
    if draft.connection.mechanism is not None:
        raise ApiError(409, f"the team already has a {_NAMES[draft.connection.mechanism]}")


_NAMES = {FETCH: "fetch client", WEBHOOK: "webhook"}


def _connected(draft: Draft, connection: Connection) -> RuleAnswer:
    draft.connect(connection)
    return RuleAnswer(200, {})


def _is_callable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
