"""`drift`: requests, exit codes, privacy, formats, the printed repair, and how it reads long and odd lists."""

import asyncio
import gc
import json
import re
import shlex
import sqlite3
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncengine.posted_time.drift import MOST_UNKNOWN, Drift
from syncengine.posted_time.drift_reading import Window, drift_of
from syncengine.resource import Body, Key, Kind, Recorded, Status
from syncengine.service.client import Client, Conduct
from tests.cli.program import Ended, Project, tag
from tests.cli.service import KEY, Json, Service, serving
from tests.support import loopback
from tests.support.formats import fitting
from tests.support.pages import ROOT, blocks

from .lister import Group, Page, group, listing, obedient

pytestmark = pytest.mark.slow

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
    """While another run holds the lock. Nothing changes, no file is written, and tags that match are no findings."""
    assert team.project.run("state", "lock", "--reason", "a move").code == 0
    drifted(team).post("ACME-0043")
    team.post()
    before, files, held = len(team.service.asked()), team.project.files(), team.service.holds()
    assert "3 of 3 tags seen in 11 groups since" in team.drift().out
    document = team.drift(*JSON).document
    assert {each["address"]: each["kind"] for each in document["findings"]} == EACH
    assert set(team.service.asked()[before:]) == {"teamInfo", "listPostedTime"}
    assert (team.project.files(), team.service.holds()) == (files, held)
    assert team.service.state()["connection"]["mechanism"] is None
    coverage = document["coverage"]
    assert (coverage["tags"], coverage["seen"], coverage["groups"], coverage["complete"]) == (3, 3, 11, True)
    shown = {each["address"]: (each["recorded"], each["seen"], each["groups"]) for each in document["findings"]}
    assert shown["tag/ACME-0042"] == ({"description": "Opposition"}, {"description": "Opposition, edited"}, 1)
    assert shown["tag/NEW 1"] == (None, {"description": "by hand", "externalId": "9"}, 1)
    assert (shown["tag/OLD"][0], shown["tag/OLD"][2]) == ({"status": "retired"}, 6)


def test_detailed_exitcode_exits_with_2_on_findings(team: Team) -> None:
    """Without the option `drift` exits with 0. Unused tags alone do not count. docs/repair.md shows what is printed."""
    assert team.drift("--detailed-exitcode").code == 0
    unused = team.drift("--unused", "180d", "--detailed-exitcode", *JSON)
    assert {each["kind"] for each in unused.document["findings"]} == {"unused"}
    assert unused.code == 0
    printed = drifted(team).drift()
    assert (printed.code, team.drift("--detailed-exitcode").code) == (0, 2)
    (text,) = (each for each in blocks(ROOT / "docs/repair.md", "text") if each.startswith("Drift:"))
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-05-04 09:30 UTC", printed.out) == text


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


def test_an_invalid_answer_exits_with_1(tmp_path: Path) -> None:
    """Each format has a message that repeats nothing of the answer. Without a service it is 9, with a wrong key 7."""
    with listing(lambda *_: b"<html>Jane Doe</html>") as lister:
        project = Project(tmp_path, lister.url)
        for format in ("text", "json", "markdown"):
            done = project.run("drift", "--debug", "--format", format)
            assert (done.code, "does not allow" in done.out + done.err) == (1, True)
            assert [word for word in ("No plan", "Jane") if word in done.out + done.err] == []
    assert project.run("drift").code == 9
    with listing(lambda *_: (401, b"{}")) as lister:
        assert Project(tmp_path, lister.url).run("drift").code == 7


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
    """Nor released ones. An apply that only records new line numbers sends nothing, so earlier groups still count."""
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


# --- long, odd and endless lists


NOW = 1_790_000_000_000
DAY = 86_400_000


class Recollection:
    """A state of these rows, all settled at the same time."""

    def __init__(self, *rows: Recorded, at: float = 0.0) -> None:
        self._rows = {row.key: row for row in rows}
        self._at = at

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        yield from self._rows.values()

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        return {key: self._rows[key] for key in keys if key in self._rows}

    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]:
        return dict.fromkeys(keys, self._at)

    def forgotten(self, keys: Iterable[Key]) -> set[Key]:
        return set()


def row(name: str, status: Status = Status.ACTIVE, **fields: Any) -> Recorded:
    return Recorded(Key(Kind.TAG, name), Body(fields), status, confirmed=True)


NOTHING = Recollection()


def read(page: Page, state: Recollection = NOTHING, since: float = 0.0, **more: Any) -> Drift:
    async def play(url: str) -> Drift:
        conduct = Conduct(first_wait=0.001, attempts=2)
        async with Client(url, lambda *, fresh=False: "key", conduct=conduct) as client:
            return await drift_of(client, state, Window(since, more.pop("unused_since", None)), **more)

    with listing(page) as lister:
        return asyncio.run(play(lister.url))


def found(drift: Drift) -> dict[str, tuple[str, int]]:
    return {finding.name: (finding.kind.value, finding.groups) for finding in drift.findings}


def test_a_list_that_cannot_be_read_to_its_end_is_incomplete() -> None:
    """Its groups are counted once, and no tag is reported as unused."""

    def endless(limit: int, before: int | None) -> list[Group]:
        first = NOW if before is None else before - 1
        return [group(first - n, first - n, "X") for n in range(limit)]

    many = [group(n, NOW - n, "X", "X") for n in range(900)]
    ignoring = read(lambda limit, _: obedient(many)(limit, None), Recollection(row("A")), unused_since=0.0)
    assert (ignoring.reading.groups, ignoring.reading.ignored, ignoring.reading.is_complete) == (500, True, False)
    assert found(ignoring) == {"X": ("unknown", 500)}
    going_on = read(endless, most=12)
    assert (going_on.reading.groups, going_on.reading.endless) == (500 + 11 * 499, True)
    hiding = read(obedient([*(group(n, NOW, "X") for n in range(600)), group(1_000, NOW - DAY, "Y")]))
    assert (hiding.reading.hidden, hiding.reading.groups) == ([NOW], 501)


def test_reading_ends_at_the_start_of_the_window() -> None:
    """The list is newest first, so one page is enough; in another order, groups behind older ones are found."""
    asked = []

    def page(limit: int, before: int | None) -> list[Group]:
        asked.append(before)
        return obedient([group(n, NOW - n * 1_000, "X") for n in range(900)])(limit, before)

    drift = read(page, since=(NOW - 100_000) / 1000)
    assert (len(asked), drift.reading.groups) == (1, 101)
    assert read(lambda *given: page(*given)[::-1], since=(NOW - 700_000) / 1000).reading.groups == 701


ODD: list[Any] = [7, None, "text", [], {}, {"submissionTime": "soon"}, {"submissionTime": True}, {"submissionTime": -1},
    *({"submissionTime": NOW, **more} for more in (
        {"tags": "X"}, {"tags": [7]}, {"tags": [{"name": ["X"]}]}, {"groupId": {"x": 1}}))]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_unreadable_item_does_not_affect_other_groups(odd: Any) -> None:
    """It is counted, and the reading is incomplete."""
    drift = read(lambda _, before: [] if before and before < NOW else [group(1, NOW, "X"), odd, group(2, NOW, "Y")])
    assert found(drift) == {"X": ("unknown", 1), "Y": ("unknown", 1)}
    assert (drift.reading.unreadable > 0, drift.reading.is_complete) == (True, False)


def test_groups_without_a_tag_are_counted() -> None:
    nameless = [None, [], [{}], [{"name": None}], [{"name": ""}], [{"description": "d"}]]
    groups = [{"groupId": str(n), "submissionTime": NOW - n, "tags": tags} for n, tags in enumerate(nameless)]
    drift = read(obedient(groups))
    assert (drift.reading.groups, drift.reading.is_complete, drift.findings) == (6, True, ())


@pytest.mark.parametrize("text", [rb"\ud83d", b"\xff", b"NaN", b"\x01"], ids=repr)
def test_bad_characters_in_one_group_do_not_affect_others(text: bytes) -> None:
    """For example half a surrogate pair, in a title that was cut off."""
    quote = b"" if text == b"NaN" else b'"'
    odd = b'{"groupId": "b", "submissionTime": %d, "tags": [{"name": "Y"}], "x": %b%b%b}' % (NOW, quote, text, quote)
    body = b'[{"groupId": "a", "submissionTime": %d, "tags": [{"name": "X"}]}, %b]' % (NOW, odd)
    drift = read(lambda _, before: [] if before and before <= NOW else body)
    assert "X" in found(drift)
    assert ("Y" in found(drift)) or drift.reading.unreadable


def numbered(count: int, tags: int, **more: Any) -> Page:
    """A list of so many groups, whose tags are T-0, T-1 and so on."""

    def page(limit: int, before: int | None) -> list[Group]:
        first = 0 if before is None else NOW - before + 1
        return [group(n, NOW - n, f"T-{n % tags}", **more) for n in range(first, min(first + limit, count))]

    return page


def test_memory_does_not_grow_with_the_number_of_groups() -> None:
    """Six times as many groups of 300 tags, with long narratives, need less than 1.2 times the memory."""
    before, peaks = gc.get_threshold(), []
    gc.set_threshold(100, 5, 5)  # so that uncollected garbage does not count
    for groups in (1_000, 6_000):
        gc.collect()
        tracemalloc.start()
        assert read(numbered(groups, 300, formattedNarrative="long " * 40)).reading.groups == groups
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    gc.set_threshold(*before)
    assert peaks[1] < 1.2 * peaks[0]


def test_the_number_of_listed_unknown_tags_is_bounded() -> None:
    """Each group has its own unknown tag: the first `MOST_UNKNOWN` are listed, the others only counted."""
    many = MOST_UNKNOWN + 700
    drift = read(numbered(many, many))
    assert (len(drift.findings), drift.unlisted) == (MOST_UNKNOWN, 700)


# --- comparison


def differing(recorded: dict[str, str], seen: dict[str, Any], *others: Group) -> dict[str, str] | None:
    """The seen values of tag A that are reported as different from the recorded ones."""
    groups = [group(1, NOW, {"name": "A", **seen}), *others]
    drift = read(obedient(groups), Recollection(row("A", **recorded)))
    return next((dict(each.seen) for each in drift.findings if each.name == "A"), None)


SEEN: list[tuple[dict[str, str], dict[str, Any], dict[str, str] | None]] = [
    ({"description": "d"}, {"description": "e"}, {"description": "e"}),
    ({"description": "d"}, {"description": ""}, {"description": ""}),
    ({"description": "d"}, {}, None),
    ({"description": "d"}, {"description": " d\n"}, None),
    ({"description": "é"}, {"description": "e\u0301"}, None),
    ({"description": "d"}, {"description": "D"}, {"description": "D"}),
    ({"description": ""}, {"description": "kept"}, None),
    ({}, {"description": "e", "path": "/x", "externalId": "1"}, None),
    ({"path": "/"}, {"path": ""}, None),
    ({"path": "/a"}, {"path": "/b"}, {"path": "/b"}),
    ({"externalId": "1"}, {"externalId": "2"}, {"externalId": "2"}),
    ({"externalId": "1"}, {"externalId": 1}, None),
    ({"externalId": ""}, {"externalId": "2"}, {"externalId": "2"}),
    ({"externalId": "1"}, {}, None),
]


def test_only_declared_fields_that_a_group_shows_are_compared() -> None:
    """Surrounding blanks and Unicode normalization forms are no difference."""
    assert [differing(recorded, seen) for recorded, seen, _ in SEEN] == [told for *_, told in SEEN]


def test_a_missing_external_id_differs_if_other_tags_show_theirs() -> None:
    """The service sends the external id with each posted tag, so a tag without one has lost it."""
    assert differing({"externalId": "1"}, {}, group(2, NOW - 5, {"name": "B", "externalId": "7"})) == {"externalId": ""}
    assert differing({"externalId": "1", "description": "d"}, {"description": "e"}) == {"description": "e"}


@pytest.mark.parametrize("status", list(Status))
def test_a_released_tag_and_one_in_doubt_are_left_alone(status: Status) -> None:
    """A released tag may tag time, a retired or deleted one should not; what the service holds in doubt is unknown."""
    page = obedient([group(1, NOW, {"name": "A", "description": "e"})])
    drift = read(page, Recollection(row("A", status, description="d")))
    kinds = {Status.ACTIVE: ["differs"], Status.RELEASED: []}
    assert [finding.kind.value for finding in drift.findings] == kinds.get(status, ["retired-in-use"])
    doubtful = Recorded(Key(Kind.TAG, "A"), Body({"description": "d"}), status, doubtful=True)
    assert read(page, Recollection(doubtful), unused_since=NOW / 1000 + 1).findings == ()


@pytest.mark.parametrize(("later", "count"), [(-1, 0), (0, 0), (1, 1)])
def test_only_groups_after_the_row_settled_count(later: int, count: int) -> None:
    """To the millisecond: an earlier group shows the tag as it was before the apply."""
    rows = Recollection(row("A", description="d"), row("B", Status.RETIRED), at=NOW / 1000)
    groups = [group(1, NOW + later, {"name": "A", "description": "e"}), group(2, NOW + later, "B")]
    assert found(read(obedient(groups), rows)) == ({"A": ("differs", 1), "B": ("retired-in-use", 1)} if count else {})


def test_a_newer_group_with_the_recorded_value_marks_the_finding_as_mended() -> None:
    """Somebody restored the value by hand."""
    groups = [group(1, NOW, {"name": "A", "description": "d"}), group(2, NOW - 1, {"name": "A", "description": "e"})]
    (finding,) = read(obedient(groups), Recollection(row("A", description="d"))).findings
    assert (finding.groups, finding.mended) == (1, True)


def test_a_name_in_another_unicode_form_is_another_tag() -> None:
    """The finding names the similar declared tag."""
    (finding,) = read(obedient([group(1, NOW, "acme-É")]), Recollection(row("ACME-e\u0301"))).findings
    assert (finding.kind.value, finding.similar) == ("unknown", "ACME-e\u0301")


def test_a_row_written_while_the_list_is_read_is_no_finding() -> None:
    """An apply ran meanwhile, so the list shows the tag as it was before."""

    class Moving(Recollection):
        def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
            return {key: row(key.name, description="now") for key in keys}

    groups = [group(1, NOW, {"name": "A", "description": "e"}), group(2, NOW, "NEW")]
    assert read(obedient(groups), Moving(row("A", description="d"))).findings == ()
