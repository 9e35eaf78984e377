"""Connect to a project's service: its key, endpoints and client, and the team to which the key belongs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from syncengine.errors import AuthFailed, Unreachable, WrongTeam
from syncengine.project.model import Project
from syncengine.project.runner import Holder
from syncengine.project.signals import not_ignored
from syncengine.service.client import Client, Conduct, Endpoint
from syncengine.service.operations import OPERATIONS, TEAM_INFO
from syncengine.state.connector import bind
from syncengine.state.database import LockLost
from syncengine.state.folder_memory import FolderMemory, memory_of
from syncengine.state.store import State, open_state

AGAIN = "repeat unchanged once it answers"
RIGHT_PLACE = f"check `service.baseUrl`; if it is right, {AGAIN}"


class ApiKey:
    """The project's API key, looked up once, and again when a fresh key is requested."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._key = project.api_key()

    def __call__(self, *, fresh: bool = False) -> str:
        if fresh:
            self._key = self._project.api_key()
        return self._key


def client_of(project: Project, base_url: str, conduct: Conduct | None = None) -> Client:
    """Return a client for the project's service at `base_url`."""
    conduct = replace(conduct or Conduct(), is_local=project.is_sandbox)
    return Client(base_url, ApiKey(project), endpoints=endpoints_of(project), conduct=conduct)


def unproven_paths(project: Project, state: State) -> dict[str, str]:
    """Return the non-default paths of operations that never answered with a 2xx, by operation.

    The default path of an operation needs no proof, nor does one that the project file confirms.
    """
    answering = state.answering_paths()
    confirmed = {id for id, endpoint in project.service.endpoints.items() if endpoint.confirmed}
    places = {id: _place(endpoint) for id, endpoint in endpoints_of(project).items() if id not in confirmed}
    usual = {id: _place(Endpoint(OPERATIONS[id].method, OPERATIONS[id].path)) for id in places}
    return {id: place for id, place in places.items() if place != usual[id] and (id, place) not in answering}


def _place(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def endpoints_of(project: Project) -> dict[str, Endpoint]:
    """Return the methods and paths that the project file sets for operations."""
    return {
        id: Endpoint(endpoint.method or OPERATIONS[id].method, endpoint.path or OPERATIONS[id].path)
        for id, endpoint in project.service.endpoints.items()
    }


async def team_of(client: Client) -> str:
    """Return the name of the team to which the key belongs. Raise `AuthFailed` or `Unreachable` without it."""
    answer = await client.call(TEAM_INFO)
    if answer.status in (401, 403):
        raise AuthFailed(f"the service rejected the API key: {answer.summary}")
    team = answer.data.get("teamName") if answer.ok and isinstance(answer.data, dict) else None
    if isinstance(team, str):
        return team
    path = client.path(TEAM_INFO)
    if answer.diverted:
        message = f"nothing was sent: {answer.text}"
    elif answer.status is None:
        cure = AGAIN if answer.reached else RIGHT_PLACE
        message = f"the service cannot be reached, and nothing was sent: {answer.summary}; {cure}"
    elif answer.exhausted:
        message = f"the service failed, and nothing was sent: {path} answered {answer.summary}; {AGAIN}"
    elif answer.ok:
        message = f"{path} does not name the team, and nothing was sent: {answer.summary}; {RIGHT_PLACE}"
    else:
        message = f"{path} answered {answer.summary}, and nothing was sent; {RIGHT_PLACE}"
    raise Unreachable(message)


def check_team(team: str, project: Project, team_of_state: str | None) -> None:
    """Raise `WrongTeam` if the project or the state is set to another team than `team` (docs/planning.md 1.6)."""
    if project.service.team not in (None, team):
        message = f"the key belongs to team {team!r}, but `service.team` is {project.service.team!r}"
        raise WrongTeam(f"{message}: use that team's key or correct the setting")
    if team_of_state not in (None, team):
        message = f"the key belongs to team {team!r}, but the state to {team_of_state!r}"
        raise WrongTeam(f"{message}; if the team was renamed, run `syncengine state rebind`")


async def prove_team(client: Client, project: Project, *, binds: bool = True) -> str:
    """Return the team to which the key belongs. A state without a team is bound to it, unless `binds` is false.

    Raise `WrongTeam` if the project or the state has another team, `AuthFailed` or `Unreachable` without an answer, so
    that no other team's time is fetched or delivered.
    """
    team_of_state = await asyncio.to_thread(_known_team, project, memory_of(project) if binds else None)
    team = await team_of(client)
    check_team(team, project, team_of_state)
    if binds and team_of_state is None:
        await asyncio.to_thread(bind, project.state, team)
    return team


def _known_team(project: Project, memory: FolderMemory | None = None) -> str | None:
    with open_state(project.state, write=False, memory=memory) as state:
        return state.facts().team


def rebind_team(
    project: Project, environ: Mapping[str, str], serving: Callable[[], AbstractContextManager[str]]
) -> tuple[str | None, str]:
    """Bind the state to the team of the key, and return the team's name before (`None` if unknown) and now.

    The context of `serving` makes the service reachable, and yields its base URL.
    """
    service = project.service
    with open_state(project.state, write=True, memory=memory_of(project)) as state:
        lease = state.lock(
            Holder.here("state rebind", environ), wait=service.lock_timeout, request_timeout=service.timeout
        )
        with lease, serving() as base_url:
            before = state.facts().team

            async def ask() -> str:
                async with client_of(project, base_url) as client:
                    return await team_of(client)

            team = asyncio.run(ask())
            state.set_facts(base_url=project.base_url(), team=team)
    return before, team


def prove_lease(state: State, timeout: float) -> None:
    """Raise `LockLost` unless the lease outlives the next call (docs/planning.md 1.5)."""
    words = "the lock was lost, and another run may hold it: nothing more is sent"
    if state.lease is None:
        raise LockLost(words)
    state.lease.refuse_lost(words, timeout)


@contextmanager
def stopping_on_signals(
    stop: asyncio.Event,
    tell: Callable[[], object] = lambda: None,
    at_once: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Set `stop` on SIGINT or SIGTERM and call `tell`; on a second signal, call `at_once` or cancel the task."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "a loop's signals belong to a task"
    hurry = at_once or task.cancel

    def heard() -> None:
        if stop.is_set():
            hurry()
        else:
            stop.set()
            tell()

    before = {number: signal.getsignal(number) for number in not_ignored((signal.SIGINT, signal.SIGTERM))}
    for number in before:
        loop.add_signal_handler(number, heard)
    try:
        yield
    except asyncio.CancelledError:
        if at_once is None and task.cancelling():
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
