"""`drift` as a process, against the sandbox: requests, exit codes, privacy, formats, and the printed repair."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from syncengine.state.tables import METADATA
from tests.cli.program import Ended, Project, tag
from tests.cli.service import KEY, Json, Service, serving
from tests.settings.test_schema import judge
from tests.support import loopback
from tests.support.pages import ROOT, blocks

from .lister import group, listing, obedient

pytestmark = pytest.mark.slow

READS = {"teamInfo", "listPostedTime"}
POLICY = "policy: {tagRemoval: retire, maxDeletes: {tags: 100%, keywords: 100%}}"
IN_CI = {"CI": "true"}
HELD = [
    tag("ACME-0042", description="Opposition", externalId="4711"),
    tag("ACME-0043", description="Appeal"),
    tag("HUSH-1", description="Merger of X and Y", visibility="PRIVATE"),
]


@dataclass
class Team:
    """A team with an applied project, in which time is posted."""

    service: Service
    project: Project

    def post(self, *tags: str | Json, **more: Any) -> None:
        named = [tag if isinstance(tag, dict) else {"name": tag} for tag in tags]
        response = self.service.control.post("/posted-time", json={"tags": named, **more})
        assert response.status_code == 200, response.text

    def edit(self, name: str, **fields: Any) -> None:
        """Edit a tag in the console and post time with it."""
        self.post({"name": name, **fields})

    def drift(self, *arguments: str, **environ: str) -> Ended:
        return self.project.run("drift", *arguments, environ=environ)

    def found(self, *arguments: str) -> dict[str, str]:
        """The kind of each finding, by address."""
        document = self.drift("--format", "json", *arguments).document
        return {finding["address"]: finding["kind"] for finding in document["findings"]}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with serving() as service:
        project = Project(tmp_path / "project", service.url)
        project.settings(POLICY)
        project.settle(tags=[*HELD, tag("OLD")])
        project.settle(tags=HELD)
        yield Team(service, project)


def drifted(team: Team) -> Team:
    """Cause one finding of each kind, and one more of a PRIVATE tag."""
    team.edit("ACME-0042", description="Opposition, edited")
    team.edit("HUSH-1", description="Merger of Z")
    team.post({"name": "NEW 1", "description": "by hand", "externalId": "9"})
    for _ in range(6):
        team.post("OLD")
    return team


EACH = {"tag/ACME-0042": "differs", "tag/HUSH-1": "differs", "tag/NEW 1": "unknown", "tag/OLD": "retired-in-use"}


# --- requests


def test_drift_only_reads_the_team_and_the_list(team: Team) -> None:
    """It registers, fetches, acknowledges and changes nothing, takes no lock and writes no file."""
    drifted(team)
    before, files, held = len(team.service.asked()), team.project.files(), team.service.holds()
    assert team.drift().code == 0
    assert set(team.service.asked()[before:]) == READS
    assert (team.project.files(), team.service.holds()) == (files, held)
    assert team.service.control.get("/state").json()["connection"]["mechanism"] is None


def test_each_kind_of_drift_is_found_once_while_another_run_holds_the_lock(team: Team) -> None:
    """Tags that match the state, and groups without a tag, are no findings; the output says what was seen."""
    assert team.project.run("state", "lock", "--reason", "a move").code == 0
    drifted(team).post("ACME-0043")
    team.post()
    assert team.found() == EACH
    assert "3 of 3 tags seen in 11 groups since" in team.drift().out
    coverage = team.drift("--format", "json").document["coverage"]
    assert (coverage["tags"], coverage["seen"], coverage["groups"], coverage["complete"]) == (3, 3, 11, True)


# --- exit codes


def test_detailed_exitcode_exits_with_2_on_findings(team: Team) -> None:
    """Without the option `drift` exits with 0. Unused tags alone do not count."""
    assert team.drift("--detailed-exitcode").code == 0
    unused = team.drift("--unused", "180d", "--detailed-exitcode", "--format", "json")
    assert {each["kind"] for each in unused.document["findings"]} == {"unused"}
    assert unused.code == 0
    drifted(team)
    assert (team.drift().code, team.drift("--detailed-exitcode").code) == (0, 2)


def test_a_team_other_than_the_states_exits_with_7(team: Team) -> None:
    """The posted time of the other team is not requested."""
    with listing(obedient([]), team="Another") as lister:
        _move(team.project, lister.url)
        done = team.drift()
    assert (done.code, lister.requests) == (7, ["GET /connect/api/team/info"])
    assert "Another" in done.err


def test_a_service_other_than_the_states_exits_with_7(team: Team) -> None:
    """`drift` sends no request to it."""
    with listing(obedient([])) as lister:
        done = team.drift(SYNCENGINE_BASE_URL=lister.url)
    assert (done.code, lister.requests, "other-service" in done.err) == (7, [], True)


def test_a_service_that_is_down_exits_with_9(tmp_path: Path) -> None:
    with listing(obedient([])) as lister:
        project = Project(tmp_path, lister.url)
    assert project.run("drift").code == 9


def test_an_invalid_answer_exits_with_1(tmp_path: Path) -> None:
    """Each format has a message that repeats nothing of the answer."""
    with listing(lambda *_: b"<html>Jane Doe</html>") as lister:
        project = Project(tmp_path, lister.url)
        for format in ("text", "json", "markdown"):
            done = project.run("drift", "--format", format)
            assert done.code == 1
            assert "does not allow" in done.out + done.err
            assert "No plan" not in done.out
            assert "Jane" not in done.out + done.err


@pytest.mark.parametrize("none", ["0d", "0h", "0.0s"])
def test_a_since_of_zero_is_refused(tmp_path: Path, none: str) -> None:
    """The exit code is 64, and the message says that the duration must be longer than zero."""
    done = Project(tmp_path, "http://localhost:1").run("drift", "--since", none)
    assert (done.code, "must be longer than zero" in done.err) == (64, True), done.err


def test_an_incomplete_list_exits_with_3(tmp_path: Path) -> None:
    """The message says why the list is incomplete; the findings are still printed."""
    with listing(lambda limit, _: [group(n, 1_790_000_000_000 - n, "X") for n in range(limit)]) as lister:
        project = Project(tmp_path, lister.url)
        done = project.run("drift", "--since", "9000d", "--format", "json", "--detailed-exitcode")
    assert (done.code, done.document["coverage"]["complete"]) == (3, False)
    assert "submittedBefore" in done.err
    assert [each["address"] for each in done.document["findings"]] == ["tag/X"]


@pytest.mark.parametrize("words", [("--since", "soon"), ("--unused", "-3d"), ("--format", "html"), ("x",)], ids=str)
def test_usage_errors_exit_with_64(tmp_path: Path, words: tuple[str, ...]) -> None:
    """No request is sent."""
    with listing(obedient([])) as lister:
        done = Project(tmp_path, lister.url).run("drift", *words)
    assert (done.code, lister.requests) == (64, [])


def test_without_a_state_every_tag_is_unknown(tmp_path: Path) -> None:
    """A warning says so, and no state is created. In a CI job a missing state exits with 4."""
    with serving() as service:
        team = Team(service, Project(tmp_path, service.url))
        team.post("A")
        assert team.found() == {"tag/A": "unknown"}
        assert "no state yet" in team.drift().err
        assert team.drift(**IN_CI).code == 4
        assert "no state yet" in team.drift(CI="false").err
        assert not (tmp_path / ".syncengine").exists()


# --- read-only states


def test_a_state_in_a_read_only_folder_can_be_read(team: Team) -> None:
    """A CI job may mount the SQLite state read-only."""
    drifted(team)
    folder = team.project.folder / ".syncengine"
    files = team.project.files()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert team.found() == EACH
    finally:
        folder.chmod(0o700)
    assert team.project.files() == files


def test_a_postgresql_role_that_may_only_select_can_read(tmp_path: Path, postgresql_url: str) -> None:
    """Pull requests are planned with such a role."""
    engine = sa.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
    METADATA.drop_all(engine)
    try:
        with serving() as service:
            team = Team(service, Project(tmp_path, service.url))
            team.project.environ["SYNCENGINE_STATE"] = postgresql_url
            team.project.settings("state: {env: SYNCENGINE_STATE}", POLICY)
            team.project.settle(tags=[*HELD, tag("OLD")])
            team.project.settle(tags=HELD)
            with engine.connect() as connection:
                for statement in (
                    "DROP ROLE IF EXISTS reader_of_drift",
                    "CREATE ROLE reader_of_drift LOGIN PASSWORD 'r'",
                    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_of_drift",
                ):
                    connection.execute(sa.text(statement))
            reader = engine.url.set(username="reader_of_drift", password="r").render_as_string(hide_password=False)
            team.project.environ["SYNCENGINE_STATE"] = reader
            assert drifted(team).found() == EACH
    finally:
        METADATA.drop_all(engine)
        with engine.connect() as connection:
            connection.execute(sa.text("DROP OWNED BY reader_of_drift"))
            connection.execute(sa.text("DROP ROLE reader_of_drift"))
        engine.dispose()


# --- personal data


MARK = "zq7-marker"
PEOPLE: Json = {
    "description": f"{MARK}-description",
    "formattedNarrative": f"{MARK}-narrative",
    "groupName": f"{MARK}-group",
    "localDate": "2026-01-01",
    "user": {"userId": f"{MARK}-id", "name": f"{MARK}-name", "email": f"{MARK}@example.com", "externalId": MARK},
    "originatingUser": {"name": f"{MARK}-origin"},
    "activityType": {"code": f"{MARK}-code", "label": f"{MARK}-label"},
    "timeRows": [{"activity": f"{MARK}-activity", "description": f"{MARK}-row", "durationSecs": 60}],
    "groupId": f"{MARK}-group-id",
    f"{MARK}-field": {"deep": [f"{MARK}-deep"]},
}


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_no_personal_data_is_shown_or_written(team: Team, format: str) -> None:
    """No name, narrative or row of a user appears in an output, a log or a file of the project."""
    team.post("NEW", "ACME-0042", {"name": "X", f"{MARK}-more": MARK}, **PEOPLE)
    for debug in ((), ("--debug", "-v"), ("--debug", "--log-format", "json")):
        done = team.drift("--format", format, "--unused", "180d", *debug)
        assert done.code == 0
        assert MARK not in done.out + done.err
    assert not [name for name, content in team.project.files().items() if MARK.encode() in content]


def test_errors_show_no_personal_data(tmp_path: Path) -> None:
    """The answer of the service breaks off in the middle."""
    whole = json.dumps([{**PEOPLE, "tags": [], "submissionTime": 5}]).encode()
    with listing(lambda *_: whole[:-30]) as lister:
        project = Project(tmp_path, lister.url)
        done = project.run("drift", "--debug", "--format", "json", "--since", "90000d")
    assert done.code in (1, 3)
    assert MARK not in done.out + done.err


# --- published output


def test_only_names_of_declared_tags_that_are_not_private_are_published(team: Team) -> None:
    """Markdown, and every format in a CI job, shows no other name, no value, no time and no count below five."""
    drifted(team)
    texts = [team.drift("--format", "markdown").out, *(team.drift(*words, **IN_CI).out for words in FORMATS)]
    for text in texts:
        assert "tag/ACME-0042" in text
        for secret in ("HUSH", "NEW 1", "OLD", "edited", "Opposition", "Merger", "by hand"):
            assert secret not in text
        assert "<5" in text
    for text in (texts[0], texts[1]):
        assert "6 groups" in text
        assert not re.search(r"\b[1-4] group", text)
    (document,) = [json.loads(text) for text in texts if text.startswith("{")]
    assert document["published"]
    assert [(each["kind"], each["address"], each["groups"]) for each in document["findings"]] == [
        ("unknown", None, "<5"),
        ("retired-in-use", None, 6),
        ("differs", "tag/ACME-0042", "<5"),
        ("differs", None, "<5"),
    ]


FORMATS = ((), ("--format", "json"), ("--format", "markdown"))


# --- documents


def test_the_json_document_matches_its_schema(team: Team) -> None:
    """Both on a developer's machine and in a CI job."""
    for environ in ({}, IN_CI):
        document = drifted(team).drift("--format", "json", "--unused", "1d", **environ).document
        judge("drift.schema.json").validate(document)
        assert document["format"] == "syncengine.drift/v1"


def test_a_finding_shows_recorded_and_seen_values(team: Team) -> None:
    """A changed tag shows the fields that differ, a retired one its status, an unknown one what a manifest needs."""
    findings = drifted(team).drift("--format", "json").document["findings"]
    by_address = {each["address"]: (each["recorded"], each["seen"], each["groups"]) for each in findings}
    assert by_address["tag/ACME-0042"] == ({"description": "Opposition"}, {"description": "Opposition, edited"}, 1)
    assert by_address["tag/NEW 1"] == (None, {"description": "by hand", "externalId": "9"}, 1)
    assert by_address["tag/OLD"][0] == {"status": "retired"}
    assert by_address["tag/OLD"][2] == 6


def test_docs_repair_shows_the_printed_output(team: Team) -> None:
    """Except for the times."""
    (text,) = (each for each in blocks(ROOT / "docs/repair.md", "text") if each.startswith("Drift:"))
    printed = drifted(team).drift().out
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-05-04 09:30 UTC", printed) == text


def test_strange_tag_names_are_escaped(team: Team) -> None:
    """Terminal escapes, markup, commands of CI runners, quotes and globs."""
    for name in ("\x1b[31mred", "`a` <b> | @jo #1", "::error::x", 'it\'s "[*]"', "\u202eright", "-rf", "\x00"):
        team.edit(name)
    done = team.drift("-v")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert not re.search(r"^\s*::", done.out, re.MULTILINE)


# --- windows


def test_groups_from_before_the_window_are_ignored(team: Team) -> None:
    """Groups from before `--since`, and from before the last apply of their tag."""
    team.post("NEW", submissionTime=1_000_000_000_000)
    team.post({"name": "ACME-0042", "description": "as it was"}, submissionTime=1_000_000_000_000)
    team.post("OLD", submissionTime=1_000_000_000_000)
    assert team.found() == {}
    assert team.found("--since", "90000d") == {"tag/NEW": "unknown"}


def test_a_moved_declaration_hides_no_drift(team: Team) -> None:
    """An apply that only records new line numbers sends nothing, so earlier groups still count."""
    drifted(team)
    team.project.wants(tags=[tag("FIRST"), *HELD])
    assert team.project.apply().code == 0
    assert team.found() == EACH


def test_unused_lists_tags_without_a_group_in_its_window(team: Team) -> None:
    """`--unused` reads further back than `--since`."""
    now = int(time.time() * 1000)
    team.post("ACME-0042", submissionTime=now - 60 * 86_400_000)
    team.post("ACME-0043", submissionTime=now - 200 * 86_400_000)
    assert team.found("--unused", "180d") == {"tag/ACME-0043": "unused", "tag/HUSH-1": "unused"}
    assert set(team.found("--unused", "30d")) == {"tag/ACME-0042", "tag/ACME-0043", "tag/HUSH-1"}


@pytest.mark.parametrize(("glob", "excluded"), [("tag/HR-*", "HR-1"), ("tag/HR[1]", "HR[1]")])
def test_exclude_leaves_out_addresses_that_match_a_glob_or_are_equal_to_it(
    glob: str, excluded: str, team: Team
) -> None:
    team.post(excluded)
    team.post("HR2")
    assert team.found("--exclude", glob) == {"tag/HR2": "unknown"}


def test_forgotten_tags_are_no_findings(team: Team) -> None:
    """A tag that the policy released or `state forget` dropped is not managed any more."""
    team.project.settings("policy: {maxDeletes: {tags: 100%}}")
    team.project.settle(tags=HELD[1:])
    assert team.project.run("state", "forget", "tag/HUSH-1", "-y").code == 0
    team.edit("ACME-0042", description="another")
    team.post("HUSH-1")
    assert team.found() == {}


def test_a_tag_in_doubt_is_no_finding(team: Team) -> None:
    """The next apply sends it again anyway."""
    drifted(team)
    with closing(sqlite3.connect(team.project.folder / ".syncengine/state.db")) as state, state:
        state.execute("UPDATE state_rows SET doubtful = 1")
    assert team.found() == {"tag/NEW 1": "unknown"}


# --- the repair


NAMES = ("ACME-0042", "it's [1]*?", "a b", "Ü/ü", '"quoted"', "-x", "$HOME `id`")


def test_the_printed_command_repairs_the_drift(tmp_path: Path) -> None:
    """Whatever the names are: only the drifted tags are sent, and no drift remains."""
    with serving() as service:
        project = Project(tmp_path / "project", service.url)
        project.settle(tags=[tag("REST"), *(tag(name, description="declared") for name in NAMES)])
        team = Team(service, project)
        for name in NAMES:
            key = {"x-api-key": KEY}
            edit = {"name": name, "description": "by hand"}
            assert loopback.post(f"{service.url}/tag", json=edit, headers=key).status_code == 200
            team.post(name)
        done = team.drift()
        assert done.out.count("by hand") == len(NAMES)
        for line in re.findall(r"^  (syncengine apply .+)$", done.out, re.MULTILINE):
            applied = project.run(*shlex.split(line)[1:], "-y", "--format", "json")
            assert applied.code == 0, applied.err
            assert applied.document["summary"]["applied"] == len(NAMES)
        held = {each["name"]: each.get("description") for each in service.holds()["tags"]}
        assert {held[name] for name in NAMES} == {"declared"}
        assert team.found() == {}


def test_the_printed_entries_are_a_valid_manifest(team: Team) -> None:
    """They declare the unknown tags as they were seen, and applying them leaves no drift."""
    team.post({"name": 'say "hi": #1', "description": "d: e", "externalId": "010", "path": "/x"})
    team.post({"name": "no", "path": "/"})
    text = team.drift().out
    entries = text[text.index("tags:\n") :].split("\n\n")[0] + "\n"
    assert {each["name"]: each for each in yaml.safe_load(entries)["tags"]} == {
        'say "hi": #1': {"name": 'say "hi": #1', "description": "d: e", "externalId": "010", "path": "/x"},
        "no": {"name": "no"},
    }
    (team.project.folder / "manifests/found.yaml").write_text(entries, encoding="utf-8")
    assert team.project.apply().code == 0
    assert team.found() == {}


def test_the_printed_command_names_the_project(team: Team) -> None:
    """With the same `-C` and `--config` as this run."""
    drifted(team)
    done = team.project.run("-C", str(team.project.folder), "drift", "--config", "syncengine.yaml")
    folder = shlex.quote(str(team.project.folder))
    assert f"syncengine apply -C {folder} --config syncengine.yaml --reassert --target " in done.out


def _move(project: Project, url: str) -> None:
    """Point the project and its state to another service."""
    project.url = url
    project.settings(POLICY)
    with closing(sqlite3.connect(project.folder / ".syncengine" / "state.db")) as connection, connection:
        connection.execute("UPDATE state_facts SET base_url = ?", (url,))
