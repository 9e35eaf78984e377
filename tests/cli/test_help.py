"""Help pages, shell completion, colour, times, and the libraries that commands load."""

import json
import re
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import click
import pytest

from syncengine.cli import SECTIONS, program
from syncengine.cli.help import COMPLETION, SEE_GLOBAL, GlobalOption
from syncengine.cli.option_types import FutureTime, PastTime
from syncengine.cli.output import is_coloured
from tests.contract.documents import APPLY, saved_approval
from tests.contract.program import restore, surroundings

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


def test_the_surface_stays_small() -> None:
    """The numbers of commands and of options are limited; `--format` is not counted, and each has the global ones."""
    others = [each for command in LEAVES.values() for each in own(command) if each.name != "format"]
    assert len(LEAVES) <= 44
    assert len(others) <= 125
    shared = {
        words: [each.name for each in command.params if isinstance(each, GlobalOption)]
        for words, command in PAGES.items()
    }
    assert len(shared[""]) == 11
    assert [words for words in shared if shared[words] != shared[""]] == []


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
    example = textwrap.indent(PAGES[words].epilog or "", "  ")
    completion = "\n\nShell completion for bash (for others, use zsh_source or fish_source):\n  " + COMPLETION
    assert page.endswith(f"\nExample:\n{example}{'' if words else completion}\n")
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
    """Completion works before and after the command, and uses the folder of `-C`. Files are left to the shell."""
    project.settings("environments:", "  prod: {}", "  pre: {}", "  test: {}")
    assert completed(project, "syncengine --env p") == ["prod", "pre"]
    assert completed(project, "syncengine plan --env ") == ["prod", "pre", "test"]
    assert completed(project, "syncengine -C nowhere plan --env ") == []
    words = {"COMP_WORDS": "syncengine apply pl", "COMP_CWORD": "2"}
    assert project.run(environ={"_SYNCENGINE_COMPLETE": "bash_complete", **words}).out == "file,pl\n"


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
def test_colour_follows_variables_then_the_terminal(environ: dict[str, str], terminal: bool, coloured: bool) -> None:
    assert is_coloured(environ, terminal=terminal) is coloured


@pytest.mark.parametrize(
    ("words", "environ", "coloured"),
    [("plan", {}, False), ("plan", {"FORCE_COLOR": "1"}, True), ("--no-color plan", {"FORCE_COLOR": "1"}, False)],
)
def test_a_pipe_has_colour_if_forced(project: Project, words: str, environ: dict[str, str], coloured: bool) -> None:
    """A report in a file never is."""
    project.wants(tags=[tag("NEW-1")])
    assert ("\x1b[" in project.run(*words.split(), "--report", "text=r.txt", environ=environ).out) is coloured
    assert "\x1b" not in (project.folder / "r.txt").read_text()


# --- `--since`, `--before` and `--until`, in any time zone


KINDS = {"since": PastTime, "before": PastTime, "until": FutureTime}
TIMES = {
    words: option
    for words, command in walked(program)
    for option in own(command)
    if option.name in KINDS and option.metavar != "FILE"
}


def test_every_command_takes_times_alike() -> None:
    """Their options have the same type and placeholder. Only `plan --since` takes a file instead."""
    time_commands = {f"time {name}" for name in ("list", "inbox", "retry", "audit", "export")}
    assert set(TIMES) == {"drift", "state prune", "state quarantine"} | time_commands
    for option in TIMES.values():
        assert (type(option.type), option.metavar) == (KINDS[option.name or ""], "T")
        assert "7d or 36h" in (option.help or "")
        assert "UTC" in (option.help or "")


def past(text: str) -> float:
    return PastTime().convert(text, None, None)


def future(text: str) -> float:
    return FutureTime().convert(text, None, None)


def test_a_duration_counts_from_now() -> None:
    """It counts back for a past time and forward for a future one."""
    now = time.time()
    for text, hours in {"7d": 168, "36h": 36, "90m": 1.5, "1.5h": 1.5}.items():
        assert past(text) == pytest.approx(now - 3600 * hours, abs=5)
        assert future(text) == pytest.approx(now + 3600 * hours, abs=5)


@pytest.mark.parametrize(
    ("read", "text", "instant"),
    [
        (past, "2024-02-29", "2024-02-29T00:00:00+00:00"),
        (past, "2024-02-29T09:00:00Z", "2024-02-29T09:00:00+00:00"),
        (past, "2024-02-29t09:00:00.5+01:30", "2024-02-29T07:30:00.5+00:00"),
        (past, "2024-02-29T09:00:00", "2024-02-29T09:00:00+00:00"),
        (past, "2024-02-29T09:00", "2024-02-29T09:00:00+00:00"),
        (future, "2999-12-31", "3000-01-01T00:00:00+00:00"),
        (future, "2999-12-31T09:00:00Z", "2999-12-31T09:00:00+00:00"),
    ],
)
def test_a_date_is_in_utc_unless_it_says_otherwise(read: Callable[[str], float], text: str, instant: str) -> None:
    """A date means the start of its day, and after `--until` and in the project file's `quarantine` its end."""
    assert read(text) == datetime.fromisoformat(instant).timestamp()


def test_the_zone_of_the_computer_does_not_matter(project: Project) -> None:
    """The same command has the same meaning in a CI job and on a user's computer."""
    project.settle()
    words = ("state", "prune", "--before", "2024-03-01", "--dry-run", "--format", "json")
    for zone in ({}, {"TZ": "America/New_York"}):
        assert project.run(*words, environ=zone).document["before"].startswith("2024-03-01T00:00:00")


NO_TIMES = ("7", "-3d", "soon", "20240229", "2024-02-30", "2024-02-29T25:00:00Z", "2024-W05-1", "1709164800", "7d ")
FORMS = "write a duration (7d, 36h), a date (2026-01-31) or an instant (2026-01-31T09:00:00Z)"
REFUSED = [
    *((read, text, f"{text!r} is not a time: {FORMS}") for read in (past, future) for text in NO_TIMES),
    (past, "2999-01-01", "2999-01-01 is in the future"),
    (future, "2024-02-29", "2024-02-29 is in the past"),
    (future, "99999999d", "is after the year 9999"),
    *((read, "0d", "'0d' must be longer than zero") for read in (past, future)),
]
"""Seven seconds would find nothing and look like success; with a wrong year a command would prune everything."""


@pytest.mark.parametrize(("read", "text", "says"), REFUSED)
def test_what_is_no_such_time_is_refused(read: Callable[[str], float], text: str, says: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        read(text)
    assert says in refused.value.message


# --- commands do not load libraries that they do not need, of which each takes longer than a plan of ten tags


HEAVY = {"jinja2", "ruamel.yaml", "httpx", "h11", "sqlalchemy", "deepdiff", "starlette", "uvicorn", "rich"}
PLAIN = "tags:\n" + "".join(f"  - {{name: Matter {n:04}, keywords: [docket {n:04}]}}\n" for n in range(600))
"""Large enough that the fast reader and the cache are used."""
PROGRAM = """\
import json, sys
from syncengine.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code or 0, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that are loaded when the program ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environ = surroundings(folder)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, 1, 2, 3, 4), done.stderr
    return set(modules)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "m.yaml").write_text(PLAIN)
    return tmp_path


@pytest.mark.parametrize("words", ["--version", "plan --help", "plan --sandbox", "validate"])
def test_nothing_heavy_is_loaded(folder: Path, words: str) -> None:
    """Neither without nor with a cache; not even pydantic for help, and SQLAlchemy only for a state."""
    is_help = words in ("--version", "plan --help")
    for _ in range(1 if is_help else 2):
        found = loaded(folder, *words.split())
        assert found & HEAVY == ({"sqlalchemy"} if "sandbox" in words else set())
        assert ("pydantic" in found) == (not is_help)


def test_a_csv_block_loads_templates_but_no_http_client(folder: Path) -> None:
    """A manifest that generates tags from CSV loads jinja2, but neither httpx nor ruamel.yaml."""
    (folder / "r.csv").write_text("n\nAlpha\n")
    block = "generate:\n  - forEach: {csv: ../r.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
    (folder / "manifests" / "g.yaml").write_text(block)
    found = loaded(folder, "plan", "--sandbox")
    assert "jinja2" in found
    assert found.isdisjoint({"ruamel.yaml", "httpx"})


@pytest.mark.slow
def test_only_showing_a_changed_group_loads_deepdiff(tmp_path: Path) -> None:
    """All load pydantic, to validate files, posted groups or requests."""
    folder = restore(tmp_path, "planned")
    approved = [*APPLY, saved_approval(), "saved.plan"]
    for words in (["state", "list"], ["time", "inbox"], ["time", "show", "g-changed"], approved):
        found = loaded(folder, *words)
        assert ("pydantic" in found, "deepdiff" in found) == (True, words[-1] == "g-changed"), words
