"""The sandbox's data file: it survives restarts and kills, and serves one sandbox at a time."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from syncengine.errors import LockHeld, SyncengineError
from syncengine.sandbox import instance, posting
from syncengine.sandbox.app import running_sandbox
from syncengine.sandbox.bodies import RuleAnswer, RuleRequest
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.posted_time import next_call
from syncengine.sandbox.rules import RULES
from syncengine.sandbox.store import TAGS, Store
from tests.support import loopback

SERVER = """
import sys
from pathlib import Path
from syncengine.sandbox.app import serve
serve("127.0.0.1", 0, Path(sys.argv[1]), "key", ready=lambda running: print(running.url, flush=True))
print("returned", flush=True)
"""


@contextmanager
def server(data: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A sandbox in a process of its own, and a connector that talks to it."""
    command = [sys.executable, "-W", "error", "-c", SERVER, str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with loopback.client(base_url=url, headers={"x-api-key": "key"}) as connector:
                yield process, connector
        finally:
            process.kill()


def test_everything_held_is_there_after_a_restart(tmp_path: Path) -> None:
    """Tags, categories, activity types, open sessions and settings survive; missing folders are created."""
    data = tmp_path / "deep" / "sandbox.db"
    with running_sandbox(data) as first, loopback.client(headers={"x-api-key": first.api_key}) as client:
        category = {"externalId": "c", "label": "C", "keywords": ["k"]}
        id_ = client.post(f"{first.url}/tagcategory/batch", json={"tagCategories": [category]}).json()
        tag = {"name": "T", "tagCategoryId": id_["tagCategories"][0]["id"], "metadata": {"a": "b"}, "url": "u"}
        client.post(f"{first.url}/tag/batch", json={"tags": [tag, {"name": "gone"}]})
        client.post(f"{first.url}/tag/delete", json={"name": "gone"})
        session = client.post(f"{first.url}/activitytype/sync/start").json()
        items = [{"code": "A", "label": "A", "enableIfNew": True}]
        client.post(f"{first.url}/activitytype/batch", json={"activityTypes": items, **session})
        client.post(f"{first.control_url}/settings", json={"teamName": "Team", "tagLimit": 9})
        before = client.get(f"{first.control_url}/state").json()
    with running_sandbox(data) as second, loopback.client(headers={"x-api-key": second.api_key}) as client:
        assert client.get(f"{second.control_url}/state").json() == before
        assert client.post(f"{second.url}/activitytype/sync/complete", json=session).status_code == 200
        assert client.get(f"{second.control_url}/state").json()["activityTypes"][0]["deleted"] is False
        assert client.post(f"{second.url}/tagcategory/delete", json={"externalId": "c"}).status_code == 200
        assert client.get(f"{second.control_url}/state").json()["tags"] == []


def test_the_key_of_a_webhook_is_in_no_file(tmp_path: Path) -> None:
    """The key is a secret: after a restart, the webhook is called only once it is registered again with its key."""
    data, hook = tmp_path / "sandbox.db", {"callbackUrl": "http://127.0.0.1:9/", "callerKey": "k-5e1f"}
    with closing(Sandbox(data)) as sandbox:
        sandbox.do(RULES["registerWebhook"], hook)
        sandbox.do(posting.post, {"groupId": "g"})
    assert not [file for file in tmp_path.iterdir() if b"k-5e1f" in file.read_bytes()]
    with closing(Sandbox(data)) as again:
        assert again.do(next_call, {}).body is None
        assert again.do(RULES["registerWebhook"], {**hook, "callbackUrl": "https://elsewhere.example"}).status == 409
        assert again.do(RULES["registerWebhook"], hook).status == 200
        assert again.do(RULES["registerWebhook"], hook).status == 409
        assert again.do(next_call, {}).body["payload"]["callerKey"] == "k-5e1f"


def test_a_file_of_an_older_layout_is_refused_with_the_cure(tmp_path: Path) -> None:
    """The error says to delete the file."""
    data = tmp_path / "sandbox.db"
    with closing(sqlite3.connect(data)) as old:
        old.execute('CREATE TABLE held ("table" TEXT, key TEXT, row TEXT NOT NULL, PRIMARY KEY ("table", key))')
        old.execute("PRAGMA user_version = 3")
    with pytest.raises(SyncengineError, match=r"sandbox.db: .* version 3, .* delete the file"):
        Sandbox(data)
    data.unlink()
    Sandbox(data).close()


def test_a_rule_that_fails_half_way_has_changed_nothing(tmp_path: Path) -> None:
    """A rule that refuses or raises is rolled back, and the next request works."""

    def broken(store: Store, _request: RuleRequest) -> RuleAnswer:
        store.put(TAGS, "HALF", {"name": "HALF"})
        raise RuntimeError("broken")

    with closing(Sandbox(tmp_path / "sandbox.db")) as sandbox:
        with pytest.raises(RuntimeError):
            sandbox.do(broken, {})
        batch = {"tagCategories": [{"externalId": "c"}, {}]}
        assert sandbox.do(RULES["upsertTagCategories"], batch).status == 400
        assert sandbox.do(RULES["upsertTag"], {"name": "T"}).status == 200
        held = instance.everything(sandbox.store)
        assert ([tag["name"] for tag in held["tags"]], held["categories"]) == (["T"], [])


def test_a_call_that_a_killed_sandbox_was_making_is_made_again(tmp_path: Path) -> None:
    """At least once: a webhook call without a known result is repeated after the longest time that a call may take."""
    data, clock = tmp_path / "sandbox.db", [1000]
    with closing(Sandbox(data, clock=lambda: clock[0])) as sandbox:
        sandbox.do(RULES["registerWebhook"], {"callbackUrl": "http://127.0.0.1:9/"})
        sandbox.do(posting.post, {"groupId": "g"})
        assert sandbox.do(next_call, {}).body["payload"]["groupId"] == "g"
    with closing(Sandbox(data, clock=lambda: clock[0])) as again:
        assert again.do(next_call, {}).body is None
        clock[0] += 120_000
        assert again.do(next_call, {}).body["payload"]["groupId"] == "g"


def test_a_killed_sandbox_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """After SIGKILL right after an answer, the next sandbox starts at once on the same file."""
    data = tmp_path / "sandbox.db"
    names = [f"T{number:04}" for number in range(500)]
    with server(data) as (process, connector):
        assert connector.post("/tag/batch", json={"tags": [{"name": name} for name in names]}).status_code == 200
        assert connector.post("/tag/keyword/delete", json={"tagName": "T0000", "keyword": "T0000"}).status_code == 200
        process.kill()
        process.wait()
    with closing(Sandbox(data)) as again:
        assert again.store.keys(TAGS) == names
        assert next(instance.tags(again.store))["keywords"] == []


def test_an_interrupt_ends_the_foreground_sandbox_cleanly(tmp_path: Path) -> None:
    """`serve` returns to its caller and prints nothing on stderr, even with warnings as errors."""
    with server(tmp_path / "sandbox.db") as (process, connector):
        assert connector.get("/team/info").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20) == ("returned\n", "")
        assert process.returncode == 0


def test_two_sandboxes_cannot_have_one_file(tmp_path: Path) -> None:
    """The second sandbox is refused until the first has ended."""
    data = tmp_path / "sandbox.db"
    with closing(Sandbox(data)), pytest.raises(LockHeld, match="in use by another sandbox"):
        Sandbox(data)
    Sandbox(data).close()


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file holds posted time, which is personal data."""
    with closing(Sandbox(tmp_path / "sandbox.db")):
        assert (tmp_path / "sandbox.db").stat().st_mode & 0o077 == 0


def _text(path: Path) -> None:
    path.write_text("not a database " * 100, encoding="utf-8")


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(("make", "words"), [(_text, "not a database"), (_newer, "version 99"), (Path.mkdir, "open")])
def test_a_file_that_is_not_ours_is_refused_by_name(tmp_path: Path, make: Any, words: str) -> None:
    """A file that is no database or from a newer version is an error that names the file."""
    data = tmp_path / "sandbox.db"
    make(data)
    with pytest.raises(SyncengineError, match=f"sandbox.db: .*{words}"):
        Sandbox(data)
