"""One JSON document of each published format, and several of formats that show a state, an inbox or a saved plan.

The command line makes each from files in the folder `today`, so that all but new times and ids is the same byte for
byte.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.contract.program import TODAY, restore, run

LONG_AGO = ("--since", "90000d")


@dataclass(frozen=True)
class Case:
    """A command in a situation.

    `APPROVED` among `words` stands for the approval that the plan asks for. `fresh`: the document has new times and
    ids, which are replaced. `without`: files of the situation to leave out.
    """

    words: tuple[str, ...]
    code: int = 0
    fresh: bool = False
    situation: str = "planned"
    without: tuple[str, ...] = ()

    def document(self, folder: Path) -> str:
        """The document that the command makes in the situation, laid out in a new folder."""
        folder.mkdir()
        restore(folder, self.situation, *self.without)
        words = self.words
        if "APPROVED" in words:
            asked: str = json.loads(run(folder, "plan", *JSON).out)["gate"]["approve"]
            words = tuple(asked if word == "APPROVED" else word for word in words)
        ended = run(folder, *words)
        assert ended.code == self.code, (words, ended)
        text = ended.out.replace(str(folder), "/project")
        for pattern, word in ALIKE if self.fresh else ():
            text = pattern.sub(word, text)
        return text


def made(folder: Path, cases: Mapping[str, Case]) -> dict[str, str]:
    """The documents by name, each made in a subfolder of its own."""
    return {name: case.document(folder / name) for name, case in cases.items()}


def saved_approval() -> str:
    with (TODAY / "planned" / "saved.plan").open(encoding="utf-8") as file:
        text: str = json.load(file)["gate"]["approve"]
    return text


ALIKE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "TIME"),
    (re.compile(r"\d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r'"[0-9a-f]{12}(-[0-9a-f]{20})?"'), '"ID"'),
    (re.compile(r'"holder": \{[^}]*\}'), '"holder": {"host": "desk", "user": "robin", "pid": 1, "command": "x"}'),
    (re.compile(r'"id": "[0-9a-f]{8}"'), '"id": "ID"'),
)


JSON = ("--format", "json")
SOME = ("activity-type/A102", "category/clients", "tag/ACME-0042", "tag/Old name")
"""Resources that have each recorded field between them."""
LAST_ACCEPTED = "2026-11-28T11:56:47.905"
"""The ledger took only one group after it, which is enough to show the format."""
APPLY = ("apply", "-y", "--lock-timeout", "0s", "--approve-deletes")
DOCUMENTS = {
    "plan": Case(("plan", *JSON), fresh=True),
    "plan-settled": Case(("plan", "--detailed-exitcode", *JSON), fresh=True, situation="interrupted"),
    "report": Case((*APPLY, "APPROVED", *JSON), fresh=True),
    "diagnostics": Case(("validate", *JSON)),
    "diagnostics-group": Case(("time", "show", "g-nowhere", *JSON), 1),
    "diagnostics-usage": Case(("plan", "nowhere", *JSON), 64),
    "render": Case(("render", "manifests/written.yaml", *JSON)),
    "test": Case(("test", *JSON), 1),
    "fmt": Case(("fmt", "--check", *JSON), 1),
    "init": Case(("init", "made", *JSON)),
    "adopt": Case(("adopt", "held.csv", *JSON), fresh=True),
    "state-list": Case(("state", "list", *SOME, *JSON)),
    "state-show": Case(("state", "show", "tag/ACME-0042", *JSON)),
    "state-export": Case(("state", "export")),
    "history": Case(("state", "history", *JSON)),
    "interrupted-history-of-one": Case(("state", "history", "tag/ACME-0042", *JSON), situation="interrupted"),
    "inbox": Case(("time", "inbox", *JSON)),
    "group-posted": Case(("time", "show", "g-posted", *JSON)),
    "group-changed": Case(("time", "show", "g-changed", *JSON)),
    "preview": Case(("time", "preview", "g-posted", *JSON)),
    "posted-time": Case(("time", "list", *LONG_AGO, *JSON)),
    "audit": Case(("time", "audit", *LONG_AGO, *JSON), 1),
    "time-export": Case(("time", "export", "--sink", "ledger", "--since", LAST_ACCEPTED, *JSON)),
    "drift": Case(("drift", *LONG_AGO, "--unused", "90000d", "--exclude", "tag/[!R]*", *JSON)),
    "selection": Case(("time", "retry", "--sink", "ledger", *LONG_AGO, *JSON)),
    "selection-retry": Case(("time", "retry", "g-unknown", *JSON), 3, fresh=True),
    "pull": Case(("time", "pull", *JSON), fresh=True),
    "mechanism": Case(("time", "register", *JSON)),
    "connector-check": Case(("connector", "check", *JSON)),
    "connector-register": Case(("connector", "register", *JSON), fresh=True),
    "health-report": Case(("health", "report", "unreachable", "--message", "The archive moves.", *JSON)),
    "health-clear": Case(("health", "clear", *JSON)),
    "state-forget": Case(("state", "forget", "tag/ACME-0042", "-y", *JSON)),
    "state-prune": Case(("state", "prune", "--before", "2020-01-01", "-y", *JSON)),
    "state-restore": Case(("state", "restore", "-y", *JSON)),
    "state-quarantine": Case(("state", "quarantine", *JSON)),
    "state-import": Case(("state", "import", "exported.jsonl", "-y", *JSON)),
    "state-rebind": Case(("state", "rebind", "-y", *JSON)),
    "publish": Case(("publish", "report.json", "--to", "github", "--dry-run", *JSON)),
    "state-lock": Case(("state", "lock", "--reason", "the archive moves", *JSON), fresh=True),
}
UNCACHED = {
    "plan": Case(("plan", *JSON), fresh=True, without=("cache.sql",)),
    "plan-settled": Case(("plan", *JSON), fresh=True, situation="interrupted", without=("cache.sql",)),
}
"""Documents that must be the same without the cache as with it, as in `DOCUMENTS`."""
SAVED = {
    "plan": Case(("show", "saved.plan", *JSON), fresh=True),
    "report": Case((*APPLY, saved_approval(), "saved.plan", *JSON), fresh=True),
}
"""Documents that must be the same when they are made from a plan that an earlier version saved."""
