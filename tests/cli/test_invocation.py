"""Options before and after the command, folders, pipes that end early, and streams that are closed or plain."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from .program import PROGRAM, Project, ended, tag


@pytest.mark.parametrize("arguments", [("-C", "project", "plan"), ("plan", "-C", "project")])
def test_another_folder_is_chosen_before_or_after_the_command(project: Project, arguments: tuple[str, ...]) -> None:
    """Global options stand where people write them."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run(*arguments, "--format", "json", cwd=project.folder.parent)
    assert (done.code, done.document["changes"][0]["source"]["file"]) == (0, "manifests/all.yaml")


def test_paths_are_those_of_the_current_folder(project: Project) -> None:
    """As the shell completes them; they select changes and nothing else."""
    project.wants("one.yaml", tags=[tag("ONE-1")])
    project.wants("two.yaml", tags=[tag("TWO-1")])
    config = ("--config", str(project.folder / "syncengine.yaml"))
    done = project.run("plan", *config, "two.yaml", "--format", "json", cwd=project.folder / "manifests")
    assert [change["address"] for change in done.document["changes"]] == ["tag/TWO-1"]


def test_a_misspelt_command_is_suggested(project: Project) -> None:
    """And a name that is near nothing is only refused."""
    assert "Did you mean 'validate'?" in project.run("valdate").err
    assert "Did you mean" not in project.run("xyzzy").err


@pytest.mark.parametrize(
    "arguments", ["valdate", "plan --formt json", "plan nowhere", "plan --report x", "show", "-C nowhere plan", "apply"]
)
def test_usage_errors_have_one_form(project: Project, arguments: str) -> None:
    """Once, whoever found it; how the command is called may stand before it."""
    done = project.run(*arguments.split())
    assert (done.code, done.err.count("error[usage]: "), "Error:" in done.err) == (64, 1, False)


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


def test_a_full_disk_is_told(project: Project) -> None:
    """The plan that could not be written whole is no success."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    project.wants(tags=[tag("NEW-1")])
    with Path("/dev/full").open("w") as full:
        done = ended(project.start("plan", stdout=full))
    assert done.code == 1
