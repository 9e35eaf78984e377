"""Paths that users give: in commands to copy, as outputs, and with `-C`."""

import json
import os
import shlex

import pytest

from syncengine.render import PLAN_REPORTS, REPORT_FORMATS
from tests.manifest.loading import write

from .program import Project, in_shell, tag

OLD = [tag("OLD-1"), tag("OLD-2")]


def command_in(text: str, start: str = "syncengine apply") -> list[str]:
    """The words of the printed command that starts with `start`."""
    (line,) = (line.strip() for line in text.splitlines() if line.strip().startswith(start))
    return shlex.split(line)[1:]


@pytest.fixture
def leaving(project: Project) -> Project:
    """A project whose manifests no longer declare its two tags."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    return project


def test_the_command_that_approves_names_folder_environment_and_plan(leaving: Project) -> None:
    """The printed command, when pasted, applies exactly the plan that was shown."""
    outside = leaving.folder.parent
    shown = leaving.run("-C", "project", "plan", cwd=outside)
    assert command_in(shown.out)[-2:] == ["-C", "project"]
    saved = leaving.run("-C", "project", "plan", "--out", "saved plan", cwd=outside)
    words = command_in(saved.out)
    assert (words[1], words[-2:]) == ("saved plan", ["-C", "project"])
    refused = leaving.run("apply", "saved plan", "-C", "project", cwd=outside)
    assert command_in(refused.out) == words
    done = leaving.run(*words, cwd=outside)
    assert (done.code, "Applied 2 changes, recorded here only: nothing was sent." in done.out) == (0, True), done.err


def test_the_command_that_approves_repeats_the_options(leaving: Project) -> None:
    """It would apply more otherwise, or what nobody reviewed. The value of a variable may be secret, so it is left out;
    without it, the pasted command is refused."""
    words = command_in(leaving.run("plan", "--var", "office=secret value").out)
    assert words[-2:] == ["--var", "office"]
    done = leaving.run(*words, "-y")
    assert (done.code, "--var 'office': write NAME=VALUE" in done.err) == (64, True)
    assert leaving.run("plan", "--out", "reviewed plan").code == 0
    options = ["--reviewed", "reviewed plan", "--new-state"]
    refused = leaving.run("apply", "-y", *options)
    words = command_in(refused.out)
    assert (refused.code, words[-3:]) == (4, options)
    leaving.wants(tags=[tag("NEW-1")])
    assert leaving.run(*words, "-y").code == 5
    words = command_in(leaving.run("plan", "--target", "tag/OLD*").out)
    assert words[-2:] == ["--target", "tag/OLD*"]
    done = leaving.run(*words, "-y")
    assert (done.code, "Applied 2 changes" in done.out) == (0, True), done.err


def test_names_like_options_are_printed_as_paths(project: Project) -> None:
    project.settings("manifests: [-m]")
    (project.folder / "-m").mkdir()
    (project.folder / "-m" / "tags.yaml").write_text("tags: [{name: OLD-1}, {name: OLD-2}]\n")
    assert project.run("apply", "-y").code == 0
    (project.folder / "-m" / "tags.yaml").write_text("tags: []\n")
    assert "syncengine apply ./-x.plan" in project.run("plan", "--out", "-x.plan").err
    assert command_in(project.run("show", "./-x.plan").out)[1] == "./-x.plan"
    words = command_in(project.run("plan", "--", "-m").out)
    assert (words[-1], project.run(*words, "-y").code) == ("./-m", 0)


@pytest.mark.parametrize("options", [["--sandbox"], ["--env", "test"]])
def test_show_prints_the_option_of_a_plans_sandbox_or_environment(project: Project, options: list[str]) -> None:
    """The command that `show` prints has the `--sandbox` or `--env` with which the plan was made."""
    project.settings("environments: {test: {state: .syncengine/test.db}}")
    project.wants(tags=OLD)
    assert project.run("apply", "-y", *options).code == 0
    project.wants(tags=[])
    assert project.run("plan", "--out", "saved.plan", *options).code == 0
    words = command_in(project.run("show", "saved.plan").out)
    assert words[-len(options) :] == options
    assert project.run(*words).code == 0


def test_the_command_in_a_message_names_the_place(project: Project) -> None:
    """The printed `unlock` command has the same `-C` and `--sandbox`, as it would unlock another state otherwise."""
    project.wants(tags=OLD)
    outside = project.folder.parent
    assert project.run("-C", "project", "state", "lock", "--sandbox", cwd=outside).code == 0
    refused = project.run("-C", "project", "apply", "-y", "--sandbox", "--lock-timeout", "0s", cwd=outside)
    words = shlex.split(refused.err.partition("unlock it with `")[2].partition("`")[0])
    assert (refused.code, words[-3:]) == (6, ["-C", "project", "--sandbox"])
    assert project.run(*words[1:], cwd=outside).code == 0


def test_where_no_service_is_known_the_sandbox_is_named(project: Project) -> None:
    """Without a project file, `apply` suggests `--sandbox` and not a URL."""
    project.wants(tags=OLD)
    (project.folder / "syncengine.yaml").unlink()
    assert project.run("plan", "--sandbox", "--out", "saved.plan").code == 0
    done = project.run("apply", "saved.plan", environ={"SYNCENGINE_API_KEY": ""})
    assert (done.code, "apply it with --sandbox" in done.err) == (5, True)


@pytest.mark.parametrize(
    "words",
    ["-C outer -C project plan", "-C outer plan -C project", "plan -C outer -C project", "-C outer plan -C {absolute}"],
)
def test_a_folder_is_relative_to_the_one_before(project: Project, words: str) -> None:
    """Several `-C` add up, as in Git, unless one is absolute."""
    project.wants(tags=OLD)
    outer = project.folder.parent / "outer"
    outer.mkdir()
    project.folder.rename(outer / "project")
    done = project.run(*words.format(absolute=outer / "project").split(), cwd=outer.parent)
    assert (done.code, "OLD-1" in done.out) == (0, True), done.err


# --- outputs


KEPT = (
    *("syncengine.yaml", "manifests/all.yaml", "manifests/new.YML", "manifests/more.json", "data/rows.json"),
    *(".syncengine/state.db", ".syncengine/cache.db", ".syncengine/.gitignore", ".git/config"),
    *("secret/key.txt", "out/time.jsonl", "narrative.txt"),
)
OUTPUTS = ("plan --report markdown={}", "apply -y --report json={}", "state export -o {}")
OVERWRITING = [
    *(("plan --out {}", place) for place in KEPT),
    *((words, place) for words in OUTPUTS for place in ("syncengine.yaml", "manifests/all.yaml", "data/rows.json")),
    ("publish saved.plan --to github --dotenv {}", "syncengine.yaml"),
]


@pytest.mark.parametrize(("words", "place"), OVERWRITING)
def test_no_output_overwrites_what_the_program_did_not_write_as_one(project: Project, words: str, place: str) -> None:
    """Settings, manifests, state, data, keys, posted time and Git's files are kept, and nothing is planned or sent."""
    project.settle(tags=OLD)
    project.settings(
        "postedTime: {narrative: {template: narrative.txt}, deliver: [{name: file, jsonl: {path: out/time.jsonl}}]}",
        "environments: {other: {service: {apiKey: {file: secret/key.txt}}}}",
    )
    written = {
        "manifests/more.json": '{"tags": [{"name": "NEW-1"}],}',
        "data/rows.json": '[{"a": 1}]',
        "secret/key.txt": "key",
        "out/time.jsonl": '{"group": "g-1"}\n',
        ".git/config": "",
        "narrative.txt": "{{ group.description }}",
        ".syncengine/cache.db": "SQLite format 3\0",
    }
    write(project.folder, written)
    before = project.files()
    done = project.run(*words.format(place).split())
    kinds = ("no output is written to a", "is in the folder of Git", "is not from syncengine and would be overwritten")
    assert (done.code, any(kind in done.err for kind in kinds)) == (64, True), done.err
    assert project.files() == before


@pytest.mark.parametrize("name", ["plan.schema.json", "manifest.schema.json"])
def test_a_schema_replaces_only_a_schema(project: Project, name: str) -> None:
    """If another file has the name of a schema, `schema -o` is refused and writes no file."""
    for _ in range(2):
        assert project.run("schema", "-o", "made").code == 0
    for path in (project.folder / "made").iterdir():
        path.write_text('{"mine": true}') if path.name == name else path.unlink()
    done = project.run("schema", "-o", "made")
    assert (done.code, "not from syncengine" in done.err) == (64, True)
    assert [path.read_text() for path in (project.folder / "made").iterdir()] == ['{"mine": true}']


@pytest.mark.parametrize(
    ("content", "code"), [("", 0), ("[]", 0), ("not ours", 64), ("\ud800", 64), ('{"format": "other/v1"}', 64)]
)
def test_an_output_replaces_an_empty_file_and_its_own_but_no_other(project: Project, content: str, code: int) -> None:
    """A file that the program did not write is kept, whatever it contains."""
    project.wants(tags=OLD)
    (project.folder / "notes").write_text(content, errors="surrogatepass")
    for _ in range(2):
        done = project.run("plan", "--out", "notes")
        assert (done.code, "not from syncengine" in done.err) == (code, bool(code))
    assert code == 0 or (project.folder / "notes").read_text(errors="surrogatepass") == content


@pytest.mark.parametrize("format", PLAN_REPORTS)
def test_an_output_replaces_any_report(project: Project, format: str) -> None:
    """A report may be replaced by one of another format, or by a saved plan."""
    project.settle(tags=OLD)
    project.wants(tags=[tag("OLD-1"), tag("NEW-1")])
    for words in ("", "--report sarif=report", "--report json=report", "--out report"):
        assert project.run("plan", "--report", f"{format}=report").code == 0
        assert project.run("plan", *words.split()).code == 0


@pytest.mark.parametrize("format", REPORT_FORMATS)
def test_a_report_of_an_apply_replaces_another(project: Project, format: str) -> None:
    """A later report also replaces that of a usage error."""
    project.wants(tags=OLD)
    for words, code in ((["--bogus"], 64), ([], 0), (["--bogus"], 64), (["--target", "tag/none"], 64), ([], 0)):
        assert project.run("apply", "-y", "--report", f"{format}=report", *words).code == code
    assert "usage" not in (project.folder / "report").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "plan --since saved.json --out ./saved.json",
        "plan --since saved.json --report json=./saved.json",
        "plan --since=saved.json --bogus --report json=./saved.json",
        "apply -y --reviewed saved.json --report json=./saved.json",
        "apply saved.json --report json=saved.json",
        "plan --out saved.json --report json=saved.json",
        "plan --report json=saved.json --report markdown=./saved.json",
    ],
)
def test_a_command_does_not_write_what_it_reads_or_writes_otherwise(project: Project, words: str) -> None:
    """The file is left as it was. Reports of errors are not written there either."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.json").code == 0
    before = (project.folder / "saved.json").read_bytes()
    done = project.run(*words.split())
    assert (done.code, (project.folder / "saved.json").read_bytes() == before) == (64, True), done
    assert "--since saved.json" not in words or "read by this command and would be overwritten" in done.err


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_is_behind_stdout_is_not_truncated(project: Project, name: str) -> None:
    """A report to `/dev/stdout` is appended to the redirected file, as to the summary of a job."""
    project.wants(tags=OLD)
    log = project.folder / "log"
    log.write_text("kept\n")
    done = in_shell(project, f"syncengine plan -q --report markdown={name} >>log")
    text = log.read_text()
    assert (done.returncode, text.startswith("kept\n"), "OLD-1" in text) == (0, True, True)


def test_messages_as_json_have_code_and_place(project: Project) -> None:
    """JSON messages have the code, file and line of an error."""
    project.wants(tags=[tag("A", category="nosuch")])
    done = project.run("plan", "--log-format", "json")
    (line,) = (each for each in map(json.loads, done.err.splitlines()) if each["level"] == "error")
    assert (line["code"], line["file"], line["line"] > 0) == ("unknown-category", "manifests/all.yaml", True)
    done = project.run("plan", "--log-format", "json", "--var-file", os.fsdecode(b"x\xff.yaml"))
    assert done.code == 64
    assert [json.loads(each)["level"] for each in done.err.splitlines()] == ["error"]
