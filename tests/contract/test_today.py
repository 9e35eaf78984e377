"""Files of an earlier version that are read as a whole: an export and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from syncengine.render.schemas import SUFFIX, schemas
from tests.contract.documents import DOCUMENTS
from tests.contract.program import TODAY, restore, run
from tests.contract.test_documents import FOLDER
from tests.support.formats import fitting

SECTIONS = ("fields", "keywords", "metadata", "source", "protect", "serverId", "status")


def test_an_export_is_recorded_as_it_was(tmp_path: Path) -> None:
    """Importing an export into a project without a state records every resource in full, and marks it doubtful."""
    restore(tmp_path, "planned", "state.sql", "cache.sql")
    done = run(tmp_path, "state", "import", "exported.jsonl", "-y")
    assert done.code == 0, done.err
    recorded = json.loads(run(tmp_path, "state", "list", "--format", "json").out)["resources"]
    before = json.loads((FOLDER / "state-list.json").read_text(encoding="utf-8"))["resources"]
    assert list(map(_substance, recorded)) == list(map(_substance, before))
    assert all(each["doubtful"] for each in recorded)


def _substance(resource: dict[str, Any]) -> list[Any]:
    return [resource["address"], *(resource.get(section) for section in SECTIONS)]


def test_documents_of_today_keep_to_the_schemas() -> None:
    """Each document fits the schema of its `format`; formats that need Git or a host are tested elsewhere."""
    elsewhere = {"erase", "policies", "project", "rebuild", "reviewed", "state-versions"}
    files = (TODAY / "planned" / "report.json", *(FOLDER / f"{name}.json" for name in DOCUMENTS))
    judged = set()
    for first, *others in map(_documents, files):
        judged.add(name := fitting(first))
        for each in others:
            fitting(each, name)
    assert judged == {name.removesuffix(SUFFIX) for name in schemas()} - elsewhere


def _documents(file: Path) -> list[dict[str, Any]]:
    """The document of a file, or the lines of an export, each of which is in the format that the first one names."""
    text = file.read_text(encoding="utf-8")
    if file.stem != "state-export":
        return [json.loads(text)]
    return [json.loads(line) for line in text.splitlines()]
