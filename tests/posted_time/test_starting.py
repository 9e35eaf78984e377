"""A project that cannot work is an error at start, with its place; a target that does not answer is trouble."""

import asyncio
import os
from pathlib import Path

import pytest

from syncengine.errors import Problems, TroubleKind
from syncengine.posted_time.build_route import SINK_KINDS, check
from syncengine.project.delivery_schema import SINKS
from syncengine.project.load import load_project
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, into, ledger, locked, problems, project

DELIVER = into(SQL_SINK)
SINK = "deliver:\n  - {name: a, %s}\n"
PLAIN = DELIVER.replace("lookup.matter.id", "tag.name")
HTTP = "deliver:\n  - {name: pms, http: {url: 'http://h', path: '%s', headers: {X-A: '%s'}, json: {a: ['%s']}}}\n"


NAMED = "deliver:\n  - {name: %s, each: %s, jsonl: {path: a}}\n"


WRONG: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "refuse": ("refuse:\n  - {when: not tga, message: x}\n", [("unknown-name", 6)]),
    "a lookup's column": (LOOKUPS + DELIVER.replace("matter.id", "matter.ident"), [("unknown-name", 16)]),
    "a lookup's name": (LOOKUPS + DELIVER.replace("lookup.matter.id", "lookup.mattre.id"), [("unknown-name", 16)]),
    "an undeclared lookup": (DELIVER, [("unknown-name", 12)]),
    "a column": (LOOKUPS + DELIVER.replace("secs, note)", "secs, notes)"), [("bad-statement", 13)]),
    "a lookup's table": (LOOKUPS.replace("FROM matter", "FROM matters") + DELIVER, [("bad-statement", 7)]),
    "a parameter too few": (LOOKUPS + DELIVER.replace('        note: "{{ narrative }}"\n', ""), [("bad-params", 13)]),
    "a parameter too many": (LOOKUPS + DELIVER.replace(", :note)", ", NULL)"), [("bad-params", 13)]),
    "a template in a statement": (LOOKUPS + DELIVER.replace(":note)", "'{{ narrative }}')"), [("bad-params", 13)] * 2),
    "an external id": (LOOKUPS + DELIVER.replace("L-{{ group.groupId", "{{ answer.id"), [("unknown-name", 19)]),
    "a filter": (LOOKUPS + DELIVER.replace("duration.seconds", "duration.seconds | hour"), [("bad-template", 17)]),
    "a path": (HTTP % ("/{{ tag.x }}", "x", "x"), [("unknown-name", 6)]),
    "a header": (HTTP % ("/", "{{ tag.x }}", "x"), [("unknown-name", 6)]),
    "a body": (HTTP % ("/", "x", "{{ tag.x }}"), [("unknown-name", 6)]),
    "a summary": ("narrative: {template: n.j2, summary: true}\n", [("unreadable-file", 5), ("bad-params", 5)]),
    "a narrative": ("narrative: {template: no.j2}\n", [("unreadable-file", 5)]),
    "a source": (SINK % "sql: {source: ledgr, statement: SELECT 1}", [("unknown-source", 6)]),
    "a source of another kind": (SINK % "http: {source: ledger}", [("unknown-source", 6)]),
    "two sinks of a name": (SINK % "jsonl: {path: a}" + "  - {name: a, jsonl: {path: b}}\n", [("duplicate-name", 7)]),
    "two kinds": (SINK % "jsonl: {path: a}, http: {url: 'http://h'}", [("bad-value", 6)]),
    "neither source nor url": (SINK % "sql: {statement: SELECT 1}", [("bad-value", 6)]),
    "a sink name that is no header value": ("deliver:\n  - {name: ä b, jsonl: {path: a}}\n", [("bad-value", 6)]),
    "a zone": ("timezone: Mars/Olympus\n", [("bad-value", 5)]),
    "a status": (SINK % "jsonl: {path: a}, refuseOn: [200]", [("bad-value", 6)]),
    "a keep of millions of years": ("keep: 9999999999d\n", [("bad-value", 5)]),
    "a secret header": (
        SINK % "http: {url: 'http://h', headers: {Authorization: Bearer s3cr3t}}",
        [("secret-in-file", 6)],
    ),
    "a password": (SINK % "sql: {url: 'mysql://u:s3cr3t@h/d', statement: x}", [("secret-in-file", 6)]),
    **{
        f"the path {path}": (SINK % f"http: {{url: 'http://h', path: {path}}}", [("bad-path", 6)])
        for path in ("/../a", "'/a/%2e%2e/{{ tag.name }}'", "..", "'/./{{ tag.name }}'", '"/a\\nb/{{ tag.name }}"')
    },
    **{
        f"the header {value:.9}": (SINK % f"http: {{url: 'http://h', headers: {{X-A: {value}}}}}", [("bad-value", 6)])
        for value in ('"a\\nb"', '"a\\tb"', "x" * 8001)
    },
    "a status of both": (SINK % "http: {url: 'http://h'}, refuseOn: [404, 503], troubleOn: [404]", [("bad-value", 6)]),
    "a table without columns": (SINK % "csv: {path: a.csv, columns: {}}", [("bad-value", 6)]),
    "another `each`": (SINK % "each: row, jsonl: {path: a}", [("bad-value", 6)]),
    "a name too long for the receipts of tags": (NAMED % ("n" * 39, "tag"), [("bad-value", 6)]),
    "a name short enough for them": (NAMED % ("n" * 38, "tag"), []),
    "a huge number": (f"fetchLimit: {'9' * 5000}\n", [("bad-value", 5)]),
    "a webhook that has nothing": ("mode: webhook\n", [("missing-field", 5)] * 2),
    "no caller key": ("mode: webhook\nfetchLimit: 5\nwebhook: {callbackUrl: 'https://h'}\n", [("missing-field", 7)]),
    "a webhook without URL": ("mode: webhook\nwebhook:\n  callerKey: {env: K}\n", [("missing-field", 7)]),
    "an incomplete webhook that is not used": ("mode: fetch\nwebhook: {bind: '127.0.0.1:8080'}\n", []),
    "all at once, in the order of the file": (
        "refuse:\n  - {when: not tga, message: '{{ x }}'}\n" + LOOKUPS + DELIVER.replace("INTO time", "INTO times"),
        [("unknown-name", 6), ("unknown-name", 6), ("bad-statement", 15)],
    ),
}


def test_every_kind_of_sink_is_built() -> None:
    assert [*SINK_KINDS] == [*SINKS]


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_an_error_with_its_line(text: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    """In every kind of template, name, table and parameter; no message repeats a secret."""
    found = problems(tmp_path, text)
    assert [(one.code, one.line or 0) for one in found] == expected
    assert "s3cr3t" not in repr(found)


@pytest.mark.parametrize("path", ["/dev/null", ".", "pipe"])
def test_a_jsonl_path_must_be_a_regular_file(path: str, tmp_path: Path) -> None:
    """A device, pipe or folder is an error at start: after a crash its lines could not be read back."""
    os.mkfifo(tmp_path / "pipe")
    (found,) = problems(tmp_path, f"deliver:\n  - {{name: a, jsonl: {{path: {path}}}}}\n")
    assert (found.code, f"{path} is no regular file" in found.message) == ("bad-path", True)


def test_a_database_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """Its file is not created; a missing secret is named."""
    (found,) = problems(tmp_path, PLAIN, sources="ledger: {sql: no.db}")
    assert (found.code, found.line, (tmp_path / "no.db").exists()) == ("bad-source", 8, False)
    (found,) = problems(tmp_path, PLAIN, sources="ledger: {sql: {env: LEDGER_URL}}")
    assert (found.code, "LEDGER_URL" in found.message) == ("missing-setting", True)


def test_a_busy_database_is_trouble_and_no_error(tmp_path: Path) -> None:
    """`serve` can start and deliver once the database is free."""
    with locked(ledger(tmp_path)):
        delivery = delivering(tmp_path, sources="ledger: {sql: 'sqlite:///ledger.db?timeout=0.1'}")
        assert [(t.sink, t.kind) for t in delivery.troubles] == [("ledger", TroubleKind.UNREACHABLE)]
    asyncio.run(delivery.__aexit__(None, None, None))


@pytest.mark.parametrize(
    "path", [".syncengine/state.db", ".syncengine/state.db-wal", "manifests/m.yaml", "x/../syncengine.yaml"]
)
def test_a_jsonl_path_must_not_be_a_file_of_the_project(path: str, tmp_path: Path) -> None:
    """`validate` reports it offline, even if secrets are missing."""
    deliver = f"deliver:\n  - {{name: a, jsonl: {{path: {path}}}}}\n"
    (found,) = problems(tmp_path, deliver)
    assert (found.code, found.line, path in found.message) == ("bad-path", 6, True)
    with pytest.raises(Problems) as refused:
        check(project(tmp_path, deliver))
    assert [found.code for found in refused.value.found] == ["bad-path"]
    file = tmp_path / "syncengine.yaml"
    file.write_text(file.read_text().replace(path, ".syncengine/time.jsonl") + "state: {env: NOT_THERE}\n")
    check(load_project(folder=tmp_path, environ={}))


def test_a_server_without_a_driver_is_an_error(tmp_path: Path) -> None:
    for driver, words in (("none", "for which no driver is installed"), ("psycopg2", "needs the driver psycopg2")):
        url = f"postgresql+{driver}://u:s3cr3t@127.0.0.1:9/d"
        (found,) = problems(tmp_path, PLAIN, {"URL": url}, sources="ledger: {sql: {env: URL}}")
        assert (found.code, found.line, words in found.message) == ("bad-source", 8, True)
        assert "s3cr3t" not in found.message


SECRETS = {
    "a missing URL": ({"TOKEN": "x"}, "missing-setting"),
    "an invalid URL": ({"URL": "ftp://s3cr3t", "TOKEN": "x"}, "bad-source"),
    "a missing token": ({"URL": "http://h"}, "missing-setting"),
    "a token that is no header value": ({"URL": "http://h", "TOKEN": "s3cr3t\nX: y"}, "bad-source"),
}


@pytest.mark.parametrize(("environ", "code"), SECRETS.values(), ids=SECRETS.keys())
def test_the_secrets_of_an_http_sink_are_checked_at_start(environ: dict[str, str], code: str, tmp_path: Path) -> None:
    text = "deliver:\n  - {name: pms, http: {url: {env: URL}, headers: {Authorization: {env: TOKEN}}}}\n"
    (found,) = problems(tmp_path, text, environ)
    assert (found.code, found.line, "s3cr3t" in found.message) == (code, 6, False)
