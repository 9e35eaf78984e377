"""Writes the folder `today` again with the current program: `python -m tests.contract.making`.

Do so only where a format was changed on purpose and its version was raised: these files stand for what users have.
"""

import json
import re
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.program import keep, lay_out, restore, run, surroundings
from tests.support import loopback, warm
from tests.support.waiting import eventually

GROUPS: list[dict[str, Any]] = [
    {"groupId": "g-posted", "tag": "ACME-0042", "description": "Reply to the examiner", "totalDurationSecs": 3600},
    {"groupId": "g-untagged", "totalDurationSecs": 600},
    {"groupId": "g-unknown", "tag": "Old name", "totalDurationSecs": 900},
    {"groupId": "g-away", "tag": "M-001", "description": "away", "totalDurationSecs": 1800},
    {"groupId": "g-changed", "tag": "M-001", "description": "as first posted", "totalDurationSecs": 60},
]
CHANGED = {**GROUPS[-1], "description": "as posted again", "totalDurationSecs": 120}


def main() -> None:
    for situation in (planned, interrupted):
        with tempfile.TemporaryDirectory(prefix="contract-") as folder:
            project = Path(folder).resolve() / "project"
            project.mkdir()
            situation(project)


def planned(folder: Path) -> None:
    lay_out(folder, "before")
    done(run(folder, "connector", "register"))
    targets = ("--target", "category/clients", "--target", "tag/ACME-0042")
    done(run(folder, "apply", "-y", *targets, "--report", "json=report.json"))
    done(run(folder, "apply", "-y"))
    done(run(folder, "time", "register"))
    for groups in (GROUPS, [CHANGED]):
        with service(folder) as url:
            tell(url, "settings", {"holdSeconds": 0})
            tell(url, "posted-time", {"groups": groups})
        done(run(folder, "time", "pull"))
    done(run(folder, "time", "retry", "g-away"), 3)
    lay_out(folder, "after")
    done(run(folder, "plan", "--out", "saved.plan"))
    done(run(folder, "state", "export", "-o", "exported.jsonl"))
    (folder / "saved.plan").chmod(0o644)
    keep(folder, "planned", "saved.plan", "exported.jsonl", "report.json")


def interrupted(folder: Path) -> None:
    """Calls that a killed run left at the service, recorded by a later run that did not wait for them."""
    restore(folder, "planned")
    state = ".syncengine/sandbox/state.db"
    with service(folder) as url:
        there = {"SYNCENGINE_BASE_URL": url, "SYNCENGINE_STATE": state}
        done(run(folder, "state", "rebind", "-y", **there))
        for operation in ("upsertTags", "completeSyncSession"):
            kill(folder, url, operation, there)
        done(run(folder, *approved(folder, there), **there))  # without waiting for calls that may still land
    keep(folder, "interrupted", url=url)


def start(folder: Path, *arguments: str, **environ: str) -> warm.Started:
    log = Path(tempfile.mkdtemp(dir=folder.parent)) / "log"
    return warm.Started(arguments, folder=folder, environ=surroundings(folder, **environ), log=log)


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """The base URL of a sandbox that runs in a process of its own on the project's data."""
    process = start(folder, "sandbox", "--port", "0")
    yield eventually(lambda: re.search(r"http://\S+", process.log.read_text()) if process.log.exists() else None)[0]
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def kill(folder: Path, url: str, operation: str, there: dict[str, str]) -> None:
    tell(url, "faults", [{"operation": operation, "late": {}}])
    process = start(folder, *approved(folder, there), **there)
    late = url.replace("/connect/api", "/sandbox/late")
    eventually(lambda: operation in {each["operation"] for each in loopback.get(late).json()["late"]})
    process.kill()
    process.wait(60)


def approved(folder: Path, there: dict[str, str]) -> tuple[str, ...]:
    asked = json.loads(run(folder, "plan", "--format", "json", **there).out)["gate"]["approve"]
    approval = ("--approve-deletes", asked) if asked else ()
    return ("apply", "-y", "--lock-timeout", "0s", *approval, "--format", "json")


def tell(url: str, path: str, body: object) -> None:
    answer = loopback.post(url.replace("/connect/api", f"/sandbox/{path}"), json=body)
    assert answer.status_code == 200, answer.text


def done(ended: warm.Ended, *codes: int) -> None:
    assert ended.code in (codes or (0,)), ended


if __name__ == "__main__":
    main()
