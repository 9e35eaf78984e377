"""`syncengine sandbox` as a process: its address, its API key and its data file."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.cli.program import Project, ended
from tests.support import loopback

KEY = "a-key-of-its-own"


@contextmanager
def started(folder: Path, *options: str) -> Iterator[str]:
    """Run `syncengine sandbox` and yield the base URL that it prints; it ends with SIGTERM, and without a traceback."""
    process = Project(folder, "sandbox").start("sandbox", "--port", "0", *options)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    try:
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        done = ended(process)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err


def team(url: str, key: str) -> int:
    return loopback.get(f"{url}/team/info", headers={"x-api-key": key}).status_code


def test_defaults_are_loopback_the_sandbox_key_and_the_projects_folder(tmp_path: Path) -> None:
    """The interface, the control API and the console may each lose a client in the middle of a request."""
    with started(tmp_path) as text:
        url = httpx.URL(text)
        assert (url.host, team(text, "sandbox")) == ("127.0.0.1", 200)
        for path in ("/connect/api/tag", "/sandbox/tags", "/console/post"):
            with socket.create_connection((url.host, url.port or 0)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: {url.netloc.decode()}\r\nContent-Length: 9\r\n\r\n{{"
                client.sendall(head.encode())
        assert loopback.get(str(url.copy_with(path="/sandbox/state"))).status_code == 200
    assert (tmp_path / ".syncengine/sandbox/service.db").is_file()


def test_address_key_and_data_file_can_be_chosen_and_serve_one_sandbox(tmp_path: Path) -> None:
    """A second sandbox exits with 6 on the same file, with 1 on the same port."""
    chosen = ("--host", "127.0.0.2", "--api-key", KEY, "--data", "its/own.db")
    with started(tmp_path, *chosen) as url:
        assert url.startswith("http://127.0.0.2:")
        assert (team(url, KEY), team(url, "sandbox")) == (200, 401)
        second, port = Project(tmp_path, "sandbox"), str(httpx.URL(url).port)
        assert second.run("sandbox", "--port", "0", "--data", "its/own.db").code == 6
        taken = second.run("sandbox", "--host", "127.0.0.2", "--port", port, "--data", "second.db")
        assert (taken.code, port in taken.err) == (1, True)
    assert (tmp_path / "its/own.db").is_file()
    assert not (tmp_path / ".syncengine").exists()
