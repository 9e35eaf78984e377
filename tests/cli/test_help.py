"""Help pages, shell completion and colour."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from syncengine.cli import SECTIONS, program
from syncengine.cli.help import COMPLETION, SEE_GLOBAL, GlobalOption
from syncengine.cli.output import is_coloured

from .program import Project, tag


def walked(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Every command and group, with its words."""
    yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walked(inner, *words, name)


LEAVES = {words: command for words, command in walked(program) if not isinstance(command, click.Group)}
PAGES = dict(walked(program))


def own(command: click.Command) -> list[click.Option]:
    """The options of a command without the global ones."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return [each for each in options if not isinstance(each, GlobalOption)]


def shared_by(command: click.Command) -> list[GlobalOption]:
    return [each for each in command.params if isinstance(each, GlobalOption)]


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


COMPLETION_PART = f"""
Shell completion for bash (for others, use zsh_source or fish_source):
  {COMPLETION}
"""


def test_the_surface_stays_small() -> None:
    """The numbers of commands and of options are limited; `--format` is not counted, and each has the global ones."""
    others = [each for command in LEAVES.values() for each in own(command) if each.name != "format"]
    assert len(LEAVES) <= 44
    assert len(others) <= 125
    shared = [each.name for each in shared_by(program)]
    assert len(shared) == 11
    for words, command in PAGES.items():
        assert [each.name for each in shared_by(command)] == shared, words


@pytest.mark.parametrize(
    "line", ["-C . {} state list", "state -C . {} list", "state list -C . {}", "state {} list -C ."]
)
def test_a_global_option_means_the_same_wherever_it_stands(project: Project, line: str) -> None:
    """`-C` and `--env` work before, between and after the words of a command."""
    project.settings("environments:", "  test: {state: test.db}")
    project.wants(tags=[tag("TEST-1")])
    assert project.run("--env", "test", "apply", "-y").code == 0
    done = project.run(*line.format("--env test").split())
    assert (done.code, "tag/TEST-1" in done.out) == (0, True), done.err


@pytest.mark.parametrize("words", PAGES)
def test_an_example_can_be_typed(words: str) -> None:
    """Each example on a help page is accepted by the command line, belongs to that command and fits in 78 columns."""
    lines = (PAGES[words].epilog or "").splitlines()
    typed, meant = lines[::2], lines[1::2]
    assert typed
    assert len(typed) == len(meant)
    for line, purpose in zip(typed, meant, strict=True):
        assert purpose.startswith("# ")
        assert max(len(line), len(purpose)) <= 78
        name, *arguments = shlex.split(line)
        command: click.Command = program
        context = program.make_context(name, arguments)
        while isinstance(command, click.Group):
            found, inner, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
            assert inner is not None
            command, context = inner, inner.make_context(found, arguments, parent=context)
        assert context.command_path.startswith(f"syncengine {words}".strip())


@pytest.mark.parametrize("words", PAGES)
def test_a_page_explains_its_own_options_and_names_the_others(project: Project, words: str) -> None:
    """Only the first page explains the global options; other pages refer to it. Each page has its examples."""
    asked = project.run(*words.split(), "--help", environ={"COLUMNS": "80"})
    page = asked.out
    assert (asked.code, asked.err) == (0, "")
    assert (page.count("\nOptions:\n"), page.count("\nExample:\n")) == (1, 1)
    assert page.endswith(f"\nExample:\n{indented(PAGES[words].epilog or '')}" + (COMPLETION_PART if not words else ""))
    assert ("--var-file" in page, f"\n{SEE_GLOBAL}\n" in page) == (not words, bool(words))
    assert all(f"{max(option.opts, key=len)}" in page for option in own(PAGES[words]))
    assert [line for line in page.splitlines() if len(line) > 80] == []
    assert [line for line in page.splitlines() if line.endswith("...") and not line.startswith("Usage")] == []


def test_the_first_page_groups_the_commands(project: Project) -> None:
    """The main commands come first; each command is in one group, in one line of 80 columns."""
    page = project.run("--help", environ={"COLUMNS": "80"}).out
    titles = ["Main", "Review", "Posted time and connector", "State", "Tools", "Options"]
    parts = re.split("|".join(f"^{title}:\n" for title in titles), page, flags=re.MULTILINE)
    listed = [re.findall(r"^  ([a-z]+)  ", part, re.MULTILINE) for part in parts[1:-1]]
    assert listed[0] == ["init", "validate", "plan", "apply"]
    assert [name for group in listed for name in group] == [name for section in SECTIONS.values() for name in section]
    assert sum(part.strip().count("\n") + 1 for part in parts[1:-1]) == sum(map(len, SECTIONS.values()))


# --- completion


def completed(project: Project, line: str) -> list[str]:
    """What bash would offer for the last word of the line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(shlex.split(line)) - (not line.endswith(" ")))}
    done = project.run(environ={"_SYNCENGINE_COMPLETE": "bash_complete", **words})
    assert (done.code, done.err) == (0, "")
    return [each.partition(",")[2] for each in done.out.splitlines() if each]


def test_addresses_of_the_state_are_completed(project: Project) -> None:
    """A blank is escaped for bash, and `%` and `_` are not wildcards."""
    project.settle(tags=[tag("ACME-0001"), tag("ACME_0002"), tag("Other matter"), tag("100%")])
    for words in ("plan --target", "apply --exclude", "state show", "state list tag/x", "state forget"):
        assert completed(project, f"syncengine {words} tag/ACME") == ["tag/ACME-0001", "tag/ACME_0002"]
    assert completed(project, "syncengine plan --target tag/ACME_") == ["tag/ACME_0002"]
    assert completed(project, "syncengine state show tag/O") == ["tag/Other\\ matter"]
    assert completed(project, "syncengine state show tag/1") == ["tag/100%"]
    assert completed(project, "syncengine state show c") == ["category/"]
    assert completed(project, "syncengine state show nothing/") == []


def test_environments_are_completed(project: Project) -> None:
    """Completion works before and after the command, and uses the folder of `-C`."""
    project.settings("environments:", "  prod: {}", "  pre: {}", "  test: {}")
    assert completed(project, "syncengine --env p") == ["prod", "pre"]
    assert completed(project, "syncengine plan --env ") == ["prod", "pre", "test"]
    assert completed(project, "syncengine -C nowhere plan --env ") == []


@pytest.mark.parametrize("harm", ["no project", "bad project", "no state", "bad state"])
def test_completion_is_never_an_error(project: Project, harm: str) -> None:
    """With a missing or broken project file or state, completion prints no message."""
    project.settle(tags=[tag("ACME-0001")])
    (project.folder / "manifests" / "all.yaml").unlink()
    file = project.folder / ("syncengine.yaml" if "project" in harm else ".syncengine/state.db")
    if harm.startswith("no"):
        file.unlink()
    else:
        file.write_bytes(b"version: [" * 100)
    known = ["tag/ACME-0001"] if harm == "no project" else []
    assert completed(project, "syncengine plan --target tag/") == known
    assert completed(project, "syncengine plan --env ") == []


def test_a_file_is_still_completed_by_the_shell(project: Project) -> None:
    words = {"COMP_WORDS": "syncengine apply pl", "COMP_CWORD": "2"}
    assert project.run(environ={"_SYNCENGINE_COMPLETE": "bash_complete", **words}).out == "file,pl\n"


# --- colour


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": ""}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_environment_then_the_terminal(
    environ: dict[str, str], terminal: bool, coloured: bool
) -> None:
    assert is_coloured(environ, terminal=terminal) is coloured


@pytest.mark.parametrize(
    ("words", "environ", "coloured"),
    [
        ("plan", {}, False),
        ("plan", {"FORCE_COLOR": "1"}, True),
        ("plan", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("plan --no-color", {"FORCE_COLOR": "1"}, False),
        ("--no-color plan", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_a_pipe_is_coloured_only_with_force_color(
    project: Project, words: str, environ: dict[str, str], coloured: bool
) -> None:
    project.wants(tags=[tag("NEW-1")])
    assert ("\x1b[" in project.run(*words.split(), environ=environ).out) is coloured


def test_a_report_in_a_file_is_never_coloured(project: Project) -> None:
    project.wants(tags=[tag("NEW-1")])
    assert project.run("apply", "-y", "--report", "text=report.txt", environ={"FORCE_COLOR": "1"}).code == 0
    assert "\x1b" not in (project.folder / "report.txt").read_text()
