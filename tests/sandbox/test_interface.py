"""The interface over HTTP: keys, paths, methods and bodies."""

from __future__ import annotations

import signal
import socket
import threading

import httpx
import pytest

from syncengine.errors import SyncengineError
from syncengine.sandbox.app import API_KEY, running_sandbox
from syncengine.service.operations import OPERATIONS, Operation
from tests.support import loopback

from .conftest import Talking

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


@EACH
def test_each_operation_answers_at_its_path_and_method(running: Talking, operation: Operation) -> None:
    """Called with an empty object, an operation succeeds or names what is missing; its path is never unknown."""
    running.control("/settings", {"holdSeconds": 0})
    response = running.connector.request(operation.method, operation.path, json={})
    assert response.status_code in (200, 204, 400, 404)
    assert "there is nothing at" not in response.text
    assert [entry["operation"] for entry in running.requests()] == [operation.id]
    assert running.connector.delete(operation.path).status_code == 405


@pytest.mark.parametrize("key", [None, "", "wrong", "Sandbox", "schlüssel"])
@pytest.mark.parametrize("path", ["/tag", "/nowhere", "/team/info"])
def test_without_the_key_everything_is_401(running: Talking, key: str | None, path: str) -> None:
    """docs/interface.md 5: the key is checked before the path, the method, the body and any fault."""
    running.fault(operation="*", status=503)
    headers = {} if key is None else {b"x-api-key": key.encode()}
    url = running.connector.base_url.join(f"/connect/api{path}")
    assert loopback.post(url, headers=headers, content="{").status_code == 401


@pytest.mark.parametrize("path", ["/nowhere", "/tag/", "/", "/tag/metadata"])
def test_an_unknown_path_is_404(running: Talking, path: str) -> None:
    """A path must match exactly."""
    assert running.post(path, {}).status_code == 404


@pytest.mark.parametrize("body", ["{", "[]", '"text"', "null", "[1", '{"name": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_object_is_400(running: Talking, body: str | bytes) -> None:
    """The next request on the same connection still works."""
    assert running.connector.post("/tag", content=body).status_code == 400
    assert running.post("/tag", {"name": "T"}).status_code == 200
    assert running.names() == ["T"]


@pytest.mark.parametrize("body", [b"", b"{}", b" "])
def test_operations_without_a_body_take_an_empty_one_or_none(running: Talking, body: bytes) -> None:
    """docs/service.md §1."""
    assert running.connector.post("/activitytype/sync/start", content=body).status_code == 200
    assert running.connector.request("GET", "/team/info", content=body).json() == {"teamName": "Sandbox"}


def test_names_of_any_script_come_through(running: Talking) -> None:
    name = "Ærø – 商標 🏷 \u0000'"
    running.post("/tag", {"name": name})
    assert running.names() == [name]


def test_an_embedded_sandbox_leaves_signal_handlers_and_threads_as_they_were() -> None:
    """A sandbox that runs inside `apply` must not change how `apply` handles signals."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threads = threading.active_count()
    with running_sandbox(api_key="k") as running:
        assert loopback.get(f"{running.url}/team/info", headers={"x-api-key": "k"}).status_code == 200
        assert {number: signal.getsignal(number) for number in handlers} == handlers
    assert threading.active_count() == threads
    with pytest.raises(httpx.ConnectError):
        loopback.get(f"{running.url}/team/info")


@pytest.mark.parametrize("path", ["/team/info", "/postedtime"], ids=["a delayed answer", "a held fetch"])
def test_a_sandbox_stops_although_a_client_waits(path: str) -> None:
    """A client that waits for a delayed answer is cut off; a held fetch may still be answered."""
    with loopback.client(headers={"x-api-key": API_KEY}) as client, running_sandbox() as running:
        loopback.post(f"{running.control_url}/faults", json=[{"operation": "teamInfo", "delay": 3600}])
        ended: list[str] = []

        def wait() -> None:
            try:
                ended.append(client.get(f"{running.url}{path}", timeout=60).text)
            except httpx.RemoteProtocolError:
                ended.append("cut off")

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not loopback.get(f"{running.control_url}/requests").json()["requests"]:
            pass
    waiting.join()
    assert ended in (["cut off"], ["[]"])


def test_an_address_that_is_taken_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SyncengineError, match=rf"127.0.0.1:{port}: Address already in use; .* --port"),
            running_sandbox(port=port),
        ):
            pass
