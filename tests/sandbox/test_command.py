"""`syncengine sandbox` as a process: its address, its API key and its data file."""

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
    """Run `syncengine sandbox` and yield the base URL that it prints; it ends with SIGTERM."""
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


def test_host_and_api_key_can_be_chosen(tmp_path: Path) -> None:
    """`--host` and `--api-key` replace the default address and key; the default key is then refused."""
    with started(tmp_path, "--host", "127.0.0.2", "--api-key", KEY) as url:
        assert url.startswith("http://127.0.0.2:")
        assert (team(url, KEY), team(url, "sandbox")) == (200, 401)


def test_defaults_are_loopback_the_sandbox_key_and_the_projects_folder(tmp_path: Path) -> None:
    """By default, the sandbox listens on 127.0.0.1, takes the key `sandbox` and keeps its data in the project."""
    with started(tmp_path) as url:
        assert url.startswith("http://127.0.0.1:")
        assert team(url, "sandbox") == 200
    assert (tmp_path / ".syncengine/sandbox/service.db").is_file()


def test_the_data_file_survives_a_restart_and_serves_one_sandbox(tmp_path: Path) -> None:
    """`--data` names a file that survives a restart; a second sandbox on the same file exits with 6."""
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


def test_a_port_in_use_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A port in use exits with 1, and the error names the port."""
    with started(tmp_path, "--data", "first.db") as url:
        port = str(httpx.URL(url).port)
        done = Project(tmp_path, "sandbox").run("sandbox", "--port", port, "--data", "second.db")
    assert (done.code, port in done.err) == (1, True)
