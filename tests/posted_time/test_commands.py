"""`time inbox`, `show`, `preview` and `retry`: the real program, in a project with a ledger and an inbox."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.render.posted_time import EVENT_WORDS
from syncengine.state.holder import Holder
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import EventKind as Kind
from syncengine.state.inbox_model import GroupState, Offer
from tests.posted_time.desk import at_work, taking
from tests.posted_time.projects import (
    JSONL,
    LOOKUPS,
    SQL_SINK,
    delivering,
    in_ledger,
    ledger,
    lines,
    problems,
    project,
    rows,
)
from tests.posted_time.samples import raw
from tests.settings.test_schema import judge
from tests.support import warm

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECRET = "s3cr3t-V4lue"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def program(folder: Path, *words: str, stdin: str = "", **environ: str) -> Ended:
    """Run `syncengine time …` in that folder."""
    environment = {**os.environ, "NO_COLOR": "1", **environ}
    done = warm.run(["-C", str(folder), "time", *words], folder=ROOT, environ=environment, text=stdin)
    assert "Traceback" not in done.err
    return Ended(*done)


def filled(folder: Path) -> None:
    """Fill an inbox with a success, a refusal and a conflict."""
    with at_work(delivering(folder, JSONL + SQL_SINK)) as desk:
        desk.take(raw("g1"))
        desk.acknowledge("g1")
        desk.take(raw("g2", tags=[{"name": "NO-1"}]))
        desk.take(raw("g3"))
        desk.take(raw("g3", totalDurationSecs=1))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("filled")
    filled(made)
    return made


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path, dirs_exist_ok=True)


# --- `inbox` and `show`


def test_the_inbox_lists_waiting_and_failed_groups(folder: Path) -> None:
    """Each failed group is shown with its message; acknowledged groups are not listed."""
    ended = program(folder, "inbox")
    assert ended.code == 0
    assert [line.split()[:2] for line in ended.out.splitlines() if line.startswith("g")] == [
        ["g3", "conflict"],
        ["g2", "refused"],
    ]
    assert "Matter NO-1 is not in the ledger." in ended.out
    assert "2 groups." in ended.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["g3", "g2"]),
        (("--state", "acknowledged"), ["g1"]),
        (("--state", "acknowledged", "--state", "refused"), ["g2", "g1"]),
        (("--user", "JO@example.com"), ["g3", "g2"]),
        (("--user", "somebody"), []),
        (("--tag", "NO-1"), ["g2"]),
        (("--since", "1h"), ["g3", "g2"]),
        (("--since", "2001-01-01"), ["g3", "g2"]),
    ],
)
def test_the_inbox_is_filtered_by_state_user_tag_and_time(
    folder: Path, words: Sequence[str], expected: list[str]
) -> None:
    document = program(folder, "inbox", *words, "--format", "json").document
    assert document["format"] == "syncengine.inbox/v1"
    assert [group["groupId"] for group in document["groups"]] == expected


def test_show_prints_the_whole_story_of_a_group(folder: Path) -> None:
    """Both as text and as JSON."""
    text = program(folder, "show", "g1").out
    accepted = "the service accepted the status SUCCESS"
    for part in ("state: acknowledged", "archive", "reference L-g1", "offered: fetch", accepted):
        assert part in text
    document = program(folder, "show", "g3", "--format", "json").document
    assert (document["state"], document["group"]["totalDurationSecs"]) == ("conflict", 3600)
    assert [event["kind"] for event in document["story"]] == [
        "offered",
        "attempt",
        "attempt",
        "verdict",
        "offered",
        "conflict",
    ]


def test_show_prints_the_changes_of_each_offer(folder: Path) -> None:
    """Each changed field is shown with its old and new value. A group that was offered once has no changes."""
    text = program(folder, "show", "g3").out
    assert "  revision 1  offered: fetch\n    totalDurationSecs: 3600 → 1\n" in text
    story = program(folder, "show", "g3", "--format", "json").document["story"]
    assert [event["changes"] for event in story if "changes" in event] == [
        [{"field": "totalDurationSecs", "before": 3600, "after": 1}]
    ]
    settled = program(folder, "retry", "g3", "--accept", "--format", "json").document
    assert settled["changes"] == {"g3": [{"field": "totalDurationSecs", "before": 3600, "after": 1}]}
    assert "changes" not in json.dumps(program(folder, "show", "g1", "--format", "json").document)


def test_the_operator_sees_why_a_ledger_rejected_a_group(tmp_path: Path) -> None:
    """`time show` and `time inbox` name the violated constraint; the message for the user does not."""
    with at_work(delivering(tmp_path, SQL_SINK)) as desk:
        desk.take(raw("g1", totalDurationSecs=0, timeRows=[]))
    for words in (("show", "g1"), ("inbox",)):
        assert "SQLITE_CONSTRAINT_CHECK" in program(tmp_path, *words).out
    group = program(tmp_path, "show", "g1", "--format", "json").document
    assert group["message"] == "ledger rejected the time: something in it does not fit there."


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        (("inbox",), "inbox"),
        (("inbox", *(word for state in GroupState for word in ("--state", state))), "inbox"),
        (("show", "g1"), "group"),
        (("show", "g3"), "group"),
        (("preview", "--sample"), "preview"),
        (("preview", "g2"), "preview"),
        (("retry", "g2"), "inbox"),
        (("retry", "g3", "--accept"), "selection"),
        (("retry", "--sink", "ledger", "--since", "1d"), "selection"),
        (("retry", "--sink", "ledger", "--since", "1d", "-y"), "inbox"),
    ],
)
def test_json_output_matches_its_schema(folder: Path, words: Sequence[str], schema: str) -> None:
    judge(f"{schema}.schema.json").validate(program(folder, *words, "--format", "json").document)


def test_each_kind_of_event_has_its_words() -> None:
    assert list(EVENT_WORDS) == list(Kind)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "nobody"), 1),
        (("inbox", "--state", "lost"), 64),
        (("inbox", "--since", "soon"), 64),
        (("preview",), 64),
        (("preview", "x", "--sample"), 64),
        (("preview", "nobody"), 1),
        (("retry",), 64),
        (("retry", "nobody"), 1),
        (("retry", "--state", "lost"), 64),
        (("retry", "g3"), 1),
        (("retry", "--sink", "nobody", "--since", "1d"), 64),
        (("retry", "--sink", "ledger"), 64),
        (("retry", "--since", "1d"), 64),
        (("retry", "g2", "--since", "1d"), 64),
        (("retry", "g2", "-y"), 64),
        (("retry", "g2", "--sink", "ledger", "--since", "1d"), 64),
        (("retry", "--state", "troubled", "--sink", "ledger", "--since", "1d"), 64),
        (("retry", "--sink", "ledger", "--since", "1d", "--accept"), 64),
        (("inbox", "--since", "2999-01-01T00:00:00Z"), 64),
    ],
)
def test_a_command_that_cannot_run_reports_it_as_json(folder: Path, words: Sequence[str], code: int) -> None:
    """The exit code is as given, the JSON document has diagnostics, and the ledger is unchanged."""
    before = rows(folder)
    ended = program(folder, *words, "--format", "json")
    assert (ended.code, bool(ended.document["diagnostics"])) == (code, True)
    assert rows(folder) == before


def test_a_missing_folder_is_an_error_and_no_empty_inbox(tmp_path: Path) -> None:
    """Otherwise a script that monitors a mistyped folder would never see a failed group."""
    ended = program(tmp_path / "nowhere", "inbox")
    assert (ended.code, "no such folder" in ended.err, ended.out) == (64, True, "")


@pytest.mark.parametrize("given", ["{}", '{"groupId": 5}'])
def test_a_group_without_a_valid_id_is_previewed_as_a_failure(folder: Path, given: str) -> None:
    """Its `groupId` is missing or is not a string."""
    document = program(folder, "preview", "-", "--format", "json", stdin=given).document
    assert (document["outcome"], "no id" in document["message"]) == ("FAILURE", True)


def test_the_inbox_command_creates_no_inbox(tmp_path: Path) -> None:
    project(tmp_path, f"{LOOKUPS}deliver: []\n")
    assert program(tmp_path, "inbox").out == "No group is waiting, and none failed.\n"
    assert not (tmp_path / ".syncengine").exists()


# --- preview


def test_a_preview_renders_everything_and_touches_nothing(folder: Path) -> None:
    """The group is a sample, or comes from a file, stdin or the inbox."""
    before = (rows(folder), lines(folder))
    (folder / "group.json").write_text(json.dumps(raw("g9", description="A long day")))
    for words, stdin in (
        (("--sample",), ""),
        (("group.json",), ""),
        (("-",), json.dumps([raw("g9", description="A long day")])),
        (("g1",), ""),
    ):
        document = program(folder, "preview", *words, "--format", "json", stdin=stdin).document
        assert document["outcome"] == "SUCCESS"
        assert [sink["sink"] for sink in document["sinks"]] == ["archive", "ledger"]
        assert document["sinks"][1]["content"]["params"]["matter"] == "<matter.id>"
    text = program(folder, "preview", "group.json").out
    assert "  | A long day\n" in text
    assert "params.secs = 3600" in text
    assert before == (rows(folder), lines(folder))


def test_an_id_that_is_too_long_for_a_file_is_one_of_the_inbox(folder: Path) -> None:
    """The service says nothing about the length of an id."""
    id = "x" * 2000
    with open_inbox(str(folder / ".syncengine/state.db"), write=True) as inbox:
        inbox.write(lambda tx: tx.receive(Offer(id, "digest", json.dumps(raw(id)), "fetch")))
    assert program(folder, "preview", id, "--format", "json").document["groupId"] == id
    unknown = program(folder, "preview", id + "y")
    assert (unknown.code, "is neither a file nor a group in the inbox" in unknown.err) == (1, True)


def test_a_preview_is_offline(tmp_path: Path) -> None:
    """It needs neither the database nor the secrets."""
    deliver = SQL_SINK + "- {name: pms, http: {url: {env: NO_URL}, headers: {Authorization: {env: NO_TOKEN}}}}\n"
    text = f"{LOOKUPS}deliver:\n" + "".join(f"  {line}\n" for line in deliver.splitlines())
    project(tmp_path, text, "ledger: {sql: {env: NO_DATABASE}}")
    document = program(tmp_path, "preview", "--sample", "--format", "json").document
    assert [sink["sink"] for sink in document["sinks"]] == ["ledger", "pms"]


def test_a_preview_says_what_would_be_refused(folder: Path) -> None:
    """With the message that the user would get."""
    text = "refuse:\n  - {when: not tag, message: Assign a tag.}\ndeliver: [{name: a, jsonl: {path: a}}]\n"
    project(folder, text)
    (folder / "group.json").write_text(json.dumps(raw(tags=[])))
    document = program(folder, "preview", "group.json", "--format", "json").document
    assert (document["outcome"], document["message"], document["sinks"]) == ("FAILURE", "Assign a tag.", [])


def test_a_preview_names_file_and_line_of_a_failing_template(folder: Path) -> None:
    project(
        folder, "deliver:\n  - name: a\n    jsonl: {path: a, json: {x: '{{ user.experienceWeightingPercent * 2 }}'}}\n"
    )
    (folder / "group.json").write_text(json.dumps(raw()))
    document = program(folder, "preview", "group.json", "--format", "json").document
    assert (document["outcome"], "syncengine.yaml:7" in document["message"]) == ("FAILURE", True)


BILLED = """\
lookups:
  - name: person
    sql: {source: ledger, query: "SELECT * FROM matter WHERE no = :no", params: {no: "{{ tag.name }}"}}
deliver:
  - name: ledger
    WHEN
    sql: {source: ledger, statement: "INSERT INTO time VALUES (:id, 7, :secs, NULL)",
          params: {id: "{{ group.groupId }}", secs: "AMOUNT"}}
"""
DEPENDING = {
    "duration.hours * lookup.person.rate": "2.7778 * <person.rate>",
    "(duration.hours * lookup.person.rate) | round(2)": "2.7778 * <person.rate>",
    "lookup.person.rate | int": "<person.rate>",
    "-(lookup.person.rate | float)": "-<person.rate>",
    "[lookup.person.rate, 1] | sum": "0 + <person.rate> + 1",
    "lookup.person.since | local('UTC') | date": "<person.since>",
    "'no. ' + lookup.person.no": "no. <person.no>",
}


@pytest.mark.parametrize(("expression", "expected"), DEPENDING.items())
def test_a_preview_says_what_depends_on_a_lookup(expression: str, expected: str, tmp_path: Path) -> None:
    """A preview reads no lookup: it prints a placeholder for the value, also in expressions that use it."""
    project(tmp_path, BILLED.replace("    WHEN\n", "").replace("AMOUNT", f"{{{{ {expression} }}}}"))
    document = program(tmp_path, "preview", "--sample", "--format", "json").document
    assert (document["outcome"], document["sinks"][0]["content"]["params"]["secs"]) == ("SUCCESS", expected)


@pytest.mark.parametrize(
    ("condition", "expression"), [("lookup.person.rate > 100", "1"), ("true", "1 if lookup.person.rate <= 100 else 2")]
)
def test_a_preview_has_no_outcome_where_a_lookup_decides(condition: str, expression: str, tmp_path: Path) -> None:
    """The outcome is neither a success nor trouble: the message names the lookup value that decides."""
    text = BILLED.replace("WHEN", f"when: {condition}").replace("AMOUNT", f"{{{{ {expression} }}}}")
    project(tmp_path, text)
    document = program(tmp_path, "preview", "--sample", "--format", "json").document
    judge("preview.schema.json").validate(document)
    assert (document["outcome"], document["sinks"]) == (None, [])
    assert "it depends on <person.rate>, and a preview reads no lookup" in document["message"]
    assert ": not known before a lookup is read" in program(tmp_path, "preview", "--sample").out


@pytest.mark.parametrize(("kind", "rate"), [("REAL", 250.5), ("INTEGER", 250), ("NUMERIC", 250.5), ("TEXT", "250.5")])
def test_hours_are_multiplied_by_a_rate_of_any_column_type(kind: str, rate: object, tmp_path: Path) -> None:
    """The rate is a REAL, INTEGER or NUMERIC column; a TEXT column needs the filter `float`."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database, database:
        database.execute(f"ALTER TABLE matter ADD rate {kind}")
        database.execute("UPDATE matter SET rate = ?", (rate,))
    number = "(lookup.person.rate | float)" if kind == "TEXT" else "lookup.person.rate"
    text = BILLED.replace("    WHEN\n", "").replace("AMOUNT", f"{{{{ duration.hours * {number} * 100 }}}}")
    opened = Delivery.of(project(tmp_path, text), {})
    (verdict,) = taking(opened, raw(totalDurationSecs=900))
    assert (verdict.outcome, rows(tmp_path)) == ("SUCCESS", [("g1", 7, 6250 if kind == "INTEGER" else 6262.5)])


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '[{"a": 1}, {"a": 2}]', "\x00"])
def test_a_file_that_holds_no_group_is_an_error_that_names_it(text: str, folder: Path) -> None:
    (folder / "group.json").write_text(text)
    ended = program(folder, "preview", "group.json")
    assert (ended.code, "group.json" in ended.err) == (1, True)


def test_a_preview_reads_what_serve_would_read(folder: Path) -> None:
    """A text that is not UTF-8, a line break within a text, a number beyond all others: the service may send them."""
    (folder / "group.json").write_bytes(
        b'{"groupId": "g9", "description": "M\xfcller\nand son", "timestamp": 1e999, "totalDurationSecs": 60,'
        b' "tags": [{"name": "ACME-0042"}]}'
    )
    document = program(folder, "preview", "group.json", "--format", "json").document
    assert (document["groupId"], document["outcome"]) == ("g9", "SUCCESS")


def test_preview_reports_project_errors_with_line_and_column(tmp_path: Path) -> None:
    """`preview` checks the project although it opens no sink."""
    text = "deliver:\n  - {name: a, when: tga, jsonl: {path: a}}\n"
    assert problems(tmp_path, text)
    ended = program(tmp_path, "preview", "--sample")
    assert (ended.code, "syncengine.yaml:6:23: error[unknown-name]" in ended.err) == (8, True)


# --- `retry`


def test_retry_delivers_a_refused_group_once_its_cause_is_gone(folder: Path) -> None:
    """The new status SUCCESS then waits for the next status update to the service."""
    assert program(folder, "retry", "g2").code == 3
    in_ledger(folder, "INSERT INTO matter VALUES (9, 'NO-1')")
    ended = program(folder, "retry", "--state", "refused", "--format", "json")
    assert (ended.code, [group["state"] for group in ended.document["groups"]]) == (0, ["accepted"])
    assert ("g2", 9, 3600) in rows(folder)
    with open_inbox(str(folder / ".syncengine/state.db"), write=False) as inbox:
        assert ("g2", "SUCCESS") in [(w.group_id, w.status) for w in inbox.waiting()]


def test_retry_settles_a_conflict_only_with_accept(folder: Path) -> None:
    """`--accept` declares the content in the sinks to be right, and names those that lack it."""
    refused = program(folder, "retry", "g3")
    assert (refused.code, "conflict" in refused.err, "--accept" in refused.err) == (1, True, True)
    assert "totalDurationSecs: 3600 → 1\n" in refused.err
    sinks = SQL_SINK + "- {name: later, jsonl: {path: later.jsonl}}\n"
    project(folder, LOOKUPS + "deliver:\n" + "".join(f"  {line}\n" for line in sinks.splitlines()))
    accepted = program(folder, "retry", "g3", "--accept")
    assert "g3 was decided without sink later" in accepted.err
    assert (accepted.code, accepted.out) == (0, "Settled: 1 group.\n  g3\n    totalDurationSecs: 3600 → 1\n")
    with open_inbox(str(folder / ".syncengine/state.db"), write=False) as inbox:
        entry = inbox.entry("g3")
    assert entry is not None
    assert (entry.state, entry.outcome, entry.waiting) == ("accepted", "SUCCESS", True)


def test_retry_says_that_a_group_was_decided_before_a_sink_was_added(folder: Path) -> None:
    """The added sink gets nothing. A group without a verdict SUCCESS is delivered to it, and a sink with a condition
    may not have been meant for the group."""
    sinks = (
        SQL_SINK + JSONL + "- {name: added, jsonl: {path: added.jsonl}}\n- {name: some, when: tag, jsonl: {path: b}}\n"
    )
    project(folder, LOOKUPS + "deliver:\n" + "".join(f"  {line}\n" for line in sinks.splitlines()))
    ended = program(folder, "retry", "g1")
    assert (ended.code, (folder / "added.jsonl").exists()) == (0, False)
    assert "g1 was decided without sink added, as before the sink was added or by --accept, and is not" in ended.err
    assert "`syncengine time show g1 --format json" in ended.err
    assert ended.err.count("was decided without") == 1
    again = program(folder, "retry", "--sink", "added", "--since", "1d", "-y")
    assert "Nothing to deliver to sink added again" in again.err
    in_ledger(folder, "INSERT INTO matter VALUES (9, 'NO-1')")
    assert "was decided without" not in program(folder, "retry", "g2").err
    assert len((folder / "added.jsonl").read_text().splitlines()) == 1


def test_redelivery_without_y_only_lists_the_groups(folder: Path) -> None:
    """With `-y` the sink takes the groups that it lost and no others. A conflict stays one until a person settles
    it."""
    in_ledger(folder, "DELETE FROM time WHERE id = 'g1'")
    in_ledger(folder, "DELETE FROM syncengine_receipts WHERE group_id = 'g1'")
    rehearsed = program(folder, "retry", "--sink", "ledger", "--since", "1d", "--format", "json")
    assert (rehearsed.code, rehearsed.document["groups"]) == (0, ["g1"])
    assert [row[0] for row in rows(folder)] == ["g3"]
    assert program(folder, "retry", "--sink", "ledger", "--since", "1d", "-y").code == 0
    assert sorted(row[0] for row in rows(folder)) == ["g1", "g3"]
    assert len(lines(folder)) == 2
    assert "time retry g3 --accept" in rehearsed.err
    with open_inbox(str(folder / ".syncengine/state.db"), write=False) as inbox:
        entry = inbox.entry("g3")
    assert entry is not None
    assert (entry.state, entry.outcome) == ("conflict", "FAILURE")


def test_retry_queues_a_group_while_another_process_holds_the_inbox(folder: Path) -> None:
    """`serve` delivers the queued group in its next round."""
    in_ledger(folder, "INSERT INTO matter VALUES (9, 'NO-1')")
    with at_work(delivering(folder, JSONL + SQL_SINK)) as desk, desk.inbox.lease(Holder.here("serve", {})):
        ended = program(folder, "retry", "g2")
        assert (ended.code, "the inbox is locked by" in ended.err, "Queued" in ended.out) == (0, True, True)
        document = program(folder, "retry", "g2", "--format", "json").document
        judge("selection.schema.json").validate(document)
        assert (document["act"], document["groups"]) == ("asked", ["g2"])
        assert ("g2", 9, 3600) not in rows(folder)
        assert desk.catch_up() == 1
    assert ("g2", 9, 3600) in rows(folder)


def test_no_output_carries_a_secret(folder: Path) -> None:
    """Neither the secret of a header nor that of a URL appears in text, in JSON or in the state."""
    http = "- {name: pms, http: {url: {env: PMS}, headers: {Authorization: {env: TOKEN}}, json: {a: 1}}}\n"
    project(folder, "deliver:\n  " + http)
    environ = {"PMS": f"http://u:{SECRET}@127.0.0.1:1", "TOKEN": SECRET}
    for words in (("preview", "--sample"), ("retry", "g2"), ("show", "g2"), ("inbox",)):
        for format in ("text", "json"):
            ended = program(folder, *words, "--format", format, **environ)
            assert SECRET not in ended.out + ended.err
    assert SECRET.encode() not in (folder / ".syncengine/state.db").read_bytes()
