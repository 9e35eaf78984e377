"""Help, completion and colour: what a newcomer meets first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

import click
import pytest

from syncengine.cli.command_table import program
from syncengine.cli.help import EXAMPLES
from syncengine.cli.output import is_coloured

from .program import Ended, Project, tag


def paths(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield words
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from paths(command, (*words, name)) if isinstance(command, click.Group) else [(*words, name)]


COMMANDS = [" ".join(words) for words in paths(program)]


def test_every_command_has_an_example() -> None:
    """And no example is left over."""
    assert set(COMMANDS) == set(EXAMPLES)


@pytest.mark.parametrize("words", EXAMPLES)
def test_an_example_can_be_typed(words: str) -> None:
    """It is a line of that command which the command line takes: no option in it is wrong."""
    name, *arguments = shlex.split(EXAMPLES[words].line)
    command, context = program, program.make_context(name, arguments)
    while isinstance(command, click.Group):
        found, inner, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        assert inner is not None
        command, context = inner, inner.make_context(found, arguments, parent=context)
    assert context.command_path.startswith(f"syncengine {words}".strip())


GROUPS = ("state", "connector", "health", "time")


@pytest.mark.parametrize("words", COMMANDS)
def test_help_tells_own_and_global_options_apart(project: Project, words: str) -> None:
    """The own ones first; in either way to ask for it."""
    asked = project.run(*words.split(), "--help")
    page = asked.out
    assert (asked.code, asked.err) == (0, "")
    assert (page.count("\nOptions:\n"), page.count("\nExample:\n")) == (1, 1)
    own, _, shared = page.partition("\nGlobal options:\n")
    assert ("--help" in own, "--var-file" in own) == (True, False)
    if words not in (*GROUPS, "help"):
        assert "--var-file" in shared
    assert EXAMPLES[words].line in page
    assert project.run("help", *words.split()).out == page


@pytest.mark.parametrize("words", GROUPS)
def test_no_summary_of_a_command_is_cut(project: Project, words: str) -> None:
    """The first sentence of each help page fits into a line of 80 columns."""
    page = project.run(words, "--help", environ={"COLUMNS": "80"}).out
    assert [line for line in page.splitlines() if line.endswith("...") and not line.startswith("Usage")] == []


@pytest.mark.parametrize("words", [("aply",), ("plan", "now"), ("time", "pul")])
def test_help_of_nothing_is_a_usage_error(project: Project, words: tuple[str, ...]) -> None:
    done = project.run("help", *words)
    assert (done.code, done.err.count("error[usage]: ")) == (64, 1)
    assert words[0] != "aply" or "Did you mean 'apply'?" in done.err


# --- completion


def completed(project: Project, line: str, **environ: str) -> list[str]:
    """What bash would offer for the last word of the line."""
    done: Ended = project.run(
        environ={
            "_SYNCENGINE_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(shlex.split(line)) - (not line.endswith(" "))),
            **environ,
        }
    )
    assert (done.code, done.err) == (0, "")
    return [each.partition(",")[2] for each in done.out.splitlines() if each]


def test_addresses_of_the_state_and_of_manifests_are_completed(project: Project) -> None:
    """What is recorded and what is new; a blank is escaped as bash needs it, `%` and `_` are letters."""
    project.settle(tags=[tag("ACME-0001"), tag("ACME_0002"), tag("Other matter"), tag("100%")])
    project.wants(tags=[tag("ACME-0001"), tag("ACME-0003")])
    for words in ("plan --target", "apply --exclude", "state show", "state list tag/x", "state forget"):
        assert completed(project, f"syncengine {words} tag/ACME") == ["tag/ACME-0001", "tag/ACME-0003", "tag/ACME_0002"]
    assert completed(project, "syncengine plan --target tag/ACME_") == ["tag/ACME_0002"]
    assert completed(project, "syncengine state show tag/O") == ["tag/Other\\ matter"]
    assert completed(project, "syncengine state show tag/1") == ["tag/100%"]
    assert completed(project, "syncengine state show c") == ["category/"]
    assert completed(project, "syncengine state show nothing/") == []


def test_environments_are_completed(project: Project) -> None:
    """Before and after the command, in another folder too."""
    project.settings("environments:", "  prod: {}", "  pre: {}", "  test: {}")
    assert completed(project, "syncengine --env p") == ["prod", "pre"]
    assert completed(project, "syncengine plan --env ") == ["prod", "pre", "test"]
    assert completed(project, "syncengine -C nowhere plan --env ") == []


@pytest.mark.parametrize("harm", ["no project", "bad project", "no state", "bad state", "bad manifest"])
def test_completion_is_never_an_error(project: Project, harm: str) -> None:
    """Whatever state a folder is in, nothing but addresses is printed."""
    project.settle(tags=[tag("ACME-0001")])
    (project.folder / "manifests" / "all.yaml").unlink()
    state = project.folder / ".syncengine" / "state.db"
    if harm == "no project":
        (project.folder / "syncengine.yaml").unlink()
    elif harm == "bad project":
        (project.folder / "syncengine.yaml").write_text("version: [")
    elif harm == "no state":
        state.unlink()
    elif harm == "bad state":
        state.write_bytes(b"no database" * 100)
    else:
        project.wants(tags=[{"nme": "x"}])
    known = ["tag/ACME-0001"] if harm in ("no project", "bad manifest") else []
    assert completed(project, "syncengine plan --target tag/") == known
    assert completed(project, "syncengine plan --env ") == []


def test_a_file_is_still_completed_by_the_shell(project: Project) -> None:
    done = project.run(
        environ={"_SYNCENGINE_COMPLETE": "bash_complete", "COMP_WORDS": "syncengine apply pl", "COMP_CWORD": "2"}
    )
    assert done.out == "file,pl\n"


# --- colour


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "coloured"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"FORCE_COLOR": ""}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_option_then_the_environment_then_the_terminal(
    choice: str, environ: dict[str, str], terminal: bool, coloured: bool
) -> None:
    assert is_coloured(choice, environ, terminal=terminal) is coloured


@pytest.mark.parametrize(
    ("arguments", "environ", "coloured"),
    [
        (("plan",), {}, False),
        (("plan", "--color", "always"), {}, True),
        (("--color", "always", "plan"), {}, True),
        (("--color", "always", "plan", "--no-color"), {}, False),
        (("plan",), {"FORCE_COLOR": "1"}, True),
        (("plan", "--no-color"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_a_pipe_is_coloured_only_where_that_is_asked_for(
    project: Project, arguments: tuple[str, ...], environ: dict[str, str], coloured: bool
) -> None:
    project.wants(tags=[tag("NEW-1")])
    assert ("\x1b[" in project.run(*arguments, environ=environ).out) is coloured


def test_a_report_in_a_file_is_never_coloured(project: Project) -> None:
    project.wants(tags=[tag("NEW-1")])
    assert project.run("apply", "-y", "--color", "always", "--report", "text=report.txt").code == 0
    assert "\x1b" not in (project.folder / "report.txt").read_text()
    assert os.linesep in (project.folder / "report.txt").read_text()
