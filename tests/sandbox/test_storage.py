"""What the sandbox keeps: across restarts, across a kill, for one sandbox at a time."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncengine.errors import LockHeld, SyncengineError
from syncengine.sandbox import posting, snapshot, webhook
from syncengine.sandbox.app import running_sandbox
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.rules import RULES
from syncengine.sandbox.storage import VERSION
from tests.support import loopback
from tests.support.profiles import tried

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
    """Tags, categories with their ids, activity types, open sessions and settings; the folder is made."""
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


def test_posted_time_and_the_connection_are_there_after_a_restart(tmp_path: Path) -> None:
    """Groups with all that was told of them, the webhook with its key, registration and health."""
    data = tmp_path / "sandbox.db"
    with closing(Sandbox(data)) as sandbox:
        sandbox.do(RULES["registerFetchClient"], {})
        sandbox.do(posting.post, {"groups": [{"groupId": "a"}, {"groupId": "b", "user": None}]})
        sandbox.do(RULES["fetchPostedTime"], {}, query={"limit": "1"})
        update = {"timeGroupId": "a", "status": "RETRIABLE_FAILURE", "message": "m", "externalId": "e"}
        sandbox.do(RULES["updatePostedTimeStatus"], update)
        sandbox.do(RULES["unregisterFetchClient"], {})
        sandbox.do(RULES["registerWebhook"], {"callbackUrl": "http://127.0.0.1:9/", "callerKey": "k"})
        sandbox.do(RULES["registerConnector"], {"connectorType": "t"})
        sandbox.do(RULES["reportHealthFailure"], {"errorType": "UNKNOWN"})
        before = sandbox.world
    with closing(Sandbox(data)) as again:
        assert again.world.posted_time == before.posted_time
        connection, remembered = before.connection["connection"], again.world.connection["connection"]
        assert remembered == replace(connection, caller_key=None)
        assert (connection.key_is_lost, remembered.key_is_lost) == (False, True)


def test_the_key_of_a_webhook_is_in_no_file(tmp_path: Path) -> None:
    """It is the connector's secret. Without it nothing is called, until the webhook is registered again."""
    data, hook = tmp_path / "sandbox.db", {"callbackUrl": "http://127.0.0.1:9/", "callerKey": "k-5e1f"}
    with closing(Sandbox(data)) as sandbox:
        sandbox.do(RULES["registerWebhook"], hook)
        sandbox.do(posting.post, {"groupId": "g"})
    assert not [file for file in tmp_path.iterdir() if b"k-5e1f" in file.read_bytes()]
    with closing(Sandbox(data)) as again:
        assert again.do(webhook.next_call, {}).body is None
        assert again.do(RULES["registerWebhook"], {**hook, "callbackUrl": "https://elsewhere.example"}).status == 409
        assert again.do(RULES["registerWebhook"], hook).status == 200
        assert again.do(RULES["registerWebhook"], hook).status == 409
        assert again.do(webhook.next_call, {}).body["payload"]["callerKey"] == "k-5e1f"


def test_a_file_of_the_time_before_posted_time_is_read(tmp_path: Path) -> None:
    """What it holds is still true; it is of the newer version then."""
    data = tmp_path / "sandbox.db"
    with closing(sqlite3.connect(data)) as old:
        old.execute('CREATE TABLE held ("table" TEXT, key TEXT, row TEXT NOT NULL, PRIMARY KEY ("table", key))')
        row = '{"team_name":"T","tag_limit":3,"batch_limit":9,"status_for_item_errors":200}'
        old.execute("INSERT INTO held VALUES ('settings', 'settings', ?)", (row,))
        old.execute("PRAGMA user_version = 1")
        old.commit()
    with closing(Sandbox(data)) as sandbox:
        settings = snapshot.state(sandbox.world)["settings"]
        assert (settings["teamName"], settings["tagLimit"], settings["holdSeconds"]) == ("T", 3, 60)
    with closing(sqlite3.connect(data)) as now:
        assert now.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_file_of_the_time_when_sessions_were_kept_with_activity_types_is_read(tmp_path: Path) -> None:
    """When each was last uploaded is what counts now; it was kept then, too."""
    data = tmp_path / "sandbox.db"
    with closing(Sandbox(data)) as sandbox:
        session = sandbox.do(RULES["startSyncSession"], {}).body
    row = '{"code":"A","label":"L","description":"","enabled":true,"deleted":false,"touched":7,"sessions":["s"]}'
    with closing(sqlite3.connect(data)) as old:
        old.execute("INSERT INTO held VALUES ('activity_types', 'A', ?)", (row,))
        old.execute("PRAGMA user_version = 2")
        old.commit()
    with closing(Sandbox(data)) as sandbox:
        assert [known["touched"] for known in snapshot.state(sandbox.world)["activityTypes"]] == [7]
        assert sandbox.do(RULES["completeSyncSession"], session).status == 200
        assert [known["deleted"] for known in snapshot.state(sandbox.world)["activityTypes"]] == [True]


def test_a_call_that_a_killed_sandbox_was_making_is_made_again(tmp_path: Path) -> None:
    """At least once: after the time that a call may take, though nothing is known of the first one."""
    data, clock = tmp_path / "sandbox.db", [1000]
    with closing(Sandbox(data, clock=lambda: clock[0])) as sandbox:
        sandbox.do(RULES["registerWebhook"], {"callbackUrl": "http://127.0.0.1:9/"})
        sandbox.do(posting.post, {"groupId": "g"})
        assert sandbox.do(webhook.next_call, {}).body["payload"]["groupId"] == "g"
    with closing(Sandbox(data, clock=lambda: clock[0])) as again:
        assert again.do(webhook.next_call, {}).body is None
        clock[0] += 120_000
        assert again.do(webhook.next_call, {}).body["payload"]["groupId"] == "g"


def test_a_killed_sandbox_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """SIGKILL right after the answer; the next one starts at once on the same file."""
    data = tmp_path / "sandbox.db"
    names = [f"T{number:04}" for number in range(500)]
    with server(data) as (process, connector):
        assert connector.post("/tag/batch", json={"tags": [{"name": name} for name in names]}).status_code == 200
        assert connector.post("/tag/keyword/delete", json={"tagName": "T0000", "keyword": "T0000"}).status_code == 200
        process.kill()
        process.wait()
    with closing(Sandbox(data)) as again:
        assert sorted(again.world.tags) == names
        assert again.world.tags["T0000"].keywords == frozenset()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_foreground_sandbox_cleanly(tmp_path: Path, end: signal.Signals) -> None:
    """`serve` returns to its caller; nothing is said on stderr, not even with every warning an error."""
    with server(tmp_path / "sandbox.db") as (process, connector):
        assert connector.get("/team/info").status_code == 200
        process.send_signal(end)
        assert process.communicate(timeout=20) == ("returned\n", "")
        assert process.returncode == 0


def test_two_sandboxes_cannot_have_one_file(tmp_path: Path) -> None:
    """Each would overwrite the other's world; the lock ends with its holder."""
    data = tmp_path / "sandbox.db"
    with closing(Sandbox(data)), pytest.raises(LockHeld, match="in use by another sandbox"):
        Sandbox(data)
    Sandbox(data).close()


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """It will hold posted time: people's days."""
    with closing(Sandbox(tmp_path / "sandbox.db")):
        assert (tmp_path / "sandbox.db").stat().st_mode & 0o077 == 0


def _text(path: Path) -> None:
    path.write_text("not a database " * 100, encoding="utf-8")


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(("make", "words"), [(_text, "not a database"), (_newer, "version 99"), (Path.mkdir, "open")])
def test_a_file_that_is_not_ours_is_refused_by_name(tmp_path: Path, make: Any, words: str) -> None:
    """An error for a person, and the file stays as it is."""
    data = tmp_path / "sandbox.db"
    make(data)
    with pytest.raises(SyncengineError, match=f"sandbox.db: .*{words}"):
        Sandbox(data)


NAMES = st.sampled_from(["a", "b", "c", "ü\u0000'"])
IDS = st.sampled_from(["", "id-1", "id-2", "id-3"])
ASKED = st.one_of(
    st.tuples(st.just("upsertTag"), st.fixed_dictionaries({"name": NAMES, "tagCategoryId": IDS})),
    st.tuples(st.just("deleteTag"), st.fixed_dictionaries({"name": NAMES})),
    st.tuples(
        st.just("upsertTagCategories"),
        st.fixed_dictionaries(
            {"tagCategories": st.lists(st.fixed_dictionaries({"externalId": NAMES}, optional={"id": IDS}), max_size=3)}
        ),
    ),
    st.tuples(st.just("deleteTagCategory"), st.fixed_dictionaries({"externalId": NAMES})),
    st.tuples(st.sampled_from(["registerFetchClient", "unregisterFetchClient", "fetchPostedTime"]), st.just({})),
    st.tuples(st.just("registerWebhook"), st.just({"callbackUrl": "http://127.0.0.1:9/"})),
    st.tuples(st.just("post"), st.fixed_dictionaries({"groupId": NAMES, "tag": NAMES})),
    st.tuples(
        st.just("updatePostedTimeStatus"),
        st.fixed_dictionaries(
            {"timeGroupId": NAMES, "status": st.sampled_from(["SUCCESS", "FAILURE", "RETRIABLE_FAILURE"])}
        ),
    ),
)
ASKABLE = {**RULES, "post": posting.post}


@given(st.lists(ASKED, max_size=20))
@settings(max_examples=tried(60), deadline=None)
def test_what_is_loaded_is_what_was_held(history: list[tuple[str, dict[str, Any]]]) -> None:
    """After any history: the same resources, and indexes that agree with them."""
    ids = count(1)
    with TemporaryDirectory() as folder:
        data = Path(folder) / "sandbox.db"
        with closing(Sandbox(data, new_id=lambda: f"id-{next(ids)}")) as sandbox:
            for operation, body in history:
                sandbox.do(ASKABLE[operation], body)
            held = sandbox.world
        with closing(Sandbox(data)) as again:
            loaded = again.world
    assert snapshot.state(loaded) == snapshot.state(held)
    assert (loaded.posted_time, loaded.connection) == (held.posted_time, held.connection)
    assert loaded.category_ids == held.category_ids
    assert loaded.members == {id_: names for id_, names in held.members.items() if names}
