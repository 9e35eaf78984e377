"""The log of a CI job: no name, value or file name in it can act as a command for the runner."""

from __future__ import annotations

import re

import pytest
import yaml

from syncengine.render.escape import harmless
from syncengine.render.words import place
from syncengine.resource import Source

from .program import REPOSITORY, Ended, Project, tag
from .service import Service

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


def printed(done: Ended) -> str:
    return done.out + done.err


WAYS = [
    *("plan", "plan --format markdown", "plan --format json", "plan --report html=-", "render", "validate"),
    *("apply -y --format json -v --log-format json", "apply -y --report junit=-", "fmt --diff", "state list"),
    *(f"state show tag/{NAMES[1]}-01", "plan --target tag/##[error]nowhere", "##[error]nowhere"),
]


@pytest.mark.parametrize("words", WAYS)
def test_no_name_is_a_command_in_the_log_of_a_job(hostile: Project, words: str) -> None:
    """This holds for every command, on stdout and stderr."""
    if words.startswith("state"):
        assert hostile.run("apply", "-y").code == 0
    done = hostile.run(*words.split(), environ=RUNNER)
    assert printed(done)
    assert commands(printed(done)) == []


@pytest.mark.parametrize("runner", [{"TF_BUILD": "True"}, {"TEAMCITY_VERSION": "2025.1"}])
def test_no_name_is_a_command_on_other_runners(hostile: Project, runner: dict[str, str]) -> None:
    assert commands(printed(hostile.run("plan", "-v", environ=runner))) == []


def test_an_error_text_of_the_service_is_no_command(hostile: Project, service: Service) -> None:
    """The text is printed in the log, the reports and the history."""
    words = "::error::no ##[error]room ##vso[task.complete]"
    service.fault("upsertTags", times=1, itemErrors=[{"index": 1, "errorDescription": words}])
    reports = [word for name in ("text", "json", "markdown") for word in ("--report", f"{name}=report.{name}")]
    done = hostile.run("apply", "-y", "-v", *reports, environ=RUNNER)
    assert done.code == 3
    told = printed(done) + "".join((hostile.folder / f"report.{n}").read_text() for n in ("text", "json", "markdown"))
    story = hostile.run("state", "history", f"tag/{NAMES[1]}-01", environ=RUNNER)
    assert "room" in told
    assert commands(told + printed(story)) == []


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
