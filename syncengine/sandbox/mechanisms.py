"""The service's rules for how posted time comes: by fetch or webhook, not by both (docs/interface.md 3). Pure."""

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
    """A fetch without earlier registration turns recording on (docs/interface.md 4, fetch rule 3)."""
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
    """Whether it is this very webhook, which the sandbox can call no more: only its owner can repair that."""
    return connection.mechanism == WEBHOOK and connection.callback_url == url and connection.key_is_lost


def unregister_webhook(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    if draft.connection.mechanism != WEBHOOK:
        raise ApiError(404, "no webhook is registered")
    return _connected(draft, _of_the_team(draft, Connection()))


def _of_the_team(draft: Draft, connection: Connection) -> Connection:
    """A connection that keeps the registration and the health in force."""
    return replace(connection, health=draft.connection.health, connector=draft.connection.connector)


def no_webhook(draft: Draft) -> None:
    """Refuse operations of a fetch client while there is a webhook (docs/service.md §1)."""
    if draft.connection.mechanism == WEBHOOK:
        raise ApiError(409, "the team has a webhook: unsubscribe it before posted time is fetched")


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
