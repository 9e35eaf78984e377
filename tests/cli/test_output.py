"""What goes to stderr and into the log of a job: progress, requests with `--debug`, and no commands for a runner."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from syncengine.apply.report import ItemEnded, Outcome, StageStarted
from syncengine.cli.apply import EVERY_SECONDS, Progress
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.render.escape import harmless
from syncengine.render.words import place
from syncengine.resource import Key, Kind, Source

from .program import REPOSITORY, Project, category, tag
from .service import AT_ONCE, Service

KEY = Key(Kind.TAG, "A")


def test_a_long_stage_prints_progress_every_ten_seconds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It also prints a line at its end, and counts the items that were not applied."""
    clock = [0.0]
    with closing(Progress(Output(Globals(), tmp_path), lambda: clock[0])) as progress:
        progress.tell(StageStarted("tags", 10_000))
        for n in range(10_000):
            clock[0] += EVERY_SECONDS / 4_000
            progress.tell(ItemEnded(KEY, Outcome.FAILED if n % 5_000 == 0 else Outcome.APPLIED))
        progress.tell(StageStarted("tag retirements", 1))
        progress.tell(ItemEnded(KEY, Outcome.APPLIED))
    assert capsys.readouterr().err.splitlines() == [
        "tags: 4,000 of 10,000, 1 not applied",
        "tags: 8,000 of 10,000, 2 not applied",
        "tags: 10,000 of 10,000, 2 not applied",
        "tag retirements: 1 of 1",
    ]


def test_short_stages_print_nothing_if_so_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A longer stage, or one with an item that was not applied, is printed. The sandbox uses this."""
    clock = [0.0]
    with closing(Progress(Output(Globals(), tmp_path), lambda: clock[0], shortest=1.0)) as progress:
        for name, seconds, outcome in (
            ("categories", 0.9, Outcome.APPLIED),
            ("tags", 1.1, Outcome.APPLIED),
            ("tag retirements", 0.1, Outcome.FAILED),
        ):
            progress.tell(StageStarted(name, 1))
            clock[0] += seconds
            progress.tell(ItemEnded(KEY, outcome))
    assert capsys.readouterr().err.splitlines() == ["tags: 1 of 1", "tag retirements: 1 of 1, 1 not applied"]


def test_a_piped_apply_prints_each_stage(project: Project, service: Service) -> None:
    """Each stage is one line on stderr; with `-q` there is nothing, neither of the program nor of a library."""
    project.wants(tagCategories=[category("acme")], tags=[tag(f"A-{n}", category="acme") for n in range(12)])
    done = project.run("apply", "-y", "--format", "json")
    assert done.err.splitlines() == ["categories: 1 of 1", "tags: 12 of 12"]
    project.wants(tagCategories=[category("acme")], tags=[tag("B-1", category="acme")])
    assert project.run("apply", "-y", "-q", *project.approvals()).err == ""


def test_every_resource_that_a_call_reaches_is_counted(project: Project, service: Service) -> None:
    """A category rename counts as two resources, and a category delete counts its tags."""
    project.settle(
        tagCategories=[category("old"), category("gone")],
        tags=[tag("KEEP", category="old"), *(tag(f"GONE-{n}", category="gone") for n in range(3))],
    )
    project.wants(tagCategories=[category("new", previously=["old"])], tags=[tag("KEEP", category="new")])
    done = project.apply()
    assert (done.code, done.err.splitlines()[:1]) == (0, ["categories: 2 of 2"]), done.err
    assert "category deletes: 4 of 4" in done.err


# --- `--debug` logs each request to the service, without its content


CONFIDENTIAL = ("Confidential-1", "Confidential-2", "Confidential-3")


def requests_in(err: str) -> list[str]:
    return [line.removeprefix("debug: ") for line in err.splitlines() if line.startswith("debug: ")]


@pytest.fixture
def wanting(project: Project) -> Project:
    project.wants(tagCategories=[category("private-client")], tags=[tag(name) for name in CONFIDENTIAL])
    return project


def test_each_request_is_logged_with_its_status_time_and_sizes(wanting: Project, service: Service) -> None:
    """So are retries; "no answer" takes the place of a status. Items are counted, but their names are not logged."""
    service.fault("upsertTagCategories", status=503, headers=AT_ONCE)
    service.fault("upsertTags", drop="before")
    done = wanting.run("--debug", "apply", "-y", "-q", "--format", "json")
    assert done.code == 0
    told = requests_in(done.err)
    assert [line.partition(", ")[0] for line in told] == [
        "GET /team/info (teamInfo): 200",
        "POST /tagcategory/batch (upsertTagCategories): 503",
        "POST /tagcategory/batch (upsertTagCategories): 200",
        "POST /tag/batch (upsertTags): no answer: the connection was closed by the other side",
        "POST /tag/batch (upsertTags): 200",
    ]
    assert told[-1].endswith(" received, 3 items")
    assert " s, 0 bytes sent, " in told[0]
    assert not [word for word in (*CONFIDENTIAL, "private-client", "x-api-key") if word in done.err]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("time list --limit 7", "GET /postedtime/list?limit=7 (listPostedTime): 200"),
        ("connector check", "GET /team/info (teamInfo): 200"),
        ("health clear", "POST /healthcheck/failure/rescind (rescindHealthFailure): 20"),
    ],
)
def test_other_commands_log_their_requests(project: Project, words: str, told: str) -> None:
    done = project.run(*words.split(), "--debug")
    assert done.code == 0, done.err
    assert any(line.startswith(told) for line in requests_in(done.err)), done.err


def test_requests_are_logged_as_json_with_log_format_json(wanting: Project) -> None:
    """Each request is one JSON line with the same facts."""
    done = wanting.run("apply", "-y", "--debug", "--log-format", "json")
    last = [line for line in map(json.loads, done.err.splitlines()) if line["level"] == "debug"][-1]
    facts = {"operation": "upsertTags", "method": "POST", "path": "/tag/batch", "status": 200, "items": 3}
    assert facts.items() <= last.items()
    assert last["sent"] > 0
    assert last["seconds"] > 0


# --- no name, value or file name can act as a command for the runner of a job


COMMANDS = ("##[error]x", "##[group]y", "##vso[task.setvariable variable=a]b", "##teamcity[message text='z']")
NAMES = [f"{word}-{n}" for n, word in enumerate(("::error::x", *COMMANDS, "  ::set-env name=PATH::/tmp".strip()))]
LONG = " ".join(["word word word ::error::wrapped ##[error]wrapped"] * 20)
RUNNER = {"GITHUB_ACTIONS": "true"}


def commands(text: str) -> list[str]:
    """The lines that a runner would run as commands, in the forms of GitHub, Azure and TeamCity."""
    lines = re.split(r"[\r\n]", text)
    return [line for line in lines if line.lstrip().startswith("::") or re.search(r"##[A-Za-z]*\[", line)]


@pytest.fixture
def hostile(project: Project) -> Project:
    """Twelve tags whose names, values, metadata and file name look like runner commands."""
    many = [tag(f"{NAMES[n % 6]}-{n:02}", description=LONG, metadata={NAMES[1]: LONG}) for n in range(12)]
    project.wants("##[error]file.yaml", tags=many)
    return project


WAYS = [
    *("plan", "plan --format markdown", "plan --format json", "plan --report html=-", "render", "validate"),
    *("apply -y --format json -v --log-format json", "apply -y --report junit=-", "fmt --diff", "state list"),
    *(f"state show tag/{NAMES[1]}-01", "plan --target tag/##[error]nowhere", "##[error]nowhere"),
]
OTHERS = [("plan -v", {"TF_BUILD": "True"}), ("plan -v", {"TEAMCITY_VERSION": "2025.1"})]


@pytest.mark.parametrize(("words", "runner"), [*((words, RUNNER) for words in WAYS), *OTHERS])
def test_no_name_is_a_command_in_the_log_of_a_job(hostile: Project, words: str, runner: dict[str, str]) -> None:
    """This holds for every command, on stdout and stderr."""
    if words.startswith("state"):
        assert hostile.run("apply", "-y").code == 0
    done = hostile.run(*words.split(), environ=runner)
    assert done.out + done.err
    assert commands(done.out + done.err) == []


def test_an_error_text_of_the_service_is_no_command(hostile: Project, service: Service) -> None:
    """The text is printed in the log, the reports and the history."""
    words = "::error::no ##[error]room ##vso[task.complete]"
    service.fault("upsertTags", times=1, itemErrors=[{"index": 1, "errorDescription": words}])
    reports = [word for name in ("text", "json", "markdown") for word in ("--report", f"{name}=report.{name}")]
    done = hostile.run("apply", "-y", "-v", *reports, environ=RUNNER)
    assert done.code == 3
    told = [done.out, done.err, *(path.read_text() for path in hostile.folder.glob("report.*"))]
    told.append(hostile.run("state", "history", f"tag/{NAMES[1]}-01", environ=RUNNER).out)
    assert [len(told), sum("room" in text for text in told) >= 5] == [6, True]
    assert [each for text in told for each in commands(text)] == []


def test_escapes_do_not_change_the_data_of_json_and_yaml(hostile: Project) -> None:
    """Names are escaped as the format allows, so that the parsed document is the same."""
    for words in (("render", "--format", "json"), ("state", "list", "--format", "json"), ("render",)):
        plain, escaped = hostile.run(*words).out, hostile.run(*words, environ=RUNNER).out
        assert yaml.safe_load(escaped) == yaml.safe_load(plain)
        assert escaped != plain or "state" in words


def test_an_annotation_contains_no_further_command(project: Project) -> None:
    """`--format github` prints one command for each finding."""
    project.wants("all.yaml", tags=[{"name": "A", "##[error]x": 1}, {"name": "B", "::error::y": 1}])
    done = project.run("validate", "--format", "github", environ=RUNNER)
    lines = done.out.splitlines()
    assert (done.code, len(lines)) == (8, 2)
    assert all(line.startswith("::error file=manifests/all.yaml,") for line in lines)
    assert [line for line in lines if "##[" in line] == []


@pytest.mark.parametrize(
    "text", ["", "a ## b", "C++::method", "a\n  b::c", "# [x]", "100% ##", "[##]", "http://[::1]/"]
)
def test_text_without_a_command_is_not_escaped(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    "text", ["::a", "\t ::a", "\N{NO-BREAK SPACE}::a", ":::a", "###[a]", "x##[a]##[b]", "\x1b[1m::a"]
)
def test_a_command_in_a_text_is_escaped(text: str) -> None:
    """JSON escapes are used, so that the text can be restored and a JSON document stays valid. So are file names."""
    assert commands(place(Source(text, 3))) == []
    assert commands(harmless(text).replace("\x1b[1m", "")) == []
    assert harmless(text).replace("\\u0023", "#").replace("\\u003a", ":") == text


def test_only_one_module_of_the_cli_writes_to_streams() -> None:
    """A direct write elsewhere would bypass the escaping."""
    sources = (REPOSITORY / "syncengine" / "cli").glob("*.py")
    direct = re.compile(r"\bprint\(|click\.s?echo\(|sys\.std(?:out|err)\.write|console\.print")
    found = [path.name for path in sources if path.name != "streams.py" and direct.search(path.read_text())]
    assert found == ["apply.py"], "only progress bars are drawn directly, and only on a terminal"
