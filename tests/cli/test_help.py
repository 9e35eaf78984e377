"""Help pages, shell completion, colour, and times, which all commands read alike."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click
import pytest

from syncengine.cli import SECTIONS, program
from syncengine.cli.help import COMPLETION, SEE_GLOBAL, GlobalOption
from syncengine.cli.option_types import FutureTime, PastTime
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


# --- `--since`, `--before` and `--until`, in any time zone


KINDS = {"since": PastTime, "before": PastTime, "until": FutureTime}
TIMES = {
    words: (option, command)
    for words, command in walked(program)
    for option in own(command)
    if option.name in KINDS and option.metavar != "FILE"
}
DAY = 86_400


def value_of(kind: type[PastTime], text: str) -> float:
    return kind().convert(text, None, None)


def test_every_command_takes_times_alike() -> None:
    """Their options have the same type and placeholder. Only `plan --since` takes a file instead."""
    time_commands = {f"time {name}" for name in ("list", "inbox", "retry", "audit", "export")}
    assert set(TIMES) == {"drift", "state prune", "state quarantine"} | time_commands
    for option, _ in TIMES.values():
        assert (type(option.type), option.metavar) == (KINDS[option.name or ""], "T")
        assert "7d or 36h" in (option.help or "")
        assert "UTC" in (option.help or "")


@pytest.mark.parametrize(("text", "seconds"), [("7d", 7 * DAY), ("36h", 1.5 * DAY), ("90m", 5400), ("1.5h", 5400)])
def test_a_duration_counts_from_now(text: str, seconds: float) -> None:
    """It counts back for a past time and forward for a future one."""
    now = time.time()
    assert value_of(PastTime, text) == pytest.approx(now - seconds, abs=5)
    assert value_of(FutureTime, text) == pytest.approx(now + seconds, abs=5)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29T09:00:00Z", "2024-02-29T09:00:00+00:00"),
        ("2024-02-29t09:00:00.5+01:30", "2024-02-29T07:30:00.5+00:00"),
        ("2024-02-29T09:00:00", "2024-02-29T09:00:00+00:00"),
        ("2024-02-29T09:00", "2024-02-29T09:00:00+00:00"),
    ],
)
def test_a_date_or_an_instant_is_in_utc_unless_it_says_otherwise(text: str, instant: str) -> None:
    """A date means the start of its day, and after `--until` and in the project file's `quarantine` its end."""
    assert value_of(PastTime, text) == datetime.fromisoformat(instant).timestamp()
    assert value_of(FutureTime, "2999-12-31") == datetime(3000, 1, 1, tzinfo=UTC).timestamp()
    assert value_of(FutureTime, "2999-12-31T09:00:00Z") == datetime(2999, 12, 31, 9, tzinfo=UTC).timestamp()


def test_the_zone_of_the_computer_does_not_matter(project: Project) -> None:
    """The same command has the same meaning in a CI job and on a user's computer."""
    project.settle()
    words = ("state", "prune", "--before", "2024-03-01", "--dry-run", "--format", "json")
    for zone in ({}, {"TZ": "America/New_York"}):
        assert project.run(*words, environ=zone).document["before"].startswith("2024-03-01T00:00:00")


WRONG = ("7", "-3d", "soon", "20240229", "2024-02-30", "2024-02-29T25:00:00Z", "2024-W05-1", "1709164800", "7d ")


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("kind", [PastTime, FutureTime])
def test_anything_else_is_refused_in_one_sentence(kind: type[PastTime], text: str) -> None:
    """A number without a unit is refused too, because seven seconds would find nothing and look like success."""
    with pytest.raises(click.BadParameter) as refused:
        value_of(kind, text)
    assert refused.value.message == (
        f"{text!r} is not a time: write a duration (7d, 36h), a date (2026-01-31) or an instant (2026-01-31T09:00:00Z)"
    )


MISPLACED: list[tuple[type[PastTime], str, str]] = [
    (PastTime, "2999-01-01", "2999-01-01 is in the future"),
    (FutureTime, "2024-02-29", "2024-02-29 is in the past"),
    (FutureTime, "99999999d", "is after the year 9999"),
    (PastTime, "0d", "'0d' must be longer than zero"),
    (FutureTime, "0d", "'0d' must be longer than zero"),
]


@pytest.mark.parametrize(("kind", "text", "says"), MISPLACED)
def test_a_time_on_the_wrong_side_of_now_is_refused(kind: type[PastTime], text: str, says: str) -> None:
    """With a wrong year a command would find no drift, prune everything or end a quarantine at once."""
    with pytest.raises(click.BadParameter, match=says):
        value_of(kind, text)


@pytest.mark.parametrize("words", TIMES)
def test_every_command_refuses_alike(project: Project, words: str) -> None:
    """The message is the same for each command; an empty value is reported as empty."""
    option, _ = TIMES[words]
    for text, says in (("7", "'7' is not a time: write a duration"), ("", " is empty, perhaps because a variable")):
        done = project.run(*words.split(), option.opts[0], text)
        assert (done.code, says in done.err, f"syncengine {words}" in done.err) == (64, True, True), done.err
        assert "reviewed plan" not in done.err
