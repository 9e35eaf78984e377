"""Register a fetch client or a webhook, after unregistering the other: the service allows only one (409).

The project's last registration is kept in its state, and only that registration is ended automatically. A fetch client
has no owner, so any fetch client that blocks the project's webhook is ended too; a foreign webhook never is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

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
from syncengine.state import connector as store
from syncengine.state.connector import Mechanism
from syncengine.state.inbox_model import FETCH, WEBHOOK

ENDING: dict[str, Operation] = {FETCH: UNREGISTER_FETCH_CLIENT, WEBHOOK: UNREGISTER_WEBHOOK}
NAMES = {FETCH: "fetch client", WEBHOOK: "webhook"}


class MechanismTaken(SyncengineError):
    """Raised when the team has another mechanism, which this project did not register and must not end."""

    code = "mechanism-taken"


@dataclass(frozen=True, slots=True)
class Callback:
    """The URL of a webhook that the service calls, and the key that it sends."""

    url: str
    key: Secret


class NotRegistered(SyncengineError):
    """Raised when no caller key is registered yet, so that no caller can be authenticated."""

    code = "not-registered"


@dataclass(slots=True)
class CallerKey:
    """The key that the service accepted last and calls with, whatever the project file says. `None` without one."""

    current: str | None = None

    def read(self) -> str:
        if self.current is None:
            raise NotRegistered("the webhook is not registered yet")
        return self.current


def callback_of(project: Project, environ: Mapping[str, str]) -> Callback:
    """Return the webhook that the project file configures. Raise `Problems` for missing settings."""
    section = project.posted_time.webhook if project.posted_time else None
    if section is None or section.callback_url is None:
        message = "set `postedTime.webhook.callbackUrl` to the URL at which the service calls this receiver"
    elif section.caller_key is None:
        message = "set `postedTime.webhook.callerKey` to a secret: without it, anyone could post time"
    else:
        return Callback(section.callback_url, secret_at(section.caller_key, project.root, environ, "the caller key"))
    raise Problems([Diagnostic(severity=Severity.ERROR, code="missing-setting", message=message)])


@dataclass(eq=False, repr=False)
class Registrar:
    """The registration of mechanisms for the project whose state is at `state`. `say` gets a message for each step.

    `before_leaving_fetch` runs before a fetch client is unregistered, to acknowledge fetched groups while that is
    possible. `caller_key` is updated to the key that the service has.
    """

    client: Client
    state: str
    base_url: str
    say: Callable[[str], None]
    before_leaving_fetch: Callable[[], Awaitable[object]] | None = None
    caller_key: CallerKey = field(default_factory=CallerKey)

    async def fetch(self) -> None:
        """Register a fetch client. An existing one is taken for this project's, since it has no owner."""
        before = await self._mechanism()
        if before is not None and before.name == WEBHOOK:
            await self.end(WEBHOOK)
        answer = await self.client.call(REGISTER_FETCH_CLIENT, {})
        if not answer.ok and answer.status != 409:
            raise refusal(REGISTER_FETCH_CLIENT, self.client, answer)
        if answer.ok:
            self.say("registered a fetch client")
        elif before is not None and before.name == FETCH:
            self.say("nothing changed: this project has already registered a fetch client")
        else:  # a 409 does not say which of both the team has
            self.say(
                f"nothing changed: the team already has a fetch client or a webhook ({answer.summary});"
                " to see which, run `syncengine time pull`"
            )
        await self._remember(Mechanism(FETCH, self.base_url))

    async def webhook(self, callback: Callback) -> None:
        """Register the project's callback URL and key as a webhook. Replace an existing one only if they changed.

        Raise `MechanismTaken` when a foreign webhook exists.
        """
        key = callback.key.read()
        before = await self._mechanism()
        kept = before is not None and before.callback_url == callback.url and before.has_key(key)
        if kept:
            self.caller_key.current = key
        else:
            if before is not None and before.name == WEBHOOK:
                await self._ended(WEBHOOK)
            # The foreign webhook must be found before ours is recorded: after a crash in between, it would look like
            # ours, and no call would ever come.
            answer = await self._ended(FETCH)
            if answer.status == 409:
                raise _foreign(answer)
            # Recorded before it is registered, so that it does not look foreign after a crash or a lost answer.
            digest = await asyncio.to_thread(store.digest, key)
            await self._remember(Mechanism(WEBHOOK, self.base_url, callback.url, digest))
        answer = await self.client.call(REGISTER_WEBHOOK, {"callbackUrl": callback.url, "callerKey": key})
        answer = replace(answer, data=None, text=answer.text.replace(key, "***"))  # it may quote the key
        if not kept and not answer.ok and not answer.exhausted:
            await self._remember(None)
        if answer.status == 409 and not kept:
            raise _foreign(answer)
        if not answer.ok and answer.status != 409:
            raise refusal(REGISTER_WEBHOOK, self.client, answer)
        self.caller_key.current = key
        self.say(f"{'registered the webhook' if answer.ok else 'the webhook is already registered'}: {callback.url}")

    async def end(self, name: str) -> bool:
        """Unregister a mechanism. Return `False` when the service had none."""
        answer = await self._ended(name)
        if answer.status == 409:
            other = FETCH if name == WEBHOOK else WEBHOOK
            self.say(f"the team has a {NAMES[other]}: to remove it, run `syncengine time unregister {other}`")
        return answer.ok

    async def _ended(self, name: str) -> Answer:
        """Unregister a mechanism, and return the answer: 404 when there is none, or 409 when there is the other one."""
        if name == FETCH and self.before_leaving_fetch is not None:
            await self.before_leaving_fetch()
        answer = await self.client.call(ENDING[name], {})
        if not answer.ok and answer.status not in (404, 409):
            raise refusal(ENDING[name], self.client, answer)
        if name == WEBHOOK:
            self.caller_key.current = None
        mechanism = await self._mechanism()
        if mechanism is not None and mechanism.name == name:
            await self._remember(None)
        if answer.ok:
            self.say(f"unregistered the {NAMES[name]}")
        return answer

    async def _mechanism(self) -> Mechanism | None:
        """Return the recorded registration at this service, or `None`. One at another service is ignored."""
        mechanism = await asyncio.to_thread(store.registered_mechanism, self.state)
        return mechanism if mechanism is not None and mechanism.base_url == self.base_url else None

    async def _remember(self, mechanism: Mechanism | None) -> None:
        if await self._mechanism() != mechanism:
            await asyncio.to_thread(store.remember_mechanism, self.state, mechanism)


def _foreign(refused: Answer) -> MechanismTaken:
    return MechanismTaken(
        f"the team has a webhook that this project did not register ({refused.summary});"
        " to remove it nevertheless, run `syncengine time unregister webhook`"
    )
