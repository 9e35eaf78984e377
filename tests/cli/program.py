"""Runs the program in a project's folder."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncengine.plan.model import Plan
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.load import load_project
from syncengine.project.model import Project as Settings
from syncengine.state.store import open_state
from tests.support import warm
from tests.support.git import commit_all, git

from .service import KEY, Json, Service

PROGRAM = [sys.executable, "-m", "syncengine"]
SECTIONS = ("tagCategories", "activityTypes", "tags", "removed")
TIMEOUT_SECONDS = 60.0
REPOSITORY = Path(__file__).parents[2]


class Ended(warm.Ended):
    """The exit code and output of a process, as JSON where it is."""

    @property
    def document(self) -> Json:
        """The standard output, parsed as one JSON document."""
        document: Json = json.loads(self.out)
        return document

    @property
    def codes(self) -> list[str]:
        """The codes of the diagnostics in the document."""
        return [diagnostic["code"] for diagnostic in self.document["diagnostics"]]

    def outcomes(self) -> dict[str, str]:
        return {result["address"]: result["outcome"] for result in self.document["results"]}


@dataclass
class Project:
    """A folder with a project file, in which the program is started."""

    folder: Path
    url: str
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings()

    def settings(self, *lines: str, service: tuple[str, ...] = ()) -> None:
        """Write the project file. `service` adds lines to the service section, `lines` are appended."""
        head = ["version: 1", "service:", f"  baseUrl: {self.url}", "  apiKey: {env: SYNCENGINE_API_KEY}"]
        # A call with an unknown outcome counts as executed at once, unless the test sets `landing`.
        given = {line.partition(":")[0] for line in service}
        usual = (line for line in ("timeout: 10s", "landing: 0s") if line.partition(":")[0] not in given)
        text = [*head, *(f"  {line}" for line in (*usual, *service)), *lines]
        (self.folder / "syncengine.yaml").write_text("\n".join(text) + "\n", encoding="utf-8")

    def wants(self, file: str = "all.yaml", /, **sections: list[Json]) -> None:
        """Write a manifest with one resource per line; the first resource is in line 2."""
        manifests = self.folder / "manifests"
        manifests.mkdir(exist_ok=True)
        lines: list[str] = []
        for section in SECTIONS:
            if sections.get(section):
                lines += [f"{section}:", *(f"  - {json.dumps(item)}" for item in sections[section])]
        (manifests / file).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def surroundings(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of the program; it inherits only the paths to programs and to this package."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "SYNCENGINE_API_KEY": KEY,
            **self.environ,
            **(given or {}),
        }

    def start(self, *arguments: str, environ: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
        """Start a new process; the caller ends it with `ended`. Most tests need no more than `fork`."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(
            [*PROGRAM, *arguments], env=self.surroundings(environ), encoding="utf-8", **{"cwd": self.folder, **streams}
        )

    def fork(self, *arguments: str) -> warm.Started:
        """Start the program in a forked process; the caller ends it with `ended`. Its output goes to files."""
        streams = Path(tempfile.mkdtemp(dir=self.folder.parent))
        out, err = streams / "out", streams / "err"
        return warm.Started(arguments, folder=self.folder, environ=self.surroundings(), log=out, errors=err)

    def fork_apply(self, *arguments: str) -> warm.Started:
        return self.fork("apply", "-y", "--format", "json", *self.approvals(), *arguments)

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ended:
        """Run the program until it ends, in the project's folder or in `cwd`."""
        surroundings = self.surroundings(environ)
        return _checked(Ended(*warm.run(arguments, folder=cwd or self.folder, environ=surroundings)))

    def apply(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Ended:
        """Run `apply` with JSON output and with the approval that the gate asks for, if any."""
        return self.run("apply", "-y", "--format", "json", *self.approvals(), *arguments, environ=environ)

    def apply_unapproved(self, *arguments: str) -> Ended:
        """Run `apply` with JSON output and no other approval than that of the arguments or of the project file."""
        return self.run("apply", "-y", "--format", "json", *arguments)

    def gate(self, *arguments: str) -> Json:
        """The gate of the plan that the program prints."""
        done = self.run("plan", "--format", "json", *arguments)
        assert done.code == 0, (done.out, done.err)
        gate: Json = done.document["gate"]
        return gate

    def kill_during(self, service: Service, operation: str, *arguments: str, after: int = 0) -> None:
        """Run the program, and kill it while it waits for the answer to an operation, of which it got `after` before.
        The service has executed that call, too."""
        calls = service.asked().count(operation) + after + 1
        service.fault(operation, after=after, times=None, delay=60)
        process = self.fork(*arguments)
        service.wait_for(operation, calls)
        process.kill()
        assert ended(process).code == -signal.SIGKILL
        service.heal()

    def approvals(self) -> tuple[str, ...]:
        asked = self.plan().gate.approve
        return ("--approve-deletes", asked) if asked else ()

    def begin_git(self, *ignored: str) -> None:
        """Make the folder a Git repository, on branch `main`, that ignores these files."""
        git(self.folder, "init", "-q", "-b", "main")
        (self.folder / ".gitignore").write_text("".join(f"{pattern}\n" for pattern in ignored))

    def commit(self, file: str = "all.yaml", /, **sections: list[Json]) -> str:
        """Write the manifest, commit all files, and return the commit."""
        self.wants(file, **sections)
        return commit_all(self.folder)

    def loaded(self) -> Settings:
        return load_project(folder=self.folder, environ=self.surroundings())

    def plan(self) -> Plan:
        """Make the plan in this process. Other tests check its output."""
        return make_plan(self.loaded(), PlanRequest("plan"), Runtime(self.surroundings()))

    def rows(self) -> dict[str, Json]:
        """The rows of the state, without their origin and without ids chosen by the service."""
        with open_state(self.loaded().state, write=False) as state:
            return {
                str(row.key): {
                    "status": row.status.value,
                    "doubtful": row.doubtful,
                    "fields": dict(row.body.fields),
                    "keywords": sorted(row.body.keywords),
                    "metadata": dict(row.body.metadata),
                }
                for row in state.rows()
            }

    def runs(self) -> list[Json]:
        """The runs of the history, the last one first."""
        found: list[Json] = self.run("state", "history", "--format", "json").document["runs"]
        return found

    def run_id(self, count: int = 1) -> str:
        """The id of the last run, or of the one at position `count` from the end."""
        with open_state(self.loaded().state, write=False) as state:
            return state.runs(count)[-1].id

    def is_locked(self) -> bool:
        with open_state(self.loaded().state, write=False) as state:
            return state.current_lock() is not None

    def age(self, days: float) -> None:
        """Move everything in the state's history back by these days and a second, as plans have whole seconds."""
        columns = [("state_calls", "at"), ("state_marks", "at"), ("state_runs", "started"), ("state_runs", "ended")]
        with closing(sqlite3.connect(self.folder / ".syncengine" / "state.db")) as connection, connection:
            for table, column in columns:
                connection.execute(f"UPDATE {table} SET {column} = {column} - ?", (days * 86_400 + 1,))

    def settle(self, **sections: list[Json]) -> None:
        """Write the manifest and apply it, as the starting point of a test."""
        self.wants(**sections)
        done = self.apply()
        assert done.code == 0, (done.out, done.err)

    def files(self) -> dict[str, bytes]:
        """The path and content of each file under the project."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}


def ended(process: subprocess.Popen[str] | warm.Started) -> Ended:
    """Wait for the process. Its output must never contain a traceback or the API key."""
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    return _checked(Ended(process.wait(), out or "", err or ""))


def read_until(process: warm.Started, words: str) -> str:
    """Wait until the process has written these words to standard error, and return all that it wrote there."""
    is_over, text = False, ""
    while words not in text:
        assert not is_over, f"it ended after {text!r}"
        time.sleep(0.01)
        is_over = process.poll() is not None
        text = process.errors.read_text("utf-8") if process.errors.exists() else ""
    return text


def in_shell(project: Project, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in the project's folder, with `syncengine` as the program."""
    command = ["bash", "-c", f'syncengine() {{ {shlex.join(PROGRAM)} "$@"; }}; {line}']
    environ = project.surroundings()
    return subprocess.run(command, cwd=project.folder, env=environ, capture_output=True, text=True, timeout=60)


def _checked(done: Ended) -> Ended:
    assert "Traceback" not in done.out + done.err, done.err
    assert KEY not in done.out + done.err
    return done


def tag(name: str, **given: Any) -> Json:
    return {"name": name, **given}


def category(external_id: str, **given: Any) -> Json:
    return {"externalId": external_id, "label": f"Label of {external_id}", **given}


def activity_type(code: str, **given: Any) -> Json:
    return {"code": code, "label": f"Label of {code}", "enableIfNew": True, **given}
