"""What each write of a state records, also when a run dies between them, and what is read from it."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.content import sha256_at, sha256_of, sha256_of_parts, sha256_of_values
from syncengine.effects import Effect
from syncengine.errors import ExitCode
from syncengine.resource import Body, Key, Kind, Recorded, Row, Source, Status
from syncengine.state.codec import digest
from syncengine.state.connector import (
    Mechanism,
    registered_mechanism,
    remember_mechanism,
    remember_settings,
    settings_in,
)
from syncengine.state.connector import digest as key_digest
from syncengine.state.database import LockLost, open_database
from syncengine.state.folder_memory import FolderMemory
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import State, open_state
from tests.support.profiles import tried

from .estate import HERE, applied, applying, category, run, tag, whole

A, B = tag("a"), tag("b")
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
FIELDS = st.dictionaries(st.sampled_from(["category", "path", "label"]), NAMES, max_size=3)

ROWS = st.builds(
    Recorded,
    key=st.builds(Key, st.sampled_from(list(Kind)), NAMES),
    body=st.builds(
        Body, FIELDS, st.lists(NAMES, max_size=3, unique=True).map(tuple), st.dictionaries(NAMES, NAMES, max_size=2)
    ),
    status=st.sampled_from(list(Status)),
    doubtful=st.booleans(),
    confirmed=st.booleans(),
    server_id=st.none() | NAMES,
    source=st.none()
    | st.builds(Source, NAMES, st.integers(1, 9999), st.none() | st.builds(Row, NAMES, st.integers(1, 9999))),
    protect=st.booleans(),
    former_categories=st.lists(NAMES, max_size=2, unique=True).map(tuple),
)


@settings(max_examples=tried(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROWS, max_size=8, unique_by=lambda row: row.key), flying=st.integers(0, 3))
def test_any_rows_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Recorded], flying: int
) -> None:
    """Sorted by kind and name; rows with an open call are in doubt."""
    path = tmp_path_factory.mktemp("reading") / "state.db"
    keys = [row.key for row in rows]
    with applying(str(path)) as state:
        state.put(rows)
        written = state.get(keys)
        for number, key in enumerate(keys[:flying]):
            state.intend({f"c{number}": Attempt("addKeywords", (Effect(key=key),))})
    with open_state(str(path), write=False) as found:
        in_order = [found.get([key])[key] for key in sorted(keys)]
        assert (list(found.rows()), [row for kind in sorted(Kind) for row in found.rows(kind)]) == (in_order, in_order)
        assert found.get([*keys, Key(Kind.TAG, "not there")]) == {row.key: row for row in in_order}
        for row in in_order:
            assert row.doubtful is (row.key in keys[:flying] or written[row.key].doubtful)


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "what?.db", "a#b.db", "ü.db", "a&mode=rw.db"])
def test_a_file_with_any_name_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with applying(str(path)) as state:
        applied(state, "c1", whole(tag("A")))
    for url in (str(path), f"sqlite:///{path}") if name == "ü.db" else (str(path),):
        with open_state(url, write=False) as found:
            assert [row.key for row in found.rows()] == [tag("A")]


def test_every_write_changes_the_generation(path: Path) -> None:
    """An equal generation proves that no row has changed."""
    writings: list[Callable[[State], object]] = [
        lambda state: state.put([Recorded(tag("A"))]),
        lambda state: state.doubt([tag("A")]),
        lambda state: state.doubt_all(),
        lambda state: state.forget([tag("A")]),
        lambda state: state.record([]),
        lambda state: state.set_facts(team="Acme"),
        lambda state: state.end_run("complete", {}),
    ]
    with applying(str(path)) as state:
        met = [state.facts().generation]
        for write in writings:
            write(state)
            met.append(state.facts().generation)
    assert None not in met
    assert len(set(met)) == len(met)


def test_removals_lists_what_plans_took_away(url: str) -> None:
    """Since a given time. Runs without a plan, such as an adoption, do not count."""
    keeps, gone, loses = tag("KEEPS"), tag("GONE"), tag("LOSES%_'")
    with applying(url, run(started=1000.0)) as state:
        applied(
            state, "c1", whole(keeps), whole(gone), Effect(key=loses, keywords=("k",), fields={"url": "u"}, whole=True)
        )
        applied(state, "c2", Effect(key=loses, keywords_dropped=("k",)), Effect(key=loses, cleared=("url",)))
        state.record([Effect(key=gone, status=Status.RELEASED), Effect(key=keeps, source=Source("elsewhere.yaml", 1))])
        state.end_run("complete", {})
        state.begin_run(run(2, started=1000.0, approvals=("1@ab",)))
        applied(state, "c3", Effect(key=gone, status=Status.DELETED))
        state.end_run("complete", {})
        state.begin_run(run(3, started=1000.0, plan=None))  # adoption
        state.put([Recorded(keeps, status=Status.RELEASED)])
        state.end_run("complete", {})
    with open_state(url, write=False) as state:
        found = state.removals(0)
        assert [(each.key, each.is_sent, each.approved) for each in found] == [
            (loses, True, False),
            (loses, True, False),
            (gone, False, False),
            (gone, True, True),
        ]
        assert found[0].detail.keywords_deleted == ("k",)
        assert found[1].detail.fields == {"url": ("u", None)}
        assert state.removals(found[-1].at + 1) == []


@pytest.mark.parametrize(
    ("end", "listed", "used"),
    [
        ("complete", "complete", True),
        ("incomplete", "incomplete", True),
        ("interrupted", "interrupted", False),
        (None, "died", False),
    ],
)
def test_a_run_that_ends_leaves_open_calls_in_doubt_and_uses_its_plan(
    url: str, end: str | None, listed: str, used: bool
) -> None:
    """Until the row is sent again. The plan of a run that was interrupted or died can be applied again."""
    with applying(url) as state:
        state.intend({"c": Attempt("upsertTags", (whole(A),))})
        assert not state.plan_ended("plan-1")
        if end:
            state.end_run(end, {})
        assert state.plan_ended("plan-1") is used
    with applying(url, run(2)) as state:
        assert state.get([A])[A].doubtful
        assert [r.outcome for r in state.runs(5)] == [None, listed]
        applied(state, "d", whole(A))
        assert not state.get([A])[A].doubtful


def test_each_write_of_rows_is_recorded(state: State) -> None:
    """A settled call leaves a certain row with its run and plan. `put` replaces whole rows, and `forget` removes them.
    `doubt_all`, for `--reassert`, leaves out deleted rows, which would be deleted again."""
    applied(state, "c", whole(A, description="x"), a="17")
    row = state.get([A])[A]
    assert (row.doubtful, row.confirmed, row.server_id) == (False, True, "17")
    assert (row.run, row.plan, row.body.fields) == ("run-1", "plan-1", {"description": "x", "visibility": "PUBLIC"})
    state.put([Recorded(A, doubtful=True, server_id="9"), Recorded(B)])
    put = {"run": "run-1", "plan": "plan-1"}
    assert state.get([A, B]) == {A: Recorded(A, doubtful=True, server_id="9", **put), B: Recorded(B, **put)}
    assert state.forget([A, tag("none")]) == 1
    assert [row.key for row in state.rows()] == [B]
    applied(state, "d", whole(A), Effect(key=B, status=Status.DELETED))
    assert state.doubt_all() == 1
    assert {key: row.doubtful for key, row in state.get([A, B]).items()} == {A: True, B: False}


def test_rows_are_sorted_by_kind_and_by_code_points_of_names(url: str) -> None:
    """Whatever the locale of the database is, and however many names are asked for."""
    names = ["a", "B", "ä", "Z", "-", "_b"]
    with applying(url) as state:
        applied(state, "c", *(whole(tag(name)) for name in names), whole(category("z")))
        assert [row.key for row in state.rows()] == [category("z"), *map(tag, sorted(names))]
        assert [row.key for row in state.rows(Kind.CATEGORY)] == [category("z")]
        keys = [tag(f"T-{number}") for number in range(1_201)] + [category(f"C-{number}") for number in range(501)]
        state.put([Recorded(key) for key in keys])
        assert set(state.get(keys)) == set(keys)


def test_members_are_all_tags_that_a_category_may_hold(state: State) -> None:
    """Also released ones, those that refer by id, those whose move or deletion is open; not those known to be gone."""

    def members() -> list[str]:
        return [row.key.name for row in state.members(["x", "nobody's"])]

    applied(state, "c", whole(category("x")), x="17")
    names = ("in", "gone", "moving", "deleting")
    tags = whole(tag("id"), tagCategoryId="17"), whole(tag("out"), category="y")
    applied(state, "d", *tags, *(whole(tag(name), category="x") for name in names))
    state.record([Effect(key=tag("in"), status=Status.RELEASED)])
    applied(state, "e", Effect(key=tag("gone"), status=Status.DELETED))
    moved = (whole(tag("moving"), category="y"),)
    deletion = (Effect(key=tag("deleting"), status=Status.DELETED),)
    state.intend({"f": Attempt("upsertTags", moved), "g": Attempt("deleteTag", deletion)})
    assert members() == ["deleting", "id", "in", "moving"]
    state.settle([Settlement("f", moved)])
    state.end_run("interrupted", {})
    assert members() == ["deleting", "id", "in"]


def test_facts_keep_values_that_are_not_set_again(url: str) -> None:
    """The commit is that of the last run that sent something, even if it died, or had nothing to send. Sessions stay
    open until they are closed, also those of a run that died."""
    with applying(url) as state:
        lineage = state.facts().lineage
        state.set_facts(base_url="https://x", team="Patents")
        state.set_facts(owns_activity_types=True)
        assert state.facts().commit is None
        for session in ("s1", "s2"):
            state.session_opened(session)
        state.session_closed("s1")
        state.end_run("complete", {})
        state.begin_run(run(2))
        assert state.open_sessions() == ["s2"]
        state.end_run("refused", {})
        facts = state.facts()
        assert (facts.base_url, facts.team, facts.owns_activity_types) == ("https://x", "Patents", True)
        assert (facts.lineage, facts.commit) == (lineage, "commit-1")
        state.begin_run(run(3))
        state.intend({"c": Attempt("upsertTags", (whole(A),))})
    with open_state(url, write=False) as reader:
        assert reader.facts().commit == "commit-3"


def test_a_call_that_failed_and_then_settled_is_settled(state: State) -> None:
    """Also by another run of the same plan: the last outcome of each key counts."""
    effects = whole(A), whole(B)
    state.intend({"c": Attempt("upsertTags", effects), "d": Attempt("upsertTags", effects)})
    state.settle([Settlement("c", effects)])
    state.fail([CallFailure("d", (A, B), "no")])
    assert [row.doubtful for row in state.get([A, B]).values()] == [True, True]
    state.begin_run(run(2, plan="plan-1"))
    applied(state, "d", *effects)
    assert [row.doubtful for row in state.get([A, B]).values()] == [False, False]


def test_a_write_without_the_lock_is_refused(url: str) -> None:
    """Be it that it was never taken, that it was released, or that somebody forced it."""
    with open_state(url, write=True) as state:
        with pytest.raises(LockLost):
            state.begin_run(run())
        for number, is_forced in enumerate((False, True)):
            lease = state.lock(HERE, wait=0, request_timeout=0)
            state.begin_run(run(number))
            if is_forced:
                assert state.force_unlock(lease.info.id)
            lease.release()
            with pytest.raises(LockLost) as lost:
                state.intend({"c": Attempt("upsertTags", (whole(A),))})
            assert lost.value.exit_code is ExitCode.LOCKED
        assert (list(state.rows()), state.history(A)) == ([], [])


# --- what a project's folder remembers of its state (docs/state.md)


@pytest.mark.parametrize("damaged", [b"", b'{"number": "\xff"}', b'{"odd": ' + b"[" * 100_000])
def test_a_damaged_memory_is_none(damaged: bytes, tmp_path: Path) -> None:
    """A machine that died, or a full disk, may have left it so."""
    (tmp_path / "seen.json").write_bytes(damaged)
    assert FolderMemory(tmp_path / "seen.json", "state").last() is None


def test_a_plan_that_ends_after_an_apply_leaves_the_later_mark(url: str, tmp_path: Path) -> None:
    """Otherwise nobody would notice that the state is set back to before the apply."""
    memory = FolderMemory(tmp_path / "seen.json", "state")

    def write(team: str) -> None:
        with open_state(url, write=True, memory=memory) as state, state.lock(HERE, wait=5, request_timeout=0):
            state.set_facts(team=team)

    write("one")
    with open_state(url, write=False) as state:
        as_planned = state.marks(0)
    write("two")
    last = memory.last()
    assert last is not None
    assert last.number > as_planned.last.number
    memory.remember(as_planned)
    assert memory.last() == last


FULL = Recorded(
    tag("ACME-0042"),
    Body({"category": "acme", "excludeTagNameKeyword": False, "list": ("b", "a")}, ("b", "a"), {"Client": "ACME"}),
    Status.RETIRED,
    doubtful=True,
    confirmed=True,
    server_id="17",
    source=Source("a.yaml", 3, Row("data.csv", 4711)),
    protect=True,
    former_categories=("category/old", "id/9"),
)


def test_whatever_a_plan_depends_on_changes_the_digest() -> None:
    """Status, doubt, server id, protection and every part of the body, and whether the row exists at all. But not the
    order of what has none, nor who wrote the row, or where it is declared."""
    body = Body(dict(reversed(FULL.body.fields.items())), ("a", "b"), FULL.body.metadata)
    same = replace(FULL, body=body), replace(FULL, run="r", plan="p", source=None, confirmed=False)
    assert {digest(row) for row in same} == {digest(FULL)}
    changed: list[dict[str, Any]] = [
        *({"doubtful": False}, {"status": Status.ACTIVE}, {"server_id": "18"}, {"protect": False}),
        *({"former_categories": ()}, {"key": tag("ACME-0043")}),
        *({"body": replace(FULL.body, keywords=("a",))}, {"body": replace(FULL.body, metadata={})}),
    ]
    others = {digest(replace(FULL, **change)) for change in changed} | {digest(None)}
    assert (len(others), digest(FULL) in others) == (len(changed) + 1, False)


def test_digests_keep_the_values_that_are_stored(tmp_path: Path) -> None:
    """For text, bytes, parts, files and values; the order of keys does not matter."""
    (tmp_path / "ab").write_bytes(b"ab")
    of_bytes = {sha256_of("ab"), sha256_of(b"ab"), sha256_of_parts(iter((b"a", b"b"))), sha256_at(tmp_path / "ab")}
    assert {text[:16] for text in of_bytes} == {"fb8e20fc2e4c3f24"}
    assert sha256_of("grün").startswith("fe263064ba02eaea")
    for values in ({"b": 2, "a": None}, {"a": None, "b": 2}):
        assert sha256_of_values((1, values)).startswith("749b2a8886e05ca3")


KEY = "caller-key-of-a-test"
FETCH = Mechanism("fetch", "https://service.example")
HOOK = Mechanism("webhook", "https://service.example", "https://hook.example", key_digest(KEY))


def test_the_last_mechanism_and_registration_count(path: Path) -> None:
    """There are none at first and after an unregistration. Reading creates no state. Settings that may be secret, which
    their names tell, and values that are not plain are not written."""

    def remembered() -> dict[str, Any]:
        with closing(open_database(str(path), write=False)) as database:
            return settings_in(database)

    assert (registered_mechanism(str(path)), remembered()) == (None, {})
    assert not path.exists()
    for mechanism in (FETCH, HOOK, None):
        remember_mechanism(str(path), mechanism)
        assert registered_mechanism(str(path)) == mechanism
    for values in ({"A": True, "B": "desk 7"}, {"A": True}, {"A": False}, {}, {"DESK": None, "n": 1}):
        secret = {"apiKey": "s3cr3t", "SESSION_TOKEN": "s3cr3t", "nested": {"x": "s3cr3t"}}
        remember_settings(str(path), {**secret, **values})
        assert remembered() == values
    assert all(b"s3cr3t" not in file.read_bytes() for file in path.parent.iterdir())


def test_a_mechanism_is_remembered_once_another_writer_has_ended(path: Path) -> None:
    """A receiver may write posted time into the same file meanwhile."""
    remember_mechanism(str(path), FETCH)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE elsewhere (id)")
        remembering = threading.Thread(target=remember_mechanism, args=(str(path), HOOK))
        remembering.start()
        time.sleep(0.2)
        other.execute("COMMIT")
        remembering.join(20)
    assert registered_mechanism(str(path)) == HOOK


def test_the_caller_key_is_recognized_but_not_stored(path: Path) -> None:
    """The state holds a salted digest: two digests of one key differ. A fetch client has no key. `serve` recognizes it
    at each registration, in whatever thread is free: what a thread takes, it keeps for ever."""

    def megabytes() -> float:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    before = megabytes()
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(HOOK.has_key, [KEY] * 6))
    assert megabytes() - before < 16
    remember_mechanism(str(path), HOOK)
    found = registered_mechanism(str(path))
    assert found is not None
    assert [found.has_key(KEY), found.has_key(KEY + "x"), FETCH.has_key("")] == [True, False, False]
    assert key_digest(KEY) != key_digest(KEY)
    assert KEY.encode() not in path.read_bytes()
