"""Paths that users give: in commands to copy, as outputs, and with `-C`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess

import pytest

from syncengine.render import PLAN_REPORTS, REPORT_FORMATS

from .program import PROGRAM, Project, tag

OLD = [tag("OLD-1"), tag("OLD-2")]


def command_in(text: str, start: str) -> list[str]:
    """The words of the printed command that starts with `start`."""
    (line,) = (line.strip() for line in text.splitlines() if line.strip().startswith(start))
    return shlex.split(line)[1:]


def test_the_command_that_approves_names_folder_environment_and_plan(project: Project) -> None:
    """The printed command, when pasted, applies exactly the plan that was shown."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    outside = project.folder.parent
    shown = project.run("-C", "project", "plan", cwd=outside)
    words = command_in(shown.out, "syncengine apply")
    assert words[-2:] == ["-C", "project"]
    saved = project.run("-C", "project", "plan", "--out", "saved plan", cwd=outside)
    words = command_in(saved.out, "syncengine apply")
    assert (words[1], words[-2:]) == ("saved plan", ["-C", "project"])
    refused = project.run("apply", "saved plan", "-C", "project", cwd=outside)
    assert command_in(refused.out, "syncengine apply") == words
    done = project.run(*words, cwd=outside)
    assert (done.code, "Applied 2 changes, recorded here only: nothing was sent." in done.out) == (0, True), done.err


def test_a_plan_of_the_sandbox_says_so_where_no_service_is_known(project: Project) -> None:
    """Without a configured service, `apply` still suggests `--sandbox`, and not a URL."""
    project.wants(tags=OLD)
    (project.folder / "syncengine.yaml").unlink()
    assert project.run("plan", "--sandbox", "--out", "saved.plan").code == 0
    done = project.run("apply", "saved.plan", environ={"SYNCENGINE_API_KEY": ""})
    assert (done.code, "apply it with --sandbox" in done.err) == (5, True)


def test_the_project_around_its_manifests_is_named(project: Project) -> None:
    """With `-C manifests`, `plan` names the project's folder, even if that has no project file."""
    project.wants(tags=OLD)
    (project.folder / "syncengine.yaml").unlink()
    done = project.run("-C", "manifests", "plan", "--sandbox")
    assert (done.code, "the project is the folder around it: run this in `.`" in done.err) == (8, True)


def test_the_command_that_approves_selects_what_was_shown(project: Project) -> None:
    """It repeats `--target`, as it would apply more otherwise."""
    project.settle(tags=OLD)
    project.wants(tags=[tag("NEW-1")])
    shown = project.run("plan", "--target", "tag/OLD*")
    words = command_in(shown.out, "syncengine apply")
    assert words[-2:] == ["--target", "tag/OLD*"]
    done = project.run(*words, "-y")
    assert (done.code, "Applied 2 changes, recorded here only: nothing was sent." in done.out) == (0, True), done.err


def test_a_path_like_an_option_is_printed_as_a_path(project: Project) -> None:
    project.settings("manifests: [-m]")
    (project.folder / "-m").mkdir()
    (project.folder / "-m" / "tags.yaml").write_text("tags: [{name: OLD-1}, {name: OLD-2}]\n")
    assert project.run("apply", "-y").code == 0
    (project.folder / "-m" / "tags.yaml").write_text("tags: []\n")
    words = command_in(project.run("plan", "--", "-m").out, "syncengine apply")
    assert (words[-1], project.run(*words, "-y").code) == ("./-m", 0)


def test_the_command_that_approves_keeps_the_review(project: Project) -> None:
    """It repeats `--reviewed`, so changes that nobody reviewed stay refused."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    assert project.run("plan", "--out", "reviewed plan").code == 0
    options = ("--reviewed", "reviewed plan", "--new-state")
    refused = project.run("apply", "-y", *options)
    words = command_in(refused.out, "syncengine apply")
    assert (refused.code, words[-3:]) == (4, [*options])
    project.wants(tags=[tag("NEW-1")])
    assert project.run(*words, "-y").code == 5


def test_the_command_that_approves_omits_the_value_of_a_variable(project: Project) -> None:
    """The value may be secret. Pasted without a value, the command is refused."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    words = command_in(project.run("plan", "--var", "office=secret value").out, "syncengine apply")
    assert words[-2:] == ["--var", "office"]
    done = project.run(*words, "-y")
    assert (done.code, "--var 'office': write NAME=VALUE" in done.err) == (64, True)


def test_the_command_in_a_message_names_the_place(project: Project) -> None:
    """The printed `unlock` command has the same `-C` and `--sandbox`, as it would unlock another state otherwise."""
    project.wants(tags=OLD)
    outside = project.folder.parent
    locked = project.run("-C", "project", "state", "lock", "--sandbox", cwd=outside)
    assert locked.code == 0, locked.err
    refused = project.run("-C", "project", "apply", "-y", "--sandbox", "--lock-timeout", "0s", cwd=outside)
    assert refused.code == 6
    words = shlex.split(refused.err.partition("unlock it with `")[2].partition("`")[0])
    assert words[-3:] == ["-C", "project", "--sandbox"]
    assert project.run(*words[1:], cwd=outside).code == 0


def test_show_prints_the_option_of_a_plans_sandbox_or_environment(project: Project) -> None:
    """The command that `show` prints has the `--sandbox` or `--env` with which the plan was made."""
    project.settings("environments: {test: {state: .syncengine/test.db}}")
    project.wants(tags=OLD)
    for options in (["--sandbox"], ["--env", "test"]):
        assert project.run("apply", "-y", *options).code == 0
    project.wants(tags=[])
    for options in (["--sandbox"], ["--env", "test"]):
        assert project.run("plan", "--out", "saved.plan", *options).code == 0
        words = command_in(project.run("show", "saved.plan").out, "syncengine apply")
        assert words[-len(options) :] == options
        assert project.run(*words).code == 0


def test_a_plan_named_like_an_option_is_printed_with_its_folder(project: Project) -> None:
    """The printed command says `./-x.plan`."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    assert "syncengine apply ./-x.plan" in project.run("plan", "--out", "-x.plan").err
    assert command_in(project.run("show", "./-x.plan").out, "syncengine apply")[1] == "./-x.plan"


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


def test_a_plan_in_a_pipe_is_refused(project: Project) -> None:
    """A pipe exists, but cannot be read twice."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.plan").code == 0
    command = f"{shlex.join(PROGRAM)} apply <(cat saved.plan)"
    done = subprocess.run(
        ["bash", "-c", command], cwd=project.folder, env=project.surroundings(), capture_output=True, text=True
    )
    assert (done.returncode, "not a file or folder" in done.stderr) == (64, True), done.stderr


@pytest.mark.parametrize("words", ["schema -o made", "plan", "sandbox --port 0"])
def test_a_folder_that_does_not_exist_is_refused_and_not_made(project: Project, words: str) -> None:
    done = project.run("-C", "typo", *words.split())
    assert (done.code, "typo: no such folder" in done.err) == (64, True)
    assert not (project.folder / "typo").exists()


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
    for name, content in written.items():
        (project.folder / name).parent.mkdir(exist_ok=True)
        (project.folder / name).write_text(content)
    before = project.files()
    done = project.run(*words.format(place).split())
    kinds = ("no output is written to a", "is in the folder of Git", "is not from syncengine and would be overwritten")
    assert (done.code, any(kind in done.err for kind in kinds)) == (64, True), done.err
    assert project.files() == before


@pytest.mark.parametrize("name", ["plan.schema.json", "manifest.schema.json"])
def test_a_schema_replaces_only_a_schema(project: Project, name: str) -> None:
    """If another file has the name of a schema, `schema -o` is refused and writes no file."""
    assert project.run("schema", "-o", "made").code == 0
    assert project.run("schema", "-o", "made").code == 0
    for path in (project.folder / "made").iterdir():
        path.write_text('{"mine": true}') if path.name == name else path.unlink()
    done = project.run("schema", "-o", "made")
    assert (done.code, "not from syncengine" in done.err) == (64, True)
    assert [path.read_text() for path in (project.folder / "made").iterdir()] == ['{"mine": true}']


@pytest.mark.parametrize("content", ["", "[]"])
def test_an_output_replaces_an_empty_file(project: Project, content: str) -> None:
    """An output also replaces its own earlier version."""
    project.wants(tags=OLD)
    (project.folder / "saved.json").write_text(content)
    for _ in range(2):
        assert project.run("plan", "--out", "saved.json").code == 0


@pytest.mark.parametrize("content", ["not ours", "\ud800", '{"format": "other/v1"}'])
def test_an_output_replaces_no_other_file(project: Project, content: str) -> None:
    """A file that the program did not write is kept, whatever it contains."""
    project.wants(tags=OLD)
    (project.folder / "notes").write_text(content, errors="surrogatepass")
    done = project.run("plan", "--out", "notes")
    assert (done.code, "not from syncengine" in done.err) == (64, True)
    assert (project.folder / "notes").read_text(errors="surrogatepass") == content


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


def test_the_reviewed_plan_is_not_overwritten(project: Project) -> None:
    """A command does not write to the plan that it reads with `--since` or `--reviewed`."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.json").code == 0
    before = (project.folder / "saved.json").read_bytes()
    done = project.run("plan", "--since", "saved.json", "--out", "./saved.json")
    assert (done.code, "read by this command and would be overwritten" in done.err) == (64, True)
    assert (project.folder / "saved.json").read_bytes() == before
    for words in ("plan --since saved.json", "plan --since=saved.json --bogus", "apply -y --reviewed saved.json"):
        done = project.run(*words.split(), "--report", "json=./saved.json")
        assert done.code == 64
        assert (project.folder / "saved.json").read_bytes() == before


@pytest.mark.parametrize(
    "words", ["--out saved.json --report json=saved.json", "--report json=saved.json --report markdown=./saved.json"]
)
def test_a_refused_output_leaves_the_file_as_it_was(project: Project, words: str) -> None:
    """Reports of errors are not written there either."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.json").code == 0
    before = (project.folder / "saved.json").read_bytes()
    assert project.run("plan", *words.split()).code == 64
    assert (project.folder / "saved.json").read_bytes() == before


def test_a_linked_report_is_refused_before_anything_is_sent(project: Project) -> None:
    """A report is not written through a link, so `apply` does not start."""
    project.wants(tags=OLD)
    (project.folder / "link.json").symlink_to("elsewhere.json")
    done = project.run("apply", "-y", "--report", "json=link.json")
    assert (done.code, "through links; nothing was applied" in done.err) == (1, True)
    assert not (project.folder / ".syncengine" / "state.db").exists()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_is_behind_stdout_is_not_truncated(project: Project, name: str) -> None:
    """A report to `/dev/stdout` is appended to the redirected file, as to the summary of a job."""
    project.wants(tags=OLD)
    log = project.folder / "log"
    log.write_text("kept\n")
    with log.open("ab") as stdout:
        command = [*PROGRAM, "plan", "-q", "--report", f"markdown={name}"]
        done = subprocess.run(command, cwd=project.folder, env=project.surroundings(), stdout=stdout, check=False)
    text = log.read_text()
    assert (done.returncode, text.startswith("kept\n"), "OLD-1" in text) == (0, True, True)


@pytest.mark.parametrize("words", ["apply", "state import -y -"])
def test_closed_stdin_is_a_usage_error(project: Project, words: str) -> None:
    """A command that asks a question or reads stdin exits with 64."""
    project.settle(tags=OLD)
    command = shlex.join([*PROGRAM, *words.split()])
    done = subprocess.run(
        f"{command} <&-", shell=True, cwd=project.folder, env=project.surroundings(), capture_output=True, text=True
    )
    assert (done.returncode, "repeat" in done.stderr or "stdin is closed" in done.stderr) == (64, True), done.stderr


def test_a_plan_is_saved_in_a_file_of_its_own(project: Project) -> None:
    """A plan is saved neither to stdout nor to the file of a report, and two reports need two files."""
    project.wants(tags=OLD)
    assert "prints it to stdout" in project.run("plan", "--out", "-").err
    done = project.run("plan", "--out", "z.plan", "--report", "markdown=./z.plan")
    assert (done.code, "a report is written to the same file" in done.err) == (64, True)
    done = project.run("plan", "--report", "json=a.json", "--report", "text=./a.json")
    assert (done.code, "two reports are written to" in done.err) == (64, True)
    assert project.run("plan", "--out", "a.plan").code == 0
    before = (project.folder / "a.plan").read_bytes()
    assert project.run("apply", "a.plan", "--report", "json=a.plan").code == 64
    assert (project.folder / "a.plan").read_bytes() == before


def test_messages_as_json_have_code_and_place(project: Project) -> None:
    """JSON messages have the code, file and line of an error."""
    project.wants(tags=[tag("A", category="nosuch")])
    done = project.run("plan", "--log-format", "json")
    (line,) = (each for each in map(json.loads, done.err.splitlines()) if each["level"] == "error")
    assert (line["level"], line["code"], line["file"]) == ("error", "unknown-category", "manifests/all.yaml")
    assert line["line"] > 0
    done = project.run("plan", "--log-format", "json", "--var-file", os.fsdecode(b"x\xff.yaml"))
    assert done.code == 64
    assert [json.loads(each)["level"] for each in done.err.splitlines()] == ["error"]
