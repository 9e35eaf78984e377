"""Files of an earlier day that are read as a whole: an export, a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.contract.documents import DOCUMENTS
from tests.contract.program import ROOT, TODAY, restore, run
from tests.contract.test_documents import FOLDER

SECTIONS = ("fields", "keywords", "metadata", "source", "protect", "serverId", "status")


def test_an_export_is_recorded_as_it_was(tmp_path: Path) -> None:
    """In a project without a state: every resource in full, and doubtful, as whatever is imported."""
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
    """Those that a schema is published of, by the name in their `format`. Each member is named there."""
    schemas = {path.name.partition(".")[0]: path for path in (ROOT / "schemas").iterdir()}
    judged = set()
    for file in (TODAY / "planned" / "report.json", *(FOLDER / f"{name}.json" for name in DOCUMENTS)):
        document = _document(file)
        name = document.get("format", "/").partition("/")[0].removeprefix("syncengine.")
        if name in schemas:
            closed = json.loads(schemas[name].read_text(encoding="utf-8"), object_hook=_closed)
            jsonschema.Draft202012Validator(closed).validate(document)
            judged.add(name)
    assert judged == schemas.keys() - {"manifest", "policies", "project"}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Without members beside those that are named; mappings by names of users stay open."""
    return {**schema, "additionalProperties": False} if "properties" in schema else schema


def _document(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text.partition("\n")[0] if file.stem == "state-export" else text)
    return document
