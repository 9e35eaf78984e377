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
import yaml

from tests.cli.program import Ended, Project, tag
from tests.cli.service import KEY, Json, Service, serving
from tests.support import loopback
from tests.support.formats import fitting
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


JSON = ("--format", "json")


@dataclass
class Team:
    """A team with an applied project, in which time is posted."""

    service: Service
    project: Project

    def post(self, *tags: str | Json, **more: Any) -> None:
        named = [tag if isinstance(tag, dict) else {"name": tag} for tag in tags]
        self.service.say("/posted-time", {"tags": named, **more})

    def drift(self, *arguments: str, **environ: str) -> Ended:
        return self.project.run("drift", *arguments, environ=environ)

    def found(self, *arguments: str) -> dict[str, str]:
        """The kind of each finding, by address."""
        document = self.drift(*JSON, *arguments).document
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
    team.post({"name": "ACME-0042", "description": "Opposition, edited"})
    team.post({"name": "HUSH-1", "description": "Merger of Z"})
    team.post({"name": "NEW 1", "description": "by hand", "externalId": "9"})
    for _ in range(6):
        team.post("OLD")
    return team


EACH = {"tag/ACME-0042": "differs", "tag/HUSH-1": "differs", "tag/NEW 1": "unknown", "tag/OLD": "retired-in-use"}


def test_each_kind_of_drift_is_found_once_by_reading_alone(team: Team) -> None:
    """While another run holds the lock: `drift` registers, fetches and changes nothing, and writes no file.

    Tags that match the state, and groups without a tag, are no findings. A changed tag shows the fields that differ, a
    retired one its status, an unknown one what a manifest needs.
    """
    assert team.project.run("state", "lock", "--reason", "a move").code == 0
    drifted(team).post("ACME-0043")
    team.post()
    before, files, held = len(team.service.asked()), team.project.files(), team.service.holds()
    assert "3 of 3 tags seen in 11 groups since" in team.drift().out
    document = team.drift(*JSON).document
    assert {each["address"]: each["kind"] for each in document["findings"]} == EACH
    assert set(team.service.asked()[before:]) == READS
    assert (team.project.files(), team.service.holds()) == (files, held)
    assert team.service.state()["connection"]["mechanism"] is None
    coverage = document["coverage"]
    assert (coverage["tags"], coverage["seen"], coverage["groups"], coverage["complete"]) == (3, 3, 11, True)
    shown = {each["address"]: (each["recorded"], each["seen"], each["groups"]) for each in document["findings"]}
    assert shown["tag/ACME-0042"] == ({"description": "Opposition"}, {"description": "Opposition, edited"}, 1)
    assert shown["tag/NEW 1"] == (None, {"description": "by hand", "externalId": "9"}, 1)
    assert (shown["tag/OLD"][0], shown["tag/OLD"][2]) == ({"status": "retired"}, 6)


def test_detailed_exitcode_exits_with_2_on_findings(team: Team) -> None:
    """Without the option `drift` exits with 0. Unused tags alone do not count."""
    assert team.drift("--detailed-exitcode").code == 0
    unused = team.drift("--unused", "180d", "--detailed-exitcode", *JSON)
    assert {each["kind"] for each in unused.document["findings"]} == {"unused"}
    assert unused.code == 0
    drifted(team)
    assert (team.drift().code, team.drift("--detailed-exitcode").code) == (0, 2)


def test_a_service_or_team_other_than_the_states_exits_with_7(team: Team) -> None:
    """No request is sent to another service, and no posted time of another team is requested."""
    with listing(obedient([]), team="Another") as lister:
        elsewhere = team.drift(SYNCENGINE_BASE_URL=lister.url)
        assert (elsewhere.code, lister.requests, "other-service" in elsewhere.err) == (7, [], True)
        team.project.url = lister.url
        team.project.settings(POLICY)
        in_state(team, "UPDATE state_facts SET base_url = ?", lister.url)
        done = team.drift()
    assert (done.code, lister.requests) == (7, ["GET /connect/api/team/info"])
    assert "Another" in done.err


def in_state(team: Team, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(team.project.folder / ".syncengine/state.db")) as state, state:
        state.execute(statement, values)


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_an_invalid_answer_exits_with_1(tmp_path: Path, format: str) -> None:
    """Each format has a message that repeats nothing of the answer; a service that is away exits with 9."""
    with listing(lambda *_: b"<html>Jane Doe</html>") as lister:
        project = Project(tmp_path, lister.url)
        done = project.run("drift", "--debug", "--format", format)
    assert (done.code, "does not allow" in done.out + done.err) == (1, True)
    assert "No plan" not in done.out
    assert "Jane" not in done.out + done.err
    assert project.run("drift").code == 9


def test_an_incomplete_list_exits_with_3(tmp_path: Path) -> None:
    """The message says why the list is incomplete; the findings are still printed."""
    with listing(lambda limit, _: [group(n, 1_790_000_000_000 - n, "X") for n in range(limit)]) as lister:
        done = Project(tmp_path, lister.url).run("drift", "--since", "9000d", *JSON, "--detailed-exitcode")
    assert (done.code, done.document["coverage"]["complete"]) == (3, False)
    assert "submittedBefore" in done.err
    assert [each["address"] for each in done.document["findings"]] == ["tag/X"]


def test_without_a_state_every_tag_is_unknown(tmp_path: Path) -> None:
    """No state is created; in a CI job that exits with 4. Names cannot control a terminal or a CI runner."""
    names = ("A", "\x1b[31mred", "\u202eright", "::error::x", "\x00")
    with serving() as service:
        team = Team(service, Project(tmp_path, service.url))
        team.post(*names)
        assert set(team.found().values()) == {"unknown"}
        done = team.drift(CI="false")
        assert "no state yet" in done.err
        assert [name for name in names[1:3] if name[0] in done.out] == []
        assert not re.search(r"^\s*::", done.out, re.MULTILINE)
        assert team.drift(**IN_CI).code == 4
        assert not (tmp_path / ".syncengine").exists()


MARK = "zq7-marker"
PEOPLE: Json = {
    **{name: f"{MARK}-{name}" for name in ("description", "formattedNarrative", "groupName", "groupId")},
    "localDate": "2026-01-01",
    "user": {"userId": f"{MARK}-id", "name": f"{MARK}-name", "email": f"{MARK}@example.com", "externalId": MARK},
    "activityType": {"code": f"{MARK}-code", "label": f"{MARK}-label"},
    "timeRows": [{"activity": f"{MARK}-activity", "description": f"{MARK}-row", "durationSecs": 60}],
    f"{MARK}-field": {"deep": [f"{MARK}-deep"]},
}


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_no_personal_data_is_shown_or_written(team: Team, format: str) -> None:
    """No name, narrative or row of a user appears in an output, a log or a file; nor if the answer breaks off."""
    team.post("NEW", "ACME-0042", {"name": "X", f"{MARK}-more": MARK}, **PEOPLE)
    for debug in ((), ("--debug", "-v"), ("--debug", "--log-format", "json")):
        done = team.drift("--format", format, "--unused", "180d", *debug)
        assert done.code == 0
        assert MARK not in done.out + done.err
    half = json.dumps([{**PEOPLE, "tags": [], "submissionTime": 5}])[:-30]
    team.service.fault("listPostedTime", times=None, status=200, body=half)
    done = team.drift("--debug", "--format", format)
    assert (done.code in (1, 3), MARK in done.out + done.err) == (True, False)
    assert not [name for name, content in team.project.files().items() if MARK.encode() in content]


def test_only_names_of_declared_tags_that_are_not_private_are_published(team: Team) -> None:
    """Markdown, and every format in a CI job, shows no other name, no value, no time and no count below five."""
    drifted(team)
    document = team.drift(*JSON, **IN_CI).document
    assert (fitting(document), document["published"]) == ("drift", True)
    assert [(each["kind"], each["address"], each["groups"]) for each in document["findings"]] == [
        ("unknown", None, "<5"),
        ("retired-in-use", None, 6),
        ("differs", "tag/ACME-0042", "<5"),
        ("differs", None, "<5"),
    ]
    markdown = ("--format", "markdown")
    texts = [team.drift(*markdown).out, team.drift(**IN_CI).out, team.drift(*markdown, **IN_CI).out]
    for text in (*texts, json.dumps(document)):
        assert "tag/ACME-0042" in text
        assert "<5" in text
        assert [word for word in HIDDEN if word in text] == []
    for text in texts:
        assert "6 groups" in text
        assert not re.search(r"\b[1-4] group", text)


HIDDEN = ("HUSH", "NEW 1", "OLD", "edited", "Opposition", "Merger", "by hand")


def test_docs_repair_shows_the_printed_output(team: Team) -> None:
    """Except for the times."""
    (text,) = (each for each in blocks(ROOT / "docs/repair.md", "text") if each.startswith("Drift:"))
    printed = drifted(team).drift().out
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-05-04 09:30 UTC", printed) == text


def test_only_groups_of_the_window_count(team: Team) -> None:
    """`--unused` reads further back than `--since`; a group from before the last apply of its tag is no finding."""
    now = int(time.time() * 1000)
    team.post({"name": "NEW"}, {"name": "HUSH-1", "description": "as it was"}, submissionTime=now - 300 * 86_400_000)
    assert team.found() == {}
    assert team.found("--since", "90000d") == {"tag/NEW": "unknown"}
    team.post("ACME-0042", submissionTime=now - 60 * 86_400_000)
    team.post("ACME-0043", submissionTime=now - 200 * 86_400_000)
    assert team.found("--unused", "180d") == {"tag/ACME-0043": "unused", "tag/HUSH-1": "unused"}
    assert set(team.found("--unused", "30d")) == {"tag/ACME-0042", "tag/ACME-0043", "tag/HUSH-1"}


def test_exclude_leaves_out_addresses_that_match_a_glob_or_are_equal_to_it(team: Team) -> None:
    team.post("HR-1", "HR[1]", "HR2")
    assert team.found("--exclude", "tag/HR-*", "--exclude", "tag/HR[1]") == {"tag/HR2": "unknown"}


def test_forgotten_tags_and_tags_in_doubt_are_no_findings(team: Team) -> None:
    """A tag that the policy released or `state forget` dropped is not managed; one in doubt is sent again anyway.

    An apply that only records new line numbers sends nothing, so earlier groups still count.
    """
    drifted(team)
    team.project.settle(tags=[tag("FIRST"), *HELD])
    assert team.found() == EACH
    team.project.settings("policy: {maxDeletes: {tags: 100%}}")
    team.project.settle(tags=HELD[1:])
    assert team.project.run("state", "forget", "tag/HUSH-1", "-y").code == 0
    assert team.found() == {"tag/NEW 1": "unknown", "tag/OLD": "retired-in-use"}
    in_state(team, "UPDATE state_rows SET doubtful = 1")
    assert team.found() == {"tag/NEW 1": "unknown"}


NAMES = ("ACME-0042", "it's [1]*?", "a b", "Ü/ü", '"quoted"', "-x", "$HOME `id`")


def test_the_printed_command_repairs_the_drift(tmp_path: Path) -> None:
    """Only the drifted tags are sent, whatever their names are, with the `-C` and `--config` of this run."""
    with serving() as service:
        project = Project(tmp_path / "project", service.url)
        project.settle(tags=[tag("REST"), *(tag(name, description="declared") for name in NAMES)])
        team = Team(service, project)
        for name in NAMES:
            edit = {"name": name, "description": "by hand"}
            edited = loopback.post(f"{service.url}/tag", json=edit, headers={"x-api-key": KEY})
            assert edited.status_code == 200
            team.post(name)
        place = ("-C", str(project.folder))
        done = project.run(*place, "drift", "--config", "syncengine.yaml")
        assert f"syncengine apply {shlex.join(place)} --config syncengine.yaml --reassert --target " in done.out
        (line,) = re.findall(r"^  (syncengine apply .+)$", done.out, re.MULTILINE)
        applied = project.run(*shlex.split(line)[1:], "-y", *JSON)
        assert (applied.code, applied.document["summary"]["applied"]) == (0, len(NAMES)), applied.err
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
