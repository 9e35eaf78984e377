"""Fetch or webhook: registering one, after the other one was unregistered; they exclude each other (409).

This project's last registration is in its state; only that is ended unasked. A fetch client has no address, so one
that blocks the webhook of the project file is ended too; a foreign webhook never is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.project.model import Project
from syncengine.project.references import Secret, secret_at
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.operations import (
    REGISTER_FETCH_CLIENT,
    REGISTER_WEBHOOK,
    UNREGISTER_FETCH_CLIENT,
    UNREGISTER_WEBHOOK,
    Operation,
)
from syncengine.service.posted_time import refusal
from syncengine.state import mechanism as store
from syncengine.state.inbox_states import FETCH, WEBHOOK
from syncengine.state.mechanism import Mechanism

ENDING: dict[str, Operation] = {FETCH: UNREGISTER_FETCH_CLIENT, WEBHOOK: UNREGISTER_WEBHOOK}


class MechanismTaken(SyncengineError):
    """The team has the other mechanism, and it is not this project's to end."""

    code = "mechanism-taken"


@dataclass(frozen=True, slots=True)
class Callback:
    """The address that the service calls, and the key that it shows."""

    url: str
    key: Secret


class NotRegistered(SyncengineError):
    """The service has no key of ours yet, so that nobody can prove to be the service."""

    code = "not-registered"


@dataclass(slots=True)
class CallerKey:
    """The key that the service took last: it calls with that one, whatever the project file says. None: not now."""

    current: str | None = None

    def read(self) -> str:
        if self.current is None:
            raise NotRegistered("the webhook is not registered yet")
        return self.current


def callback_of(project: Project, environ: Mapping[str, str]) -> Callback:
    """The webhook of the project file; Problems for missing settings."""
    section = project.posted_time.webhook if project.posted_time else None
    if section is None or section.callback_url is None:
        raise _missing("`postedTime.webhook.callbackUrl` is needed: where the service calls this receiver")
    if section.caller_key is None:
        raise _missing("`postedTime.webhook.callerKey` is needed: without it anybody could post time")
    return Callback(section.callback_url, secret_at(section.caller_key, project.root, environ, "the caller key"))


def _missing(message: str) -> Problems:
    return Problems([Diagnostic(severity=Severity.ERROR, code="missing-setting", message=message)])


class Registrar:
    """Registers and unregisters for the project whose state is at `state`. `say` hears each step, in a sentence.

    `before_leaving_fetch` is run before a fetch client is unregistered: fetched groups are answered until then.
    `caller_key` is kept as the service has it.
    """

    def __init__(
        self,
        client: Client,
        state: str,
        base_url: str,
        say: Callable[[str], None],
        before_leaving_fetch: Callable[[], Awaitable[object]] | None = None,
        caller_key: CallerKey | None = None,
    ) -> None:
        self._client = client
        self._state = state
        self._base_url = base_url
        self._say = say
        self._before_leaving_fetch = before_leaving_fetch
        self._caller_key = caller_key or CallerKey()

    async def fetch(self) -> None:
        """A fetch client. One that is there already is taken for ours: it has no name."""
        name = await self._name()
        if name == WEBHOOK:
            await self.end(WEBHOOK)
        answer = await self._client.call(REGISTER_FETCH_CLIENT, {})
        if not answer.ok and answer.status != 409:
            raise refusal(REGISTER_FETCH_CLIENT, self._client, answer)
        self._say("a fetch client is registered" if answer.ok else _already(name == FETCH, answer))
        await self._remember(Mechanism(FETCH, self._base_url))

    async def webhook(self, callback: Callback) -> None:
        """A webhook with the project's callback URL and key, registered anew only where they differ."""
        key = callback.key.read()
        before = await self._mechanism()
        kept = before is not None and before.callback_url == callback.url and before.has_key(key)
        if kept:
            self._caller_key.current = key
        else:
            await self._make_room(before)
        answer = await (self._subscribed if kept else self._subscribed_anew)(callback, key)
        if answer.status == 409 and not kept:
            raise self._foreign(answer)
        if not answer.ok and answer.status != 409:
            raise refusal(REGISTER_WEBHOOK, self._client, answer)
        self._caller_key.current = key
        self._say(f"a webhook is registered{'' if answer.ok else ' already'}: {callback.url}")

    async def end(self, name: str) -> bool:
        """Unregister; False when the service had none."""
        answer = await self._ended(name)
        if answer.status == 409:
            other = FETCH if name == WEBHOOK else WEBHOOK
            self._say(f"the team has a {NAMES[other]}: `syncengine time unregister {other}` ends that")
        return answer.ok

    async def _ended(self, name: str) -> Answer:
        """The answer: 2xx, or that there was none (404), or that there is the other one (409)."""
        if name == FETCH and self._before_leaving_fetch is not None:
            await self._before_leaving_fetch()
        answer = await self._client.call(ENDING[name], {})
        if not answer.ok and answer.status not in (404, 409):
            raise refusal(ENDING[name], self._client, answer)
        if name == WEBHOOK:
            self._caller_key.current = None
        if await self._name() == name:
            await self._remember(None)
        if answer.ok:
            self._say(f"the {NAMES[name]} is unregistered")
        return answer

    async def _subscribed_anew(self, callback: Callback, key: str) -> Answer:
        """Record the webhook, then register it: after a crash or a lost answer, it must not look like a foreign one."""
        digest = await asyncio.to_thread(store.digest, key)
        await self._remember(Mechanism(WEBHOOK, self._base_url, callback.url, digest))
        answer = await self._subscribed(callback, key)
        if not answer.ok and not answer.exhausted:
            await self._remember(None)
        return answer

    async def _subscribed(self, callback: Callback, key: str) -> Answer:
        """Register the webhook; return the answer without its body and with the key masked, which it may repeat."""
        answer = await self._client.call(REGISTER_WEBHOOK, {"callbackUrl": callback.url, "callerKey": key})
        return replace(answer, data=None, unread=b"", text=answer.text.replace(key, "***"))

    async def _make_room(self, before: Mechanism | None) -> None:
        """End the registration of this project, and any fetch client: nobody else's webhook.

        Asking to end a fetch client is also how a foreign webhook is known before ours is remembered: were it known
        only when ours is refused, a crash between the two would make it look like ours, and nobody would ever call.
        """
        if before is not None and before.name == WEBHOOK:
            await self._ended(WEBHOOK)
        answer = await self._ended(FETCH)
        if answer.status == 409:
            raise self._foreign(answer)

    @staticmethod
    def _foreign(refused: Answer) -> MechanismTaken:
        return MechanismTaken(
            f"the team has a webhook that this project did not register ({refused.summary});"
            " `syncengine time unregister webhook` removes it, whoever registered it"
        )

    async def _mechanism(self) -> Mechanism | None:
        """The registration at this service; one at another service says nothing."""
        mechanism = await asyncio.to_thread(store.registered, self._state)
        return mechanism if mechanism is not None and mechanism.base_url == self._base_url else None

    async def _name(self) -> str | None:
        mechanism = await self._mechanism()
        return mechanism.name if mechanism else None

    async def _remember(self, mechanism: Mechanism | None) -> None:
        if await self._mechanism() != mechanism:
            await asyncio.to_thread(store.remember, self._state, mechanism)


def _already(is_ours: bool, refused: Answer) -> str:
    """The meaning of a 409: there is a fetch client, or a webhook, and the service does not say which."""
    if is_ours:
        return "a fetch client was registered already, by this project: nothing changed"
    return (
        f"nothing changed: the team has a fetch client already, or a webhook ({refused.summary});"
        " if it is a webhook, `syncengine time pull` says so"
    )


NAMES = {FETCH: "fetch client", WEBHOOK: "webhook"}
