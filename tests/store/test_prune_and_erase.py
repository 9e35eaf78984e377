"""Pruned history leaves the state working as before, and erased data is in no byte of the state."""

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.history import write_undone
from syncengine.state.records import Approved, Attempt, CallFailure, Loss, QuarantineRecord, UndoneChange, made_of
from syncengine.state.removal import trim
from syncengine.state.store import State, open_state
from syncengine.state.tables import METADATA, RUNS, STATE
from tests import postgresql

from .estate import applied, applying, run, tag, whole

DAY = 86_400.0
A, B, C = tag("a"), tag("b"), tag("Jane Doe")
SECRETS = ("Jane Doe", "her matter", "jane-keyword", "her-metadata", "jane@example.com")


def on(day: float, url: str, number: int = 1, **given: Any) -> AbstractContextManager[State]:
    """A state in a run of that day."""
    return applying(url, run(number, started=day * DAY, **given), now=lambda: day * DAY)


def everything(url: str) -> str:
    """The content of all tables as text, and for SQLite also the bytes of the files."""
    with open_state(url, write=False) as state, state.database.transaction() as connection:
        rows = [str(tuple(row)) for t in METADATA.sorted_tables for row in connection.execute(sa.select(t))]
    files = Path(url).parent.glob("*") if "://" not in url else ()
    return "\n".join(rows) + "".join(path.read_bytes().decode("latin-1") for path in files)


def pruned(url: str, before: float, day: float, number: int = 9) -> None:
    """Prune the history before a day, on a later day."""
    with on(day, url, number) as state:
        state.prune(before * DAY)
        state.end_run("complete", {})
        assert state.compact()


def test_pruning_removes_old_history_and_keeps_rows(url: str) -> None:
    """Remaining changes keep their old values, and new changes are added to the history. A trial changes nothing. A row
    in doubt keeps its history with the error of the service and the run; other rows of the same call do not."""
    with on(1, url) as state:
        applied(state, "c1", whole(A, url="first"), whole(tag("c"), url="first"))
        state.end_run("complete", {"applied": 2})
    with on(100, url, 2) as state:
        applied(state, "c2", whole(A, url="second"))
        state.intend({"c3": Attempt("upsertTags", (whole(B, url="second"),))})
        state.fail([CallFailure("c3", (B,), "the service said no")])
        state.path_answered("upsertTags", "/tag/batch")
        state.end_run("incomplete", {"applied": 1})
    before = everything(url)
    with open_state(url, write=False, now=lambda: 200 * DAY) as state:
        rows = list(state.rows())
        counted = state.prune(150 * DAY, is_trial=True)
    assert (counted.runs, counted.entries, counted.in_doubt) == (1, 3, 1)
    assert everything(url) == before
    pruned(url, 50, 200)
    with on(201, url, 10) as state:
        assert [row.body for row in state.rows()] == [row.body for row in rows]
        assert [each.id for each in state.runs(9)] == ["run-10", "run-9", "run-2"]
        assert state.answering_paths() == {("upsertTags", "/tag/batch")}
        applied(state, "c9", whole(A, url="third"))
        assert [each.detail.fields["url"] for each in state.history(A)] == [("first", "second"), ("second", "third")]
    pruned(url, 250, 300, 11)
    with open_state(url, write=False) as state:
        assert state.history(A) == []
        (entry,) = state.history(B)
        assert (entry.outcome, entry.detail.message) == ("failed", "the service said no")
        assert {each.id for each in state.runs(9)} == {"run-11", "run-2"}


def test_pruning_keeps_what_later_applies_need(url: str) -> None:
    """The last 24 hours, which the gate counts; a loosened limit, which counts at the next apply; used plans."""
    with on(1, url, plan="p-1", limits={"tags": "25%"}) as state:
        applied(state, "c1", Effect(key=A, keywords=("k",), whole=True))
        applied(state, "c2", Effect(key=A, keywords_dropped=("k",), status=Status.RETIRED))
        state.end_run("complete", {})
    with on(1, url, 2, plan="p-2") as state:
        state.end_run("complete", {})
    pruned(url, 9, 1 + 1 / 24)
    with open_state(url, write=False) as state:
        assert [line.key for line in state.removals(DAY)] == [A]
    pruned(url, 50, 100, 10)
    with open_state(url, write=False) as state:
        assert state.facts().limits == {"tags": "25%"}
        assert state.plan_ended("p-2")
        assert [each.id for each in state.runs(9)] == ["run-10", "run-1"]


def held(url: str) -> None:
    """Record a tag named after a person in every part of a state, next to another tag."""
    loss = Loss("tags", C, "retire")
    approved = Approved({f"removed:{C}:retire": (loss,), "1@abc": (loss,)})
    with applying(url) as state:
        content = {"description": "her matter", "url": "mailto:jane@example.com"}
        more = {"keywords": ("jane-keyword",), "metadata": {"her-metadata": "x"}}
        applied(state, "c1", Effect(key=C, fields=content, whole=True, **more), whole(A))
        state.intend({"c2": Attempt("upsertTags", (whole(C, **content), whole(A, url="u")))})
        state.fail([CallFailure("c2", (C,), "Jane Doe is not jane@example.com, says the service")])
        state.fail([CallFailure("c2", (A,), "no: jane-keyword belongs to Jane Doe")])
        state.doubt([C])
        state.end_run("incomplete", {})
    refused = run(5, exit_code=4, reason="gate: tag/Jane Doe would be retired", ended=1.0)
    with open_state(url, write=True) as state:
        state.record_refusal(refused)
    with applying(url, run(2), approved=approved) as state:
        applied(state, "c3", whole(C, **content), whole(A, url="u"))
        applied(state, "c4", Effect(key=C, status=Status.DELETED))
        state.end_run("complete", {})


def erased(url: str, key: Key, number: int = 3) -> int:
    """Erase a resource, which nothing prevents, and return the number of removed entries."""
    with applying(url, run(number)) as state:
        assert state.obstacles([key], 0.0) == []
        count = state.erase([key]).entries
        state.end_run("complete", {"erased": 1})
        assert state.compact()
    return count


def test_erased_data_is_in_no_byte_of_the_state(url: str) -> None:
    """Nor in messages of errors and refused runs, nor that of a forgotten resource, whose row is gone. The history of
    other resources is unchanged."""
    held(url)
    assert all(text in everything(url) for text in SECRETS)
    with open_state(url, write=False) as state:
        entries = state.history(A)
    assert erased(url, C) >= 4
    assert [text for text in SECRETS if text in everything(url)] == []
    with applying(url, run(6)) as state:
        assert state.history(C) == []
        assert [each.detail.fields for each in state.history(A)] == [each.detail.fields for each in entries]
        assert state.history(A)[1].detail.message == "no: (erased) belongs to (erased)"
        refused = next(each for each in state.runs(9) if each.outcome == "refused")
        assert refused.reason == "gate: tag/(erased) would be retired"
        applied(state, "c5", whole(C, description="her matter"))
        state.forget([C], 0.0)
        state.end_run("complete", {})
    erased(url, C, 7)
    assert [text for text in SECRETS if text in everything(url)] == []


def test_erased_data_is_in_no_file_of_a_postgresql_server(server: postgresql.Server, database: str) -> None:
    """Each table and index is rewritten, so that no deleted row remains; those of posted time are not."""
    assert {*STATE} == {table for table in METADATA.sorted_tables if table.name.startswith("state_")}
    held(database)
    undone = UndoneChange(C, made_of(None, Recorded(C)), "run-1", "run-2")
    with applying(database, run(4)) as state:
        state.fail([CallFailure("c9", (C,), "Jane Doe: no", {C: "digest"})])
        state.set_aside([QuarantineRecord(key=C, reason="her matter", until=None, at=1.0, content="")])
        state.add_undone([undone])
        applied(state, "c10", Effect(key=C, status=Status.DELETED))
        with state.database.transaction() as connection:
            write_undone(connection, [undone], [])
        state.end_run("complete", {})

    def tables_with(text: str) -> set[str]:
        """The tables and indexes whose files contain the text; a file without a table is given by its number."""
        engine = sa.create_engine(database, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql("CHECKPOINT")
            query = "SELECT pg_relation_filenode(oid)::text, relname FROM pg_class WHERE relkind IN ('r', 'i', 't')"
            names = dict(tuple(row) for row in connection.exec_driver_sql(query))
        files = (server.folder / "data" / "base").glob("*/*")
        return {names.get(path.name, path.name) for path in files if text.encode() in path.read_bytes()}

    assert tables_with(C.name) >= {"state_rows", "state_refusals", "state_quarantine", "state_undone"}
    erased(database, C)
    assert [(text, tables_with(text)) for text in SECRETS] == [(text, set()) for text in SECRETS]


def test_a_category_is_erased_from_the_history_of_its_tags(url: str) -> None:
    """Once no row refers to it."""
    category = Key(Kind.CATEGORY, "Jane Doe")
    with applying(url) as state:
        applied(state, "c1", whole(category, label="L"), whole(A, category="Jane Doe"))
        assert [str(each.key) for each in state.obstacles([category], 0.0)] == ["category/Jane Doe"] * 2
        applied(state, "c2", Effect(key=A, cleared=("category",), whole=True))
        applied(state, "c3", Effect(key=category, status=Status.DELETED))
        state.end_run("complete", {})
    erased(url, category)
    assert "Jane Doe" not in everything(url)
    with open_state(url, write=False) as state:
        found = [each.detail.fields.get("category") for each in state.history(A)]
    assert found == [(None, "(erased)"), ("(erased)", None)]


def test_a_declared_or_doubtful_resource_is_not_erased(url: str) -> None:
    """Each obstacle names what to do."""
    with applying(url) as state:

        def obstacles(key: Key, seconds: float) -> str:
            return " ".join(each.reason for each in state.obstacles([key], seconds))

        applied(state, "c1", whole(A), whole(B))
        assert "still declared" in obstacles(A, 0.0)
        state.intend({"c2": Attempt("deleteTag", (Effect(key=B, status=Status.DELETED),))})
        state.end_run("incomplete", {})
        assert "may still be executed" in obstacles(B, 3600.0)
        assert "apply first" in obstacles(B, 0.0)


def test_a_used_plan_stays_used_after_its_run_is_trimmed(path: Path) -> None:
    """A state in Git keeps its last thousand runs."""
    with applying(str(path), run(1)) as state:
        state.end_run("complete", {})
        with state.database.transaction() as connection:
            first = dict(connection.execute(sa.select(RUNS)).mappings().one())
            later = [{"id": f"r-{n}", "plan": f"p-{n}", "started": first["started"] + n} for n in range(1, 1011)]
            connection.execute(sa.insert(RUNS), [{**first, **each} for each in later])
            for _ in range(2):
                trim(connection, time.time())
        assert [state.plan_ended(plan) for plan in (first["plan"], "p-1", "p-1010")] == [True, True, True]
        assert not state.plan_ended("other")
        assert len(state.runs(2000)) == 1000
