"""Global options, folders, and streams: terminals, and ones that end early, are closed or only take ASCII."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE_SECONDS

from .program import PROGRAM, Ended, Project, in_shell, tag
from .service import KEY, Service

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


def test_a_reader_that_goes_away_sees_no_traceback(project: Project) -> None:
    """With `| head -1`, a command whose output is larger than a pipe's buffer ends silently. Reports are complete."""
    project.settle(tags=[tag(f"MANY-{number:05}") for number in range(1500)])
    project.wants(tags=[tag(f"MANY-{number:05}", description="new") for number in range(1500)])
    for command in ("plan -v --report json=report.json", "state list -v"):
        done = in_shell(project, f"syncengine {command} | head -1")
        assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert "tag/MANY-01499" in (project.folder / "report.json").read_text()


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
def test_other_letters_are_no_crash_in_ascii(project: Project, plain: dict[str, str], format: str) -> None:
    project.wants(tags=[tag("Übung-1", description="naïve → 日本 …")])
    done = project.run("plan", "--format", format, environ=plain)
    assert done.code == 0, done.err
    assert "bung-1" in done.out


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
def test_a_named_pipe_or_a_link_to_itself_in_place_of_a_file_is_refused(project: Project, place: str) -> None:
    """Reading the pipe would block for ever."""
    project.wants(tags=[tag("ACME-1")])
    for make in (os.mkfifo, lambda path: path.symlink_to(path.name)):
        (project.folder / place).unlink(missing_ok=True)
        make(project.folder / place)
        for command in ("apply -y plan.json", "show plan.json") if place == "plan.json" else ("plan",):
            done = project.run(*command.split())
            assert (done.code in (1, 8, 64), "internal" in done.err) == (True, False), done.err


@pytest.mark.parametrize("command", ["apply -y", "connector check"])
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


FULL, CLOSED = "error[output]: the output cannot be written", "stdout is closed"
GONE = "mkdir gone; cd gone; rmdir ../gone; syncengine"
STREAMS = [
    ("syncengine apply -y --format text | head -1; exit ${PIPESTATUS[0]}", 0, "tags: 1 of 1"),
    ("syncengine apply -y --format json | true; exit ${PIPESTATUS[0]}", 0, "tags: 1 of 1"),
    ("syncengine apply -y <&-", 0, ""),
    ("syncengine apply -y >&-", 1, CLOSED),
    ("syncengine apply -y 2>&-", 0, ""),
    ("syncengine apply -y 2>/dev/full", 1, ""),
    ("syncengine apply -y >&- 2>&-", 1, ""),
    ("syncengine plan --format json >&-", 1, CLOSED),
    ("syncengine plan --report json=/dev/stdout >&-", 1, "error["),
    ("syncengine --help >&-", 1, "error["),
    ("syncengine plan >/dev/full", 1, FULL),
    ("syncengine state show --format json tag/OLD >/dev/full", 1, FULL),
    ("syncengine plan --nope --format json >/dev/full", 64, ""),
    ("syncengine apply <&-", 64, "repeat"),
    ("syncengine state import -y - <&-", 64, "stdin is closed"),
    ("syncengine apply <(syncengine plan --out /dev/stdout -q)", 64, "not a file or folder"),
    *((f"{GONE} {words}", 64, "") for words in ("plan", "init new", "plan --nope")),
]


@pytest.mark.parametrize(("line", "code", "said"), STREAMS)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_no_stream_and_no_folder_is_a_crash(project: Project, line: str, code: int, said: str) -> None:
    """Streams may be closed, as under some daemons. An apply completes; a report or message that is lost exits with 1.
    A deleted current folder is a usage error."""
    project.settle(tags=[tag("OLD")])
    project.wants(tags=[tag("OLD"), tag("NEW-1")])
    done = in_shell(project, line)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not re.search("Traceback|internal", done.stderr), done.stderr
    assert bool(project.plan().changes) != line.startswith("syncengine apply -y")


# --- the question of `apply` on a real terminal, and its refusal without one


ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes stdin the controlling terminal of the process, so that Ctrl-C becomes a signal."""

QUESTION = "Apply this plan?"


@dataclass
class Terminal:
    """A user at a terminal that shows stderr; stdout is a pipe."""

    master: int
    process: subprocess.Popen[str]
    shown: str = ""
    typed: str = ""

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < until, self.shown
            self.shown += self._read()

    def type(self, text: str) -> None:
        self.typed = text
        os.write(self.master, text.encode())

    def ended(self) -> Ended:
        """Wait for the process. The terminal may drop input while a prompt is being set up, so it is typed again."""
        while True:
            if not select.select([self.master], [], [], 2)[0]:
                self.type(self.typed)
            elif more := self._read():
                self.shown += more
            else:
                break
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert KEY not in out + self.shown
        assert "Traceback" not in out + self.shown
        return Ended(self.process.returncode, out, self.shown)

    def _read(self) -> str:
        try:
            return os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # Linux raises this once the other end is closed
            return ""


@contextmanager
def terminal(project: Project, *arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *PROGRAM, *arguments],
        cwd=project.folder,
        env=project.surroundings({"TERM": "xterm"}),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        encoding="utf-8",
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_without_a_terminal_and_without_y_nothing_is_begun(project: Project, service: Service) -> None:
    """A pipeline must not wait for an answer, so `apply` exits with 64 and creates no state."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run("apply")
    assert (done.code, done.out) == (64, "")
    assert "review what `syncengine plan` shows, and repeat with -y" in done.err
    elsewhere = project.run("-C", "project", "apply", cwd=project.folder.parent)
    assert "review what `syncengine plan -C project` shows" in elsewhere.err
    assert not (project.folder / ".syncengine").exists()
    assert service.asked() == []


@pytest.mark.parametrize(
    ("answer", "code", "held"), [("y\n", 0, ["NEW-1"]), ("n\n", 1, []), ("\n", 1, []), ("\x03", 130, [])]
)
def test_a_person_is_asked(project: Project, service: Service, answer: str, code: int, held: list[str]) -> None:
    """Only a yes applies; any other answer sends nothing. The report says so, also after Ctrl-C."""
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "--report", "json=report.json") as person:
        person.wait_for(QUESTION)
        person.type(answer)
        done = person.ended()
    assert (done.code, service.tags()) == (code, held), done.err
    assert "Plan: 1 to create" in done.out
    assert ('"interrupted"' in (project.folder / "report.json").read_text()) == (code == 130)
    assert (project.run("plan", "--format", "json").codes == ["no-state"]) == (code != 0)
    assert not project.is_locked()


def test_the_plan_is_shown_before_the_question_even_if_the_output_is_json(project: Project) -> None:
    """The plan and its notes go to the terminal, and stdout is one JSON document. What is no answer asks again."""
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "--format", "json") as person:
        person.wait_for(QUESTION)
        assert "no-state" in person.shown.partition("NEW-1")[0]
        person.type("maybe\n")
        person.wait_for("Please answer y (yes) or n (no).")
        person.type("Yes\n")
        done = person.ended()
    assert (done.code, done.document["status"], "Error" in done.err) == (0, "complete", False)


def test_progress_and_remarks_go_to_standard_error(project: Project, service: Service) -> None:
    """Stdout is for data only."""
    service.fault("upsertTags", status=503, headers={"Retry-After": "0"})
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "-y", "-v") as person:
        done = person.ended()
    assert (done.code, "upsertTags: 503" in done.err, "Applied 1 change" in done.out) == (0, True, True)
    assert "503" not in done.out
    assert "\x1b" not in done.out


def test_a_warning_is_said_once_and_the_result_last(project: Project) -> None:
    """The plan shows the warning, so the report of `apply` does not repeat it in text; in JSON it does."""
    project.wants(tags=[tag("Alpha", keywords=["same word"]), tag("Beta", keywords=["same word"])])
    done = project.run("apply", "-y")
    assert (done.code, (done.out + done.err).count("warning[same-keyword]")) == (0, 1)
    assert done.out.rstrip().splitlines()[-1].startswith("Applied 2 changes.")
    assert project.apply("--reassert").codes == ["same-keyword"]
    project.wants(tags=[tag("Alpha", category="nowhere")])
    done = project.run("apply", "-y")
    assert (done.code, "No problems found" in done.out + done.err) == (8, False)
