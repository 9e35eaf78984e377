"""Global options, folders, misspelt arguments, and streams that end early, are closed or only take ASCII."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from .program import Project, in_shell, tag

pytestmark = pytest.mark.slow


def test_every_relative_path_starts_in_the_chosen_folder(project: Project) -> None:
    """Paths of files that are read or written are relative to the folder of `-C`, as with `git -C`."""
    project.wants(tags=[tag("NEW-1")])
    outside = project.folder.parent
    words = ("--config", "syncengine.yaml", "--out", "plan.json", "--report", "json=report.json")
    planned = project.run("-C", "project", "plan", *words, cwd=outside)
    command = "`syncengine apply plan.json -C project --config syncengine.yaml`"
    assert (planned.code, command in planned.err) == (0, True)
    assert {"plan.json", "report.json"} <= {path.name for path in project.folder.iterdir()}
    published = ("publish", "plan.json", "--to", "github", "--dotenv", "plan.env")
    runner = {"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": "o/n", "GITHUB_TOKEN": "t"}
    project.run("-C", "project", *published, cwd=outside, environ={**runner, "GITHUB_REF": "refs/heads/main"})
    assert (project.folder / "plan.env").exists()
    applied = project.run("-C", "project", "apply", "plan.json", "--report", "text=applied.txt", cwd=outside)
    assert (applied.code, (project.folder / "applied.txt").exists()) == (0, True)
    assert [path.name for path in outside.iterdir() if path.is_file()] == []


def test_a_project_is_found_from_a_folder_below_it(project: Project) -> None:
    """The search goes up to the root of the Git repository. PATHS are relative to the current folder."""
    project.wants("one.yaml", tags=[tag("ONE-1")])
    project.wants("two.yaml", tags=[tag("TWO-1")])
    below = project.folder / "manifests"
    for config in ((), ("--config", str(project.folder / "syncengine.yaml"))):
        done = project.run("plan", *config, "two.yaml", "--format", "json", cwd=below)
        assert [change["address"] for change in done.document["changes"]] == ["tag/TWO-1"]
    assert project.run("apply", "-y", cwd=below).code == 0
    assert project.run("plan").out.startswith("No changes")


@pytest.mark.parametrize(
    ("words", "start", "place"),
    [
        ("plan", ".", ".syncengine/sandbox"),
        ("plan", "manifests", "../.syncengine/sandbox"),
        ("-C project plan", "..", "project/.syncengine/sandbox"),
    ],
)
def test_the_folder_of_the_sandbox_is_named(project: Project, words: str, start: str, place: str) -> None:
    """The path is relative to the current folder and shows which project was found."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run(*words.split(), "--sandbox", cwd=project.folder / start)
    assert f"its data and its state are in {place}." in done.err, (done.out, done.err)


@pytest.mark.parametrize(
    "words",
    ["plan --targt x --log-format json", "--log-format=json valdate", "--log-format json schema -o syncengine.yaml"],
)
def test_usage_errors_are_json_lines_with_log_format_json(project: Project, words: str) -> None:
    """Stderr is one JSON object, wherever the misspelt word is."""
    done = project.run(*words.split())
    (line,) = [json.loads(line) for line in done.err.splitlines()]
    assert (done.code > 0, line["level"], len(line["message"]) > 10) == (True, "error", True)


@pytest.mark.parametrize("command", ["plan", "state list"])
def test_a_reader_that_goes_away_sees_no_traceback(project: Project, command: str) -> None:
    """With `| head -1`, a command whose output is larger than a pipe's buffer ends silently. Reports are complete."""
    project.settle(tags=[tag(f"MANY-{number:05}") for number in range(1500)])
    project.wants(tags=[tag(f"MANY-{number:05}", description="new") for number in range(1500)])
    report = "--report json=report.json" if command == "plan" else ""
    done = in_shell(project, f"syncengine {command} -v {report} | head -1")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert not report or "tag/MANY-01499" in (project.folder / "report.json").read_text()


@pytest.mark.parametrize(("format", "reader"), [("text", "head -1"), ("json", "true")])
def test_an_apply_succeeds_although_its_reader_goes_away(project: Project, format: str, reader: str) -> None:
    """`apply` exits with 0 if the reader of its report has closed the pipe."""
    project.wants(tags=[tag("NEW-1")])
    done = in_shell(project, f"syncengine apply -y --format {format} | {reader}; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "tags: 1 of 1\n")
    assert project.plan().changes == ()


def test_a_folder_that_cannot_be_made_is_an_error(project: Project) -> None:
    """A file in place of `.syncengine` is reported with the name of the data file."""
    (project.folder / ".syncengine").write_text("in the way")
    done = project.run("sandbox", "--port", "0")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[file]: ")
    assert ".syncengine" in done.err


@pytest.mark.parametrize(
    ("plain", "format"), [({"LANG": "C", "LC_ALL": "C"}, "text"), ({"PYTHONIOENCODING": "ascii"}, "html")]
)
def test_non_ascii_names_are_no_crash_on_an_ascii_terminal(
    project: Project, plain: dict[str, str], format: str
) -> None:
    """A plan with names in any script can be printed on any terminal."""
    project.wants(tags=[tag("Übung-1", description="naïve → 日本 …")])
    done = project.run("plan", "--format", format, environ=plain)
    assert done.code == 0, done.err
    assert "bung-1" in done.out


@pytest.mark.parametrize("command", ["plan", "state show --format json tag/OLD"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_reported(project: Project, command: str) -> None:
    """If stdout cannot be written, the command exits with 1 and gives the reason on stderr."""
    project.settle(tags=[tag("OLD")])
    done = in_shell(project, f"syncengine {command} >/dev/full")
    assert (done.returncode, "error[output]: the output cannot be written" in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 50_000, "x"])
def test_a_file_that_is_no_plan_is_refused(project: Project, content: str) -> None:
    """With the reason, not as an internal error, and before `-y` is asked for, which would only lead to this."""
    project.wants(tags=[tag("ACME-1")])
    (project.folder / "plan.json").write_text(content)
    done = project.run("apply", "plan.json")
    reason = "neither a saved plan nor a manifest" if content else "plan.json is empty"
    assert (done.code, reason in done.err) == (64, True), done.err
    shown = project.run("show", "plan.json")
    assert (shown.code, "error[plan-file]" in shown.err) == (1, True), shown.err


@pytest.mark.parametrize("place", ["plan.json", "syncengine.yaml", "manifests/pipe.yaml"])
def test_a_named_pipe_in_place_of_a_file_is_refused(project: Project, place: str) -> None:
    """Reading it would block for ever."""
    project.wants(tags=[tag("ACME-1")])
    (project.folder / place).unlink(missing_ok=True)
    os.mkfifo(project.folder / place)
    for command in ("apply -y plan.json", "show plan.json") if place == "plan.json" else ("plan",):
        done = project.run(*command.split())
        assert (done.code in (1, 8, 64), "internal" in done.err) == (True, False), done.err


@pytest.mark.parametrize("command", ["validate", "apply -y", "connector check"])
def test_without_a_project_every_command_says_the_same(project: Project, command: str) -> None:
    """The message names `syncengine init`, and no file is created."""
    (project.folder / "empty" / ".git").mkdir(parents=True)
    done = project.run(*command.split(), cwd=project.folder / "empty")
    assert (done.code, "run `syncengine init` to create one" in done.out + done.err) == (8, True), done
    assert [path.name for path in (project.folder / "empty").iterdir()] == [".git"]


def test_a_project_that_only_delivers_time_needs_no_manifests(project: Project) -> None:
    """Once the state records resources, a missing folder of manifests is an error."""
    time = "postedTime: {mode: fetch, deliver: [{name: file, jsonl: {path: out/time.jsonl}}]}"
    project.settings(time)
    assert project.run("validate").code == 0
    assert project.run("plan").code == 0
    project.settle(tags=[tag("ACME-1")])
    shutil.rmtree(project.folder / "manifests")
    refused = project.run("plan", "--format", "json")
    assert (refused.code, refused.codes) == (8, ["missing-manifests"])


PRINTING = ("plan --format json", "plan --report json=/dev/stdout", "--help")


@pytest.mark.parametrize("words", PRINTING)
def test_data_for_a_closed_stream_is_an_error(project: Project, words: str) -> None:
    """A command whose output was requested exits with 1 if stdout is closed."""
    project.settle(tags=[tag("NEW-1")])
    done = in_shell(project, f"syncengine {words} >&-")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "error[" in done.stderr


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [("<&-", 0, ""), (">&-", 1, "stdout is closed"), ("2>&-", 0, ""), ("2>/dev/full", 1, ""), (">&- 2>&-", 1, "")],
)
def test_an_apply_completes_whatever_its_streams_are(project: Project, streams: str, code: int, said: str) -> None:
    """Streams may be closed, as under some daemons; a report or a message that is lost exits with 1."""
    project.wants(tags=[tag("NEW-1")])
    done = in_shell(project, f"syncengine apply -y {streams}")
    assert (done.returncode, said in done.stderr, "internal" in done.stderr) == (code, True, False), done.stderr
    assert "Traceback" not in done.stderr
    assert project.plan().changes == ()


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(project: Project) -> None:
    """A usage error exits with 64 even if stdout is full."""
    done = in_shell(project, "syncengine plan --nope --format json >/dev/full")
    assert (done.returncode, "Traceback" in done.stderr) == (64, False), done.stderr


@pytest.mark.parametrize("words", ["plan", "init new", "plan --nope"])
def test_a_deleted_current_folder_is_a_usage_error(project: Project, words: str) -> None:
    done = in_shell(project, f"mkdir gone; cd gone; rmdir ../gone; syncengine {words}")
    assert (done.returncode, "internal" in done.stderr) == (64, False), done.stderr
