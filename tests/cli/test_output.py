"""What goes to stderr and into the log of a job, and how common mistakes of users are told, each with its cure."""

import json
import re
import shlex
from collections.abc import Iterator
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
from tests.support.git import bare, git

from .program import REPOSITORY, Project, category, tag
from .service import AT_ONCE, Service, serving

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


# --- mistakes of users


OLD, NEW = [tag("ACME-0042"), tag("ACME-0043")], [tag("ACME-0042")]

MISSING = (
    *("apply -y nope.json", "plan nope.json", "validate nope.json", "render nope.json", "show nope.json"),
    *("fmt nope.json", "adopt nope.json", "plan --since nope.json", "state import nope.json", "test nope.json"),
    *("init --from-csv nope.json new", "--config nope.json validate", "validate --var-file nope.json"),
)
EMPTY = [
    ("apply --reviewed ''", "--reviewed"),
    ("apply ''", "[PLAN | PATHS]"),
    ("plan ''", "PATHS"),
    ("plan --undo ''", "--undo"),
    ("sandbox --host ''", "--host"),
    ("show x --target ''", "--target"),
    ("show ''", "FILE"),
    ("plan --env ' '", "--env"),
    ("--env ' ' plan", "--env"),
    ("plan -C ''", "-C"),
    ("schema ''", "[NAME]..."),
    ("adopt ''", "FILE"),
    ("state list ''", "[ADDRESS]..."),
    ("time show ''", "GROUP_ID"),
]
"""Each option or argument that is empty is named: a variable may not be set."""
UNDO = "plan --undo RUN"
STATE = ".syncengine/"
"""May change: it may record a refused run."""
MISTAKES = [
    *((words, "error[usage]: nope.json: no such file or folder\n") for words in MISSING),
    *((words, f"{name} is empty, perhaps because a variable is not set") for words, name in EMPTY),
    ("plan --out nowhere/plan.json", "there is no folder nowhere"),
    ("plan --report json=nowhere/plan.json", "there is no folder nowhere"),
    ("plan --out -", "prints it to stdout"),
    ("plan --out z.plan --report markdown=./z.plan", "a report is written to the same file"),
    ("plan --report json=a.json --report text=./a.json", "two reports are written to"),
    ("plan --report nonsense", "--report"),
    *((f"-C typo {words}", "typo: no such folder") for words in ("schema -o made", "plan", "sandbox --port 0")),
    ("apply --max-errors 0", "'0' is not a whole number of at least 1"),
    ("apply -y --lock-timeout 0x", "'0x' is not a duration"),
    ("sandbox --port ten", "'ten' is not a whole number from 0 to 65535"),
    ("time list --limit 501", "'501' is not a whole number from 1 to 500"),
    ("init syncengine.yaml", "DIR is the folder to create, and a list goes with --from-csv"),
    ("plan syncengine.yaml", "is no manifest of this project: name manifests, or nothing for all"),
    ("apply -y --approve-deletes all", "'all' is not an approval: copy the whole COUNT@HASH"),
    ("apply -y --target 'tag/*' --sweep", "--sweep"),
    ("drift --since 7", "'7' is not a time: write a duration"),
    ("state prune --before ''", " is empty, perhaps because a variable"),
    ("drift --exclude 'HR-*'", "did you mean `tag/HR-*`?"),
    *(
        (f"{command} {option} {name}", says)
        for command in ("plan", "apply -y")
        for option in ("--target", "--exclude")
        for name, says in (("ACME-0042", "tag/ACME-0042"), ("tag/ACME-42", "tag/ACME-0042"), ("tag/X*", "no resource"))
    ),
    *((words, UNDO) for words in ("undo", "rollback", "state undo", "apply --undo last")),
    ("plan --undo nosuchrun", "the history has no run nosuchrun"),
    *((f"plan --undo last {option}", option.split()[0]) for option in ("--base main", "--no-delete", "--redo")),
    ("plan --undo last manifests", "--undo cannot be combined with paths"),
    ("plan --force", "--force needs --undo"),
    # Users of Terraform write one dash. An unknown short option gets no suggestion.
    ("plan -out plan.json", "Did you mean '--out'?\n"),
    ("plan -k", "'-k'.\n"),
    ("plan --outt plan.json", "No such option '--outt'. Did you mean '--out'?\n"),
    ("--snadbox plan", "No such option '--snadbox'. Did you mean '--sandbox'?\n"),
    ("apply --yes", "No such option '--yes'. Did you mean '-y'?\n"),
    ("plan --yes", "No such option '--yes'.\n"),
    ("plan --color always", "No such "),
    ("valdate", "Did you mean 'validate'?"),
    ("xyzzy", "No such command 'xyzzy'.\n"),
    ("help", "`syncengine COMMAND --help`"),
    ("show", "FILE"),
]


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose tags are applied, of which the manifest now lacks one. No test of it changes a file."""
    with serving() as service:
        project = Project(tmp_path_factory.mktemp("mistakes") / "project", service.url)
        project.settle(tags=OLD)
        project.wants(tags=NEW)
        yield project


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_a_mistake_is_refused_with_its_cure_before_any_work(applied: Project, words: str, says: str) -> None:
    """The message is one `error[usage]` in our own words on stderr, and no file is changed."""
    kept = {name: content for name, content in applied.files().items() if not name.startswith(STATE)}
    done = applied.run(*shlex.split(words))
    shown = done.out + done.err
    assert (done.code, shown.count("error[usage]: "), "Error:" in shown) == (64, 1, False), done
    assert done.out == "" or "validate" in words
    assert says in shown
    assert says != UNDO or "--redo" not in shown
    assert {name: content for name, content in applied.files().items() if not name.startswith(STATE)} == kept


@pytest.mark.parametrize("words", ["show", "forget -y", "erase -y", "quarantine --reason x"])
def test_a_misspelt_address_is_refused_with_the_recorded_one(applied: Project, words: str) -> None:
    command, *options = words.split()
    done = applied.run("state", command, "tag/ACME-0O42", *options)
    assert (done.code, done.out, "did you mean `tag/ACME-0042`?" in done.err) == (1, "", True)


def test_what_may_be_empty_or_zero(project: Project) -> None:
    """A variable, a reason, a time-out in any unit, and what else stands beside `--help`."""
    project.wants(tags=OLD)
    for words in ("plan --var K=", "state lock --reason ''", "plan --env '' --help", "plan --target 'tag/ACME-*'"):
        assert project.run(*shlex.split(words)).code == 0, words
    for none in ("0", "0s"):
        assert project.run("apply", "-y", "--lock-timeout", none).code == 6


def test_show_warns_of_a_target_that_the_plan_lacks(project: Project) -> None:
    """Otherwise an empty output would look like a plan without changes."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.plan").code == 0
    done = project.run("show", "saved.plan", "--target", "tag/ACME-0O42", "--target", "tag/ACME-0042")
    assert (done.code, done.err.count("nothing-selected")) == (0, 1)
    assert "tag/ACME-0O42 selects nothing in this plan" in done.err
    assert project.run("show", "saved.plan", "--target", "tag/*").err == ""


def test_the_command_that_approves_an_undo_names_its_file(applied: Project) -> None:
    """Without the file, `apply` would apply the manifests. Before the undo is saved, FILE stands for it."""
    for words in ((), ("--target", "tag/*")):
        done = applied.run("plan", "--undo", "last", *words)
        assert (done.out.count("    syncengine apply FILE --approve-deletes 2@"), "--target" in done.out) == (1, False)
        assert "FILE is the file that `plan --undo RUN --out FILE` writes." in done.out
    done = applied.run("plan", "--undo", "last", "--out", "undo.plan")
    assert "    syncengine apply undo.plan --approve-deletes 2@" in done.out
    assert "FILE is the file" not in done.out


def test_an_unknown_git_remote_is_reported_with_the_cure(project: Project) -> None:
    """If the remote has no state, the message asks to check its name before a new state is begun."""
    git(project.folder, "init", "--quiet")
    project.settings("state: git+ref://origin/refs/syncengine/prod")
    done = project.run("plan")
    assert (done.code, "correct the name, or run `git remote add origin URL`" in done.err) == (1, True)
    bare(project.folder.parent / "remote.git")
    git(project.folder, "remote", "add", "origin", "../remote.git")
    done = project.run("plan")
    assert (done.code, "check the name, begin a new state" in done.err) == (4, True)


def test_state_export_and_history_write_messages_to_stderr(applied: Project) -> None:
    """`export -o` names its file, and `history` suggests the nearest recorded address."""
    done = applied.run("state", "export", "-o", "rows.jsonl")
    assert (done.out, done.err) == ("", "Wrote rows.jsonl\n")
    done = applied.run("state", "history", "tag/ACME-0042X")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No history of tag/ACME-0042X is recorded; did you mean `tag/ACME-0042`?\n"
