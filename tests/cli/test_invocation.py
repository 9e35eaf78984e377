"""Options before and after the command, folders, pipes that end early, and streams that are closed or plain."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from .program import PROGRAM, Project, ended, tag

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("arguments", [("-C", "project", "plan"), ("plan", "-C", "project")])
def test_another_folder_is_chosen_before_or_after_the_command(project: Project, arguments: tuple[str, ...]) -> None:
    """Global options stand where people write them."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run(*arguments, "--format", "json", cwd=project.folder.parent)
    assert (done.code, done.document["changes"][0]["source"]["file"]) == (0, "manifests/all.yaml")


def test_every_relative_path_starts_in_the_chosen_folder(project: Project) -> None:
    """Of files that are read and of files that are written, as with `git -C`."""
    project.wants(tags=[tag("NEW-1")])
    outside = project.folder.parent
    words = ("--config", "syncengine.yaml", "--out", "plan.json", "--report", "json=report.json")
    planned = project.run("-C", "project", "plan", *words, cwd=outside)
    assert (planned.code, "`syncengine apply plan.json -C project --config syncengine.yaml`" in planned.err) == (
        0,
        True,
    )
    assert {"plan.json", "report.json"} <= {path.name for path in project.folder.iterdir()}
    published = ("publish", "plan.json", "--to", "github", "--dotenv", "plan.env")
    runner = {"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_REPOSITORY": "o/n", "GITHUB_TOKEN": "t"}
    project.run("-C", "project", *published, cwd=outside, environ={**runner, "GITHUB_REF": "refs/heads/main"})
    assert (project.folder / "plan.env").exists()
    applied = project.run("-C", "project", "apply", "plan.json", "--report", "text=applied.txt", cwd=outside)
    assert (applied.code, (project.folder / "applied.txt").exists()) == (0, True)
    assert [path.name for path in outside.iterdir() if path.is_file()] == []


def test_paths_are_those_of_the_current_folder(project: Project) -> None:
    """As the shell completes them; they select changes and nothing else."""
    project.wants("one.yaml", tags=[tag("ONE-1")])
    project.wants("two.yaml", tags=[tag("TWO-1")])
    config = ("--config", str(project.folder / "syncengine.yaml"))
    done = project.run("plan", *config, "two.yaml", "--format", "json", cwd=project.folder / "manifests")
    assert [change["address"] for change in done.document["changes"]] == ["tag/TWO-1"]


@pytest.mark.parametrize(
    ("words", "start", "place"),
    [
        ("plan", ".", ".syncengine/sandbox"),
        ("plan", "manifests", "../.syncengine/sandbox"),
        ("-C project plan", "..", "project/.syncengine/sandbox"),
    ],
)
def test_the_sandbox_is_named_where_it_is(project: Project, words: str, start: str, place: str) -> None:
    """Relative to the current folder, so that somebody sees which project was found."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run(*words.split(), "--sandbox", cwd=project.folder / start)
    assert f"its data and its state are in {place}." in done.err, (done.out, done.err)


def test_a_misspelt_command_is_suggested(project: Project) -> None:
    """And a name that is near nothing is only refused."""
    assert "Did you mean 'validate'?" in project.run("valdate").err
    assert "Did you mean" not in project.run("xyzzy").err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("plan --outt plan.json", " Did you mean '--out'?"),
        ("plan --targt tag/A", " Did you mean '--target'?"),
        ("plan --no-delet", " Did you mean '--no-delete'?"),
        ("--snadbox plan", " Did you mean '--sandbox'?"),
        ("state list --formt json", " Did you mean '--format'?"),
        ("plan --xyzzy", ""),
        ("apply --yes", " Did you mean '-y'?"),
        ("state forget tag/A --yes", " Did you mean '-y'?"),
        ("plan --yes", ""),
    ],
)
def test_a_misspelt_option_is_suggested(project: Project, words: str, hint: str) -> None:
    """The nearest one alone, and not those that only share two dashes with it."""
    option = next(word for word in words.split() if word.startswith("--"))
    done = project.run(*words.split())
    assert (done.code, done.err.splitlines()[-1]) == (64, f"error[usage]: No such option '{option}'.{hint}")


@pytest.mark.parametrize(
    "arguments", ["valdate", "plan --formt json", "plan nowhere", "plan --report x", "show", "-C nowhere plan", "apply"]
)
def test_usage_errors_have_one_form(project: Project, arguments: str) -> None:
    """Once, whoever found it; how the command is called may stand before it."""
    done = project.run(*arguments.split())
    assert (done.code, done.err.count("error[usage]: "), "Error:" in done.err) == (64, 1, False)


@pytest.mark.parametrize(
    "words",
    ["plan --targt x --log-format json", "--log-format=json valdate", "--log-format json schema -o syncengine.yaml"],
)
def test_errors_before_and_beside_a_plan_are_log_lines_where_json_is_asked_for(project: Project, words: str) -> None:
    """All of stderr is one JSON object a line, whatever was misspelt."""
    done = project.run(*words.split())
    (line,) = [json.loads(line) for line in done.err.splitlines()]
    assert (done.code > 0, line["level"], len(line["message"]) > 10) == (True, "error", True)


def test_a_missing_choice_is_told_in_one_line(project: Project) -> None:
    """With all of them."""
    done = project.run("publish", "plan.json", "--dry-run")
    assert (done.code, done.err.splitlines()[-1]) == (
        64,
        "error[usage]: Missing option '--to'. Choose from: github, gitlab",
    )


@pytest.mark.parametrize("command", ["plan", "state list"])
def test_a_reader_that_goes_away_sees_no_traceback(project: Project, command: str) -> None:
    """As `| head -1` does, with more to say than a pipe holds."""
    project.settle(tags=[tag(f"MANY-{number:05}") for number in range(1500)])
    project.wants(tags=[tag(f"MANY-{number:05}", description="new") for number in range(1500)])
    line = f"{shlex.join(PROGRAM)} {command} -v | head -1"
    done = subprocess.run(
        line, shell=True, cwd=project.folder, env=project.surroundings(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(("format", "reader"), [("text", "head -1"), ("json", "true")])
def test_what_was_applied_is_applied_whoever_reads_of_it(project: Project, format: str, reader: str) -> None:
    """A reader that went away before the report is no failure of the apply."""
    project.wants(tags=[tag("NEW-1")])
    line = f"{shlex.join(PROGRAM)} apply -y --format {format} | {reader}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=project.folder, env=project.surroundings(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "tags: 1 of 1\n")
    assert project.plan().changes == ()


def test_a_folder_that_cannot_be_made_is_an_error(project: Project) -> None:
    """In any command, without a traceback."""
    (project.folder / ".syncengine").write_text("in the way")
    done = project.run("sandbox", "--port", "0")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[file]: ")
    assert ".syncengine" in done.err


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_closed_stream_is_no_crash(project: Project, closing: str) -> None:
    """As under some daemons."""
    project.wants(tags=[tag("NEW-1")])
    done = subprocess.run(
        f"{shlex.join(PROGRAM)} apply -y {closing}",
        shell=True,
        cwd=project.folder,
        env=project.surroundings(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stderr
    assert project.plan().changes == ()


@pytest.mark.parametrize("plain", [{"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
@pytest.mark.parametrize("format", ["text", "json", "html"])
def test_output_that_knows_only_ascii_is_no_crash(project: Project, plain: dict[str, str], format: str) -> None:
    """Names of any script can be planned on any terminal."""
    project.wants(tags=[tag("Übung-1", description="naïve → 日本 …")])
    done = project.run("plan", "--format", format, environ=plain)
    assert done.code == 0, done.err
    assert "bung-1" in done.out


@pytest.mark.parametrize("command", ["plan", "state list", "state list --format json", "state show --format json OLD"])
def test_a_full_disk_is_told(project: Project, command: str) -> None:
    """What could not be written whole is no success, and the reason is on stderr, whatever the format."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    project.settle(tags=[tag("OLD")])
    with Path("/dev/full").open("w") as full:
        done = ended(project.start(*command.replace("OLD", "tag/OLD").split(), stdout=full))
    assert (done.code, "error[output]: the output cannot be written" in done.err) == (1, True), done.err


def test_a_selection_that_names_nothing_is_a_usage_error(project: Project) -> None:
    """With the nearest address; a name without its kind is told with it."""
    project.settle(tags=[tag("ACME-1")])
    for option in ("--target", "--exclude"):
        for name, hint in (("ACME-1", "tag/ACME-1"), ("tag/ACME-2", "tag/ACME-1"), ("tag/X*", "matches no resource")):
            for command in (("plan",), ("apply", "-y")):
                refused = project.run(*command, option, name)
                assert (refused.code, hint in refused.err) == (64, True), refused.err
    assert project.run("plan", "--target", "tag/ACME-*").code == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", "{" + '"a":{' * 9 + "}" * 10, "[" * 50_000, "x"])
def test_nothing_is_taken_for_a_saved_plan_or_for_a_path(project: Project, content: str) -> None:
    """An empty file, or one of JSON that is no plan: neither "complete" nor a defect of ours."""
    project.wants(tags=[tag("ACME-1")])
    (project.folder / "plan.json").write_text(content)
    done = project.run("apply", "plan.json", "-y")
    reason = "neither a saved plan nor a manifest" if content else "plan.json is empty"
    assert (done.code, reason in done.err) == (64, True), done.err
    shown = project.run("show", "plan.json")
    assert (shown.code, "error[plan-file]" in shown.err) == (1, True), shown.err


def test_a_plan_as_deep_as_it_likes_is_no_defect_of_ours(project: Project) -> None:
    """Told in a sentence by both commands that read plans."""
    project.wants(tags=[tag("ACME-1")])
    deep = '{"format":"syncengine.plan/v1","execution":' + '{"plan":' * 50_000 + "1" + "}" * 50_000
    digest = hashlib.sha256(deep.encode()).hexdigest()
    (project.folder / "plan.json").write_text(f'{deep},"digest":"{digest}"}}')
    for command in ("apply", "show"):
        done = project.run(command, "plan.json")
        assert (done.code, "error[plan-file]" in done.err) == (1, True), done.err


@pytest.mark.parametrize("place", ["plan.json", "syncengine.yaml", "manifests/pipe.yaml"])
def test_a_pipe_where_a_file_should_be_is_told(project: Project, place: str) -> None:
    """It would be waited for without an end."""
    project.wants(tags=[tag("ACME-1")])
    (project.folder / place).unlink(missing_ok=True)
    os.mkfifo(project.folder / place)
    for command in (("apply", "-y", "plan.json"), ("show", "plan.json")) if place == "plan.json" else (("plan",),):
        done = project.run(*command)
        assert done.code in (1, 8, 64), done.err
        assert "internal" not in done.err


EVERYWHERE = [("plan",), ("validate",), ("apply", "-y"), ("state", "list"), ("time", "list"), ("connector", "check")]


@pytest.mark.parametrize("command", EVERYWHERE, ids=" ".join)
def test_without_a_project_every_command_says_the_same(project: Project, command: tuple[str, ...]) -> None:
    """And how to begin one; nothing is made."""
    empty = project.folder / "empty"
    empty.mkdir()
    (empty / ".git").mkdir()
    done = project.run(*command, cwd=empty)
    assert (done.code, "run `syncengine init` to create one" in done.out + done.err) == (8, True), done
    assert [path.name for path in empty.iterdir()] == [".git"]


def test_a_project_is_found_from_a_folder_below_it(project: Project) -> None:
    """As Git finds a repository, and no further than that reaches; PATHS are those of the current folder."""
    project.wants(tags=[tag("ACME-1")])
    below = project.folder / "manifests"
    assert project.run("plan", "all.yaml", "--format", "json", cwd=below).document["summary"]["create"] == 1
    assert project.run("apply", "-y", cwd=below).code == 0
    assert (project.folder / ".syncengine" / "state.db").exists()
    assert project.run("plan", cwd=project.folder).out.startswith("No changes")


def test_a_project_that_only_delivers_time_needs_no_manifests(project: Project) -> None:
    """It plans nothing; where the state tells of manifests, their folder is missed."""
    time = "postedTime: {mode: fetch, deliver: [{name: file, jsonl: {path: out/time.jsonl}}]}"
    project.settings(time)
    assert project.run("validate").code == 0
    assert project.run("plan").code == 0
    project.settle(tags=[tag("ACME-1")])
    shutil.rmtree(project.folder / "manifests")
    refused = project.run("plan", "--format", "json")
    assert (refused.code, refused.codes) == (8, ["missing-manifests"])


def test_a_saved_plan_of_nothing_is_applied_as_often_as_one_likes(project: Project) -> None:
    """It uses nothing up."""
    project.settle(tags=[tag("ACME-1")])
    assert project.run("plan", "--out", "saved.plan").code == 0
    assert [project.run("apply", "saved.plan").code for _ in range(3)] == [0, 0, 0]


def in_shell(project: Project, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, in which `syncengine` is the program, in the project's folder."""
    program = f'syncengine() {{ {shlex.join(PROGRAM)} "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"{program}; {line}"],
        cwd=project.folder,
        env=project.surroundings(),
        capture_output=True,
        text=True,
        timeout=60,
    )


PRINTING = ("plan --format json", "plan --report json=-", "plan --report json=/dev/stdout", "state list", "--help")


@pytest.mark.parametrize("words", PRINTING)
def test_data_for_a_closed_stream_is_an_error(project: Project, words: str) -> None:
    """As for a full disk: nobody has what was asked for."""
    project.settle(tags=[tag("NEW-1")])
    done = in_shell(project, f"syncengine {words} >&-")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "error[" in done.stderr


def test_an_apply_is_done_although_its_output_is_closed(project: Project) -> None:
    """It says in the end that its report is lost."""
    project.wants(tags=[tag("NEW-1")])
    done = in_shell(project, "syncengine apply -y >&-")
    assert (done.returncode, "stdout is closed" in done.stderr) == (1, True), done.stderr
    assert project.plan().changes == ()


@pytest.mark.parametrize(("to", "code"), [("/dev/full", 1), ("&-", 0)])
def test_work_is_done_although_nobody_can_be_told_of_it(project: Project, to: str, code: int) -> None:
    """A full log is said by the exit code; who closes stderr wants none."""
    project.wants(tags=[tag("NEW-1")])
    done = in_shell(project, f"syncengine apply -y 2>{to}")
    assert (done.returncode, "NEW-1" in done.stdout) == (code, True)
    assert project.plan().changes == ()


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(project: Project) -> None:
    """Without a traceback."""
    done = in_shell(project, "syncengine plan --nope --format json >/dev/full")
    assert (done.returncode, "Traceback" in done.stderr) == (64, False), done.stderr


@pytest.mark.parametrize("words", ["plan", "apply -y", "init new", "plan --nope", "sandbox"])
def test_a_folder_that_was_deleted_is_told_in_a_sentence(project: Project, words: str) -> None:
    done = in_shell(project, f"mkdir gone; cd gone; rmdir ../gone; syncengine {words}")
    assert (done.returncode, "internal" in done.stderr) == (64, False), done.stderr


@pytest.mark.parametrize(
    ("words", "format"),
    [
        ("--env apply plan --nope --format json", "syncengine.diagnostics/v1"),
        ("plan --env apply --nope --format json", "syncengine.diagnostics/v1"),
        ("--var-file apply state list --nope --format json", "syncengine.diagnostics/v1"),
        ("state apply --format json", "syncengine.diagnostics/v1"),
        ("--env plan apply --nope --format json", "syncengine.report/v1"),
        ("-C plan apply --nope --format=json", "syncengine.report/v1"),
    ],
)
def test_the_document_of_an_error_is_that_of_the_command(project: Project, words: str, format: str) -> None:
    """The value of an option, or a word of another command, is no command."""
    done = project.run(*words.split())
    assert (done.code, done.document["format"]) == (64, format)


def test_the_name_of_a_format_in_an_option_is_no_format(project: Project) -> None:
    """Not the value of another option: it is text that is printed."""
    assert project.run("plan", "--nope", "--out", "json", "--env", "json").out == ""
