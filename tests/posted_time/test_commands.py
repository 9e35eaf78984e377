"""`time inbox`, `show`, `preview` and `retry`: the real program, in a project with a ledger and an inbox."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from syncengine.project.runner import Holder
from syncengine.render.posted_time import EVENT_WORDS
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import EventKind as Kind
from tests.posted_time.desk import at_work, taking
from tests.posted_time.projects import JSONL, SQL_SINK, delivering, ids, in_ledger, lines, project, project_into, rows
from tests.posted_time.samples import raw
from tests.support import warm
from tests.support.formats import fitting
from tests.support.pages import ROOT, blocks
from tests.support.quiet import unused_port
from tests.support.warm import Ended

pytestmark = pytest.mark.slow


def program(folder: Path, *words: str, stdin: str = "", **environ: str) -> Ended:
    """Run `syncengine time …` in that folder."""
    environment = {**os.environ, "NO_COLOR": "1", **environ}
    done = warm.run(["-C", str(folder), "time", *words], folder=ROOT, environ=environment, text=stdin)
    assert "Traceback" not in done.err
    return done


def printed(done: Ended) -> Any:
    """The JSON document on the standard output, which fits the schema of its format."""
    found = json.loads(done.out)
    fitting(found)
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose inbox has a success, a refusal and a conflict."""
    made = tmp_path_factory.mktemp("filled")
    with at_work(delivering(made, JSONL + SQL_SINK)) as desk:
        desk.take(raw("g1"))
        desk.acknowledge("g1")
        desk.take(raw("g2", tags=[{"name": "NO-1"}]))
        desk.take(raw("g3"))
        desk.take(raw("g3", totalDurationSecs=1))
    return made


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path, dirs_exist_ok=True)


def shown(folder: Path, *words: str, stdin: str = "") -> Any:
    """The JSON document that `syncengine time …` prints."""
    return printed(program(folder, *words, "--format", "json", stdin=stdin))


# --- `inbox` and `show`


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["g3", "g2"]),
        (("--state", "acknowledged", "--state", "refused"), ["g2", "g1"]),
        (("--user", "JO@example.com"), ["g3", "g2"]),
        (("--user", "somebody"), []),
        (("--tag", "NO-1"), ["g2"]),
        (("--since", "1h"), ["g3", "g2"]),
        (("--since", "2001-01-01"), ["g3", "g2"]),
    ],
)
def test_the_inbox_lists_groups_by_state_user_tag_time(folder: Path, words: Sequence[str], expected: list[str]) -> None:
    """With the message of each; acknowledged groups are listed only on demand."""
    document = shown(folder, "inbox", *words)
    assert [group["groupId"] for group in document["groups"]] == expected
    text = program(folder, "inbox", *words).out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("g")] == expected
    assert ("Matter NO-1 is not in the ledger." in text) is ("g2" in expected)


def test_show_prints_the_whole_story_of_a_group(folder: Path) -> None:
    """As text and as JSON, with what each offer changed."""
    text = program(folder, "show", "g1").out
    accepted = "the service accepted the status SUCCESS"
    for part in ("state: acknowledged", "archive", "reference L-g1", "offered: fetch", accepted):
        assert part in text
    assert "  revision 1  offered: fetch\n    totalDurationSecs: 3600 → 1\n" in program(folder, "show", "g3").out
    document = shown(folder, "show", "g3")
    assert (document["state"], document["group"]["totalDurationSecs"]) == ("conflict", 3600)
    kinds = ["offered", "attempt", "attempt", "verdict", "offered", "conflict"]
    assert [event["kind"] for event in document["story"]] == kinds
    changed = [{"field": "totalDurationSecs", "before": 3600, "after": 1}]
    assert [event["changes"] for event in document["story"] if "changes" in event] == [changed]
    assert shown(folder, "retry", "g3", "--accept")["changes"] == {"g3": changed}


def test_the_operator_sees_why_a_ledger_rejected_a_group(folder: Path) -> None:
    taking(delivering(folder, SQL_SINK), raw("g0", totalDurationSecs=0, timeRows=[]))
    for words in (("show", "g0"), ("inbox",)):
        assert "SQLITE_CONSTRAINT_CHECK" in program(folder, *words).out


def test_each_kind_of_event_has_its_words() -> None:
    assert list(EVENT_WORDS) == list(Kind)


FAULTY = {
    1: ("show nobody", "preview nobody", f"preview {'x' * 999}", "retry nobody", "retry g3"),
    64: (
        *("inbox --state lost", "preview", "retry", "retry --state lost", "retry --sink nobody --since 1d"),
        *("retry --sink ledger", "retry g2 --since 1d", "retry g2 --sink ledger --since 1d"),
        *("retry --state troubled --sink ledger --since 1d", "retry --sink ledger --since 1d --accept"),
    ),
}


@pytest.mark.parametrize(("words", "code"), [(words, code) for code in FAULTY for words in FAULTY[code]])
def test_a_command_that_cannot_run_reports_it_as_json(folder: Path, words: str, code: int) -> None:
    """The exit code is as given, the JSON document has diagnostics, and the ledger is unchanged."""
    before = rows(folder)
    ended = program(folder, *words.split(), "--format", "json")
    assert (ended.code, bool(printed(ended)["diagnostics"])) == (code, True)
    assert rows(folder) == before


def test_a_missing_folder_is_an_error_and_no_empty_inbox(tmp_path: Path) -> None:
    """Otherwise a script that monitors a mistyped folder would never see a failed group. No inbox is created."""
    ended = program(tmp_path / "nowhere", "inbox")
    assert (ended.code, "no such folder" in ended.err, ended.out) == (64, True, "")
    project(tmp_path, "deliver: []\n")
    assert program(tmp_path, "inbox").out == "No group is waiting, and none failed.\n"
    assert not (tmp_path / ".syncengine").exists()


# --- preview


def test_a_preview_renders_everything_and_touches_nothing(folder: Path) -> None:
    """The group is a sample, or comes from a file, stdin or the inbox."""
    before = (rows(folder), lines(folder))
    group = raw("g9", description="A long day")
    (folder / "group.json").write_text(json.dumps(group))
    for words, stdin in (("--sample", ""), ("group.json", ""), ("-", json.dumps([group])), ("g1", "")):
        document = shown(folder, "preview", words, stdin=stdin)
        assert document["outcome"] == "SUCCESS"
        assert [sink["sink"] for sink in document["sinks"]] == ["archive", "ledger"]
        assert document["sinks"][1]["content"]["params"]["matter"] == "<matter.id>"
    text = program(folder, "preview", "group.json").out
    assert "  | A long day\n" in text
    assert "params.secs = 3600" in text
    assert before == (rows(folder), lines(folder))


def test_a_preview_is_offline(tmp_path: Path) -> None:
    """It needs neither the database nor the secrets."""
    deliver = SQL_SINK + "- {name: pms, http: {url: {env: NO_URL}, headers: {Authorization: {env: NO_TOKEN}}}}\n"
    deliver += '- {name: books, csv: {path: b.csv, columns: {Date: "{{ start | date }}"}}}\n'
    project_into(tmp_path, deliver, sources="ledger: {sql: {env: NO_DATABASE}}")
    sinks = {sink["sink"]: sink["content"] for sink in shown(tmp_path, "preview", "--sample")["sinks"]}
    assert (sinks.keys(), sinks["books"]["columns"].keys()) == ({"ledger", "pms", "books"}, {"Date"})


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
    "-(lookup.person.rate | float)": "-<person.rate>",
    "[lookup.person.rate, 1] | sum": "0 + <person.rate> + 1",
    "lookup.person.since | local('UTC') | date": "<person.since>",
    "'no. ' + lookup.person.no": "no. <person.no>",
}


@pytest.mark.parametrize(("expression", "expected"), DEPENDING.items())
def test_a_preview_says_what_depends_on_a_lookup(expression: str, expected: str, tmp_path: Path) -> None:
    """A preview reads no lookup: it prints a placeholder for the value, also in expressions that use it."""
    project(tmp_path, BILLED.replace("    WHEN\n", "").replace("AMOUNT", f"{{{{ {expression} }}}}"))
    document = shown(tmp_path, "preview", "--sample")
    assert (document["outcome"], document["sinks"][0]["content"]["params"]["secs"]) == ("SUCCESS", expected)


@pytest.mark.parametrize(
    ("condition", "expression"), [("lookup.person.rate > 100", "1"), ("true", "1 if lookup.person.rate <= 100 else 2")]
)
def test_a_preview_has_no_outcome_where_a_lookup_decides(condition: str, expression: str, tmp_path: Path) -> None:
    """The outcome is neither a success nor trouble: the message names the lookup value that decides."""
    project(tmp_path, BILLED.replace("WHEN", f"when: {condition}").replace("AMOUNT", f"{{{{ {expression} }}}}"))
    document = shown(tmp_path, "preview", "--sample")
    assert (document["outcome"], document["sinks"]) == (None, [])
    assert "it depends on <person.rate>, and a preview reads no lookup" in document["message"]
    assert ": not known before a lookup is read" in program(tmp_path, "preview", "--sample").out


BROKEN = "deliver:\n  - {name: a, jsonl: {path: a, json: {x: '{{ user.experienceWeightingPercent * 2 }}'}}}\n"
FAILS = {
    "no id": ("deliver: []\n", {}, "no id"),
    "an id that is no text": ("deliver: []\n", {"groupId": 5}, "no id"),
    "a rule": ("refuse: [{when: not tag, message: Assign a tag.}]\n", raw(tags=[]), "Assign a tag."),
    "a template": (BROKEN, raw(), "syncengine.yaml:6"),
}


@pytest.mark.parametrize(("text", "group", "words"), FAILS.values(), ids=FAILS)
def test_a_preview_says_what_would_be_refused(text: str, group: dict[str, Any], words: str, tmp_path: Path) -> None:
    """With the message that the user would get; of a template that fails, with its place."""
    project(tmp_path, text)
    document = shown(tmp_path, "preview", "-", stdin=json.dumps(group))
    assert (document["outcome"], document["sinks"]) == ("FAILURE", [])
    assert words in document["message"]


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
    document = shown(folder, "preview", "group.json")
    assert (document["groupId"], document["outcome"]) == ("g9", "SUCCESS")


# --- `retry`


def test_retry_delivers_a_refused_group_once_its_cause_is_gone(folder: Path) -> None:
    """The new status SUCCESS then waits for the next status update to the service."""
    assert program(folder, "retry", "g2").code == 3
    in_ledger(folder, "INSERT INTO matter VALUES (9, 'NO-1')")
    ended = program(folder, "retry", "--state", "refused", "--format", "json")
    assert (ended.code, [group["state"] for group in printed(ended)["groups"]]) == (0, ["accepted"])
    assert ("g2", 9, 3600) in rows(folder)


def test_retry_settles_a_conflict_only_with_accept(folder: Path) -> None:
    """`--accept` declares the content in the sinks to be right, and names those that lack it."""
    refused = program(folder, "retry", "g3")
    assert (refused.code, "conflict" in refused.err, "--accept" in refused.err) == (1, True, True)
    assert "totalDurationSecs: 3600 → 1\n" in refused.err
    sinks = SQL_SINK + "- {name: later, jsonl: {path: later.jsonl}}\n"
    project_into(folder, sinks)
    accepted = program(folder, "retry", "g3", "--accept")
    assert "g3 was decided without sink later" in accepted.err
    assert (accepted.code, accepted.out) == (0, "Settled: 1 group.\n  g3\n    totalDurationSecs: 3600 → 1\n")
    settled = shown(folder, "show", "g3")
    assert (settled["state"], settled["outcome"]) == ("accepted", "SUCCESS")


def test_retry_says_that_a_group_was_decided_before_a_sink_was_added(folder: Path) -> None:
    """The added sink gets nothing, unless the group had no verdict SUCCESS. A condition may explain the lack."""
    sinks = (
        SQL_SINK + JSONL + "- {name: added, jsonl: {path: added.jsonl}}\n- {name: some, when: tag, jsonl: {path: b}}\n"
    )
    project_into(folder, sinks)
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
    """With `-y` the sink takes the groups that it lost and no others. A conflict waits for a person."""
    in_ledger(folder, "DELETE FROM time WHERE id = 'g1'")
    in_ledger(folder, "DELETE FROM syncengine_receipts WHERE group_id = 'g1'")
    again = ("retry", "--sink", "ledger", "--since", "1d")
    rehearsed = program(folder, *again, "--format", "json")
    assert (rehearsed.code, printed(rehearsed)["groups"]) == (0, ["g1"])
    assert "time retry g3 --accept" in rehearsed.err
    assert ids(folder) == ["g3"]
    assert program(folder, *again, "-y").code == 0
    assert (sorted(ids(folder)), len(lines(folder))) == (["g1", "g3"], 2)
    conflict = shown(folder, "show", "g3")
    assert (conflict["state"], conflict["outcome"]) == ("conflict", "FAILURE")


def test_retry_queues_a_group_while_another_process_holds_the_inbox(folder: Path) -> None:
    """`serve` delivers the queued group in its next round."""
    in_ledger(folder, "INSERT INTO matter VALUES (9, 'NO-1')")
    with at_work(delivering(folder, JSONL + SQL_SINK)) as desk, desk.inbox.lease(Holder.here("serve", {})):
        ended = program(folder, "retry", "g2")
        assert (ended.code, "the inbox is locked by" in ended.err, "Queued" in ended.out) == (0, True, True)
        document = shown(folder, "retry", "g2")
        assert (document["act"], document["groups"]) == ("asked", ["g2"])
        assert ("g2", 9, 3600) not in rows(folder)
        assert desk.catch_up() == 1
    assert ("g2", 9, 3600) in rows(folder)


# --- export


EACH = JSONL.replace("{name: archive,", "{name: archive, each: tag,")


def table(folder: Path, *words: str) -> list[dict[str, str]]:
    """The rows that `syncengine time export` prints."""
    return list(csv.DictReader(io.StringIO(program(folder, "export", *words).out, newline="")))


def test_each_delivery_is_a_row_with_its_reference(tmp_path: Path) -> None:
    """The JSON holds the whole groups, so that a lost target can be filled again."""
    taking(delivering(tmp_path, JSONL + SQL_SINK), raw("g1"), raw("g2", tags=[{"name": "NO-1"}]), raw("g3"))
    ended = program(tmp_path, "export", "--since", "30d", "--format", "csv")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("delivered,groupId,sink,externalId,date,start,tag,user,")
    rows = table(tmp_path)
    expected = [("g1", "archive", ""), ("g1", "ledger", "L-g1"), ("g3", "archive", ""), ("g3", "ledger", "L-g3")]
    assert [(row["groupId"], row["sink"], row["externalId"]) for row in rows] == expected
    assert {(row["seconds"], row["tag"], row["outcome"]) for row in rows} == {("3600", "ACME-0042", "SUCCESS")}
    document = shown(tmp_path, "export")
    assert [item["group"]["groupId"] for item in document["deliveries"]] == ["g1", "g1", "g3", "g3"]
    assert "s3cr3t-caller" not in str(document)


def test_sink_and_since_filter_the_deliveries(tmp_path: Path) -> None:
    """An unknown sink is a usage error; without a delivery or an inbox only the header is printed."""
    project_into(tmp_path, JSONL + SQL_SINK)
    assert len(program(tmp_path, "export").out.splitlines()) == 1
    taking(delivering(tmp_path, JSONL + SQL_SINK), raw("g1"))
    assert [row["sink"] for row in table(tmp_path, "--sink", "ledger")] == ["ledger"]
    time.sleep(0.01)
    nothing = program(tmp_path, "export", "--since", datetime.now(UTC).isoformat())
    assert (nothing.code, len(nothing.out.splitlines())) == (0, 1)
    wrong = program(tmp_path, "export", "--sink", "ledgre")
    assert (wrong.code, wrong.out, "choose from archive, ledger" in wrong.err) == (64, "", True)


def test_shares_of_tags_add_up_to_the_whole(tmp_path: Path) -> None:
    """Each tag has its own row, split by the current settings."""
    tags = [{"name": "ACME-0043"}, {"name": "ACME-0042"}]
    taking(delivering(tmp_path, EACH), raw("g1", tags=tags, totalDurationSecs=3601))
    found = sorted((row["tag"], row["seconds"], row["postedSeconds"]) for row in table(tmp_path))
    assert found == [("ACME-0042", "1801", "3601"), ("ACME-0043", "1800", "3601")]


def test_no_text_runs_as_a_formula_or_leaves_its_cell(tmp_path: Path) -> None:
    """In CSV a formula gets a leading apostrophe, and the quoting follows RFC 4180; in JSON texts are unchanged."""
    texts = ['=HYPERLINK("http://x","y")', 'He said "no",\nthen left; ü']
    taking(delivering(tmp_path, JSONL), *(raw(f"g{number}", description=text) for number, text in enumerate(texts)))
    assert [row["description"] for row in table(tmp_path)] == [f"'{texts[0]}", texts[1]]
    assert [item["group"]["description"] for item in shown(tmp_path, "export")["deliveries"]] == texts


def test_a_reduced_group_is_exported_with_its_receipt_only(folder: Path) -> None:
    """A warning names `postedTime.keep`, which keeps groups longer."""
    with open_inbox(str(folder / ".syncengine/state.db"), write=True) as inbox:
        assert inbox.write(lambda tx: tx.reduce(time.time() + 60)) == 1
    row, _ = table(folder, "--sink", "ledger")
    assert (row["groupId"], row["externalId"], row["seconds"], row["user"]) == ("g1", "L-g1", "", "")
    assert "`postedTime.keep`" in program(folder, "export").err


PAGE = ROOT / "docs/posted-time-settings.md"


SHIMS = {
    "syncengine": f'#!/bin/sh\nexec "{sys.executable}" -m syncengine "$@"\n',
    "curl": f"""#!{sys.executable}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], data=sys.argv[-2].encode(), timeout=20).read().decode())
""",
}
"""The programs that the commands of the page call; a machine may lack curl, whose POST the page sends."""


def test_the_ten_lines_deliver_what_is_printed(tmp_path: Path) -> None:
    """The commands of the page run unchanged, except for the port."""
    settings, commands = blocks(PAGE, "yaml")[0], blocks(PAGE, "sh")[0]
    assert len(settings.splitlines()) == 1 + 10
    port = str(unused_port())
    (tmp_path / "syncengine.yaml").write_text(settings.replace("8765", port))
    (tmp_path / "bin").mkdir()
    for name, text in SHIMS.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    script = commands.replace("syncengine sandbox", f"syncengine sandbox --port {port}").replace("8765", port)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = re.search(r"cat \S+ +# (.*)", commands)
    assert printed is not None
    assert (tmp_path / "out/time.jsonl").read_text() == printed[1] + "\n"
    assert printed[1] in done.stdout
    assert "SUCCESS" in done.stdout
