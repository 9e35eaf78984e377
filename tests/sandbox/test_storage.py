"""The sandbox's data file survives restarts and kills and serves one sandbox; `syncengine sandbox` as a process."""

import re
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from syncengine.errors import LockHeld, SyncengineError
from syncengine.sandbox import instance
from syncengine.sandbox.bodies import RuleAnswer, RuleRequest
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.posted_time import next_call
from syncengine.sandbox.store import TAGS, TEAM, Store
from tests.cli.program import Project, ended
from tests.support import loopback

from .conftest import Asking, Clock


@contextmanager
def opened(data: Path) -> Iterator[Asking]:
    clock = Clock()
    with closing(Sandbox(data, clock=clock)) as sandbox:
        yield Asking(sandbox, clock)


def test_everything_held_is_there_after_a_restart(tmp_path: Path) -> None:
    """Tags, categories, activity types, open sessions and settings survive; missing folders are created. The file is
    for its owner, since posted time is personal data, and for one sandbox at a time."""
    data = tmp_path / "deep" / "sandbox.db"
    with opened(data) as first:
        assert data.stat().st_mode & 0o077 == 0
        with pytest.raises(LockHeld, match="in use by another sandbox"):
            Sandbox(data)
        made = first.told("upsertTagCategories", tagCategories=[{"externalId": "c", "keywords": ["k"]}])
        tag = {"name": "T", "tagCategoryId": made["tagCategories"][0]["id"], "metadata": {"a": "b"}, "url": "u"}
        first.told("upsertTags", tags=[tag])
        session = first.told("startSyncSession")
        first.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "A", "enableIfNew": True}], **session)
        first.sandbox.store.put(TEAM, "settings", {"teamName": "Team", "tagLimit": 9})
        before = first.state()
    with opened(data) as second:
        assert second.state() == before
        second.told("completeSyncSession", **session)
        assert second.alive() == {"A"}
        second.told("deleteTagCategory", externalId="c")
        assert second.state()["tags"] == []


def test_a_webhook_is_called_again_after_a_restart_once_its_key_is_known(tmp_path: Path) -> None:
    """The key is in no file: after a restart, the webhook is registered again with it. A call without a known result is
    repeated after the longest time that a call may take: at least once."""
    data = tmp_path / "sandbox.db"
    hook = {"callbackUrl": "http://127.0.0.1:9/", "callerKey": "k-5e1f"}
    with opened(data) as first:
        first.told("registerWebhook", **hook)
        first.post("g")
        assert first.sandbox.do(next_call, {}).body["payload"]["groupId"] == "g"
    assert not [file for file in tmp_path.iterdir() if b"k-5e1f" in file.read_bytes()]
    with opened(data) as again:
        again.later(120)
        assert again.sandbox.do(next_call, {}).body is None
    with opened(data) as again:
        assert again.ask("registerWebhook", **{**hook, "callbackUrl": "https://elsewhere.example"})[0] == 409
        assert [again.ask("registerWebhook", **hook)[0] for _ in range(2)] == [200, 409]
        assert again.sandbox.do(next_call, {}).body is None
        again.later(120)
        payload = again.sandbox.do(next_call, {}).body["payload"]
        assert (payload["groupId"], payload["callerKey"]) == ("g", "k-5e1f")


def test_a_rule_that_fails_half_way_has_changed_nothing(service: Asking) -> None:
    """A rule that refuses or raises is rolled back, and the next request works."""

    def broken(store: Store, _request: RuleRequest) -> RuleAnswer:
        store.put(TAGS, "HALF", {"name": "HALF"})
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        service.sandbox.do(broken, {})
    assert service.ask("upsertTagCategories", tagCategories=[{"externalId": "c"}, {}])[0] == 400
    service.told("upsertTag", name="T")
    state = service.state()
    assert ([tag["name"] for tag in state["tags"]], state["categories"]) == (["T"], [])


def test_a_killed_sandbox_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """After SIGKILL right after an answer, the next sandbox starts at once on the same file. An interrupt ends it
    cleanly."""
    names, key = [f"T{number:04}" for number in range(500)], {"x-api-key": "sandbox"}
    with started(tmp_path) as (process, url):
        for path, body in (
            ("/tag/batch", {"tags": [{"name": name} for name in names]}),
            ("/tag/keyword/delete", {"tagName": "T0000", "keyword": "T0000"}),
        ):
            assert loopback.post(f"{url}{path}", json=body, headers=key).status_code == 200
        process.kill()
        process.wait()
    with closing(Sandbox(tmp_path / ".syncengine/sandbox/service.db")) as again:
        assert again.store.keys(TAGS) == names
        assert next(instance.tags(again.store))["keywords"] == []
    with started(tmp_path) as (process, url):
        assert loopback.get(f"{url}/team/info", headers=key).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("version", "words"), [(None, "not a database"), (99, "version 99"), (3, "version 3, .* delete the file")]
)
def test_a_file_that_is_not_ours_is_refused_by_name(tmp_path: Path, version: int | None, words: str) -> None:
    """The cure for a file of another version is to delete it."""
    data = tmp_path / "sandbox.db"
    if version:
        with closing(sqlite3.connect(data)) as connection:
            connection.execute("CREATE TABLE held (key TEXT)")
            connection.execute(f"PRAGMA user_version = {version}")
    else:
        data.write_text("not a database " * 100, encoding="utf-8")
    with pytest.raises(SyncengineError, match=f"sandbox.db: .*{words}"):
        Sandbox(data)
    with pytest.raises(SyncengineError, match=f"{data.parent.name}: .*open"):
        Sandbox(data.parent)


# --- the command


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`syncengine sandbox` as a process, and the base URL that it prints. It ends with SIGTERM if nothing else has
    ended it, and prints no more than a hint on stderr, even with warnings as errors."""
    environ = {"PYTHONWARNINGS": "error"}
    process = Project(folder, "sandbox").start("sandbox", "--port", "0", *options, environ=environ)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    try:
        assert found is not None
        yield process, found[0]
    finally:
        process.terminate()
        done = ended(process)
    assert done.code in (0, -signal.SIGKILL)
    assert re.fullmatch(r"Console page at \S+ Stop it with Ctrl-C\.\n", done.err), done.err


def test_defaults_are_loopback_the_sandbox_key_and_the_projects_folder(tmp_path: Path) -> None:
    """The interface, the control API and the console may each lose a client in the middle of a request."""
    with started(tmp_path) as (_, text):
        url = httpx.URL(text)
        assert url.host == "127.0.0.1"
        assert loopback.get(f"{text}/team/info", headers={"x-api-key": "sandbox"}).status_code == 200
        for path in ("/connect/api/tag", "/sandbox/tags", "/console/post"):
            with socket.create_connection((url.host, url.port or 0)) as client:
                head = f"POST {path} HTTP/1.1\r\nHost: {url.netloc.decode()}\r\nContent-Length: 9\r\n\r\n{{"
                client.sendall(head.encode())
        assert loopback.get(str(url.copy_with(path="/sandbox/state"))).status_code == 200
    assert (tmp_path / ".syncengine/sandbox/service.db").is_file()


def test_address_key_and_data_file_can_be_chosen_and_serve_one_sandbox(tmp_path: Path) -> None:
    """A second sandbox on the same file exits with 6."""
    chosen = ("--host", "127.0.0.2", "--api-key", "its-own", "--data", "its/own.db")
    with started(tmp_path, *chosen) as (_, url):
        assert url.startswith("http://127.0.0.2:")
        for key, status in (("its-own", 200), ("sandbox", 401)):
            assert loopback.get(f"{url}/team/info", headers={"x-api-key": key}).status_code == status
        assert Project(tmp_path, "sandbox").run("sandbox", "--port", "0", "--data", "its/own.db").code == 6
    assert (tmp_path / "its/own.db").is_file()
    assert not (tmp_path / ".syncengine").exists()
