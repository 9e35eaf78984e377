"""`syncengine sandbox` as a process: where it listens, which key it takes, and where it keeps what it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.cli.program import Project, ended
from tests.support import loopback

KEY = "a-key-of-its-own"


@contextmanager
def started(folder: Path, *options: str) -> Iterator[str]:
    """The base URL that it prints; ended as a terminal ends it."""
    process = Project(folder, "sandbox").start("sandbox", "--port", "0", *options)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    try:
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        assert ended(process).code == 0


def team(url: str, key: str) -> int:
    return loopback.get(f"{url}/team/info", headers={"x-api-key": key}).status_code


def test_it_listens_where_it_is_told_and_takes_the_key_that_it_is_told(tmp_path: Path) -> None:
    """Another address of loopback; the usual key is a wrong one then."""
    with started(tmp_path, "--host", "127.0.0.2", "--api-key", KEY) as url:
        assert url.startswith("http://127.0.0.2:")
        assert (team(url, KEY), team(url, "sandbox")) == (200, 401)


def test_unless_it_is_told_otherwise_it_is_on_loopback_and_takes_its_own_key(tmp_path: Path) -> None:
    """And keeps what it holds in the project's own folder."""
    with started(tmp_path) as url:
        assert url.startswith("http://127.0.0.1:")
        assert team(url, "sandbox") == 200
    assert (tmp_path / ".syncengine/sandbox/service.db").is_file()


def test_what_it_holds_is_in_the_file_that_is_named_and_there_again(tmp_path: Path) -> None:
    """After a restart; two sandboxes on one file are one too many."""
    data = ("--data", "its/own.db")
    with started(tmp_path, *data) as url:
        headers = {"x-api-key": "sandbox"}
        assert loopback.post(f"{url}/tag", json={"name": "KEPT"}, headers=headers).status_code == 200
        second = Project(tmp_path, "sandbox").run("sandbox", "--port", "0", *data)
        assert second.code == 6
    assert (tmp_path / "its/own.db").is_file()
    assert not (tmp_path / ".syncengine").exists()
    with started(tmp_path, *data) as url:
        state = loopback.get(url.replace("/connect/api", "/sandbox/state")).json()
        assert [tag["name"] for tag in state["tags"]] == ["KEPT"]


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    """One line, no traceback."""
    with started(tmp_path, "--data", "first.db") as url:
        port = str(httpx.URL(url).port)
        done = Project(tmp_path, "sandbox").run("sandbox", "--port", port, "--data", "second.db")
    assert (done.code, port in done.err) == (1, True)
