"""Files of an earlier version still mean the same, and so do documents and their exit codes made from them.

`SYNCENGINE_CONTRACT=write` writes the documents again where a difference is intended.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.render.schemas import SUFFIX, schemas
from syncengine.state.records import Attempt
from tests.contract.documents import DOCUMENTS, SAVED, UNCACHED, Case, made
from tests.contract.program import DATABASES, HERE, IS_WRITING, TODAY, restore, run
from tests.support.formats import fitting

FOLDER = HERE / "documents"

# --- documents


def test_documents_are_what_they_were(tmp_path: Path) -> None:
    """Byte for byte: a stored field with a default that was renamed would be lacking in one of them."""
    found = made(tmp_path, DOCUMENTS)
    if IS_WRITING:
        for file in FOLDER.iterdir():
            file.unlink()
        for name, text in found.items():
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    kept = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert found.keys() == kept.keys()
    differences = [
        line
        for name, text in found.items()
        for line in unified_diff(kept[name].split("\n"), text.split("\n"), f"{name}, as it was", name, lineterm="")
    ]
    assert differences == [], "\n".join(differences)


@pytest.mark.parametrize("cases", [UNCACHED, SAVED], ids=["without a cache", "of a saved plan"])
def test_a_document_is_the_same(tmp_path: Path, cases: Mapping[str, Case]) -> None:
    for name, text in made(tmp_path, cases).items():
        assert text == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def test_documents_of_today_keep_to_the_schemas() -> None:
    """Each document fits the schema of its `format`; formats that need Git or a host are tested elsewhere."""
    elsewhere = {"erase", "policies", "project", "rebuild", "reviewed", "state-versions"}
    judged = set()
    for file in (TODAY / "planned" / "report.json", *(FOLDER / f"{name}.json" for name in DOCUMENTS)):
        text = file.read_text(encoding="utf-8")
        parts = text.splitlines() if file.stem == "state-export" else [text]  # lines in the format of the first one
        first, *others = map(json.loads, parts)
        judged.add(name := fitting(first))
        for each in others:
            fitting(each, name)
    assert judged == {name.removesuffix(SUFFIX) for name in schemas()} - elsewhere


# --- stored files


def test_an_export_is_recorded_as_it_was(tmp_path: Path) -> None:
    """Importing an export into a project without a state records every resource in full, and marks it doubtful."""
    stateless, stored = tmp_path / "stateless", tmp_path / "stored"
    for folder, without in ((stateless, ("state.sql", "cache.sql")), (stored, ())):
        folder.mkdir()
        restore(folder, "planned", *without)
    done = run(stateless, "state", "import", "exported.jsonl", "-y")
    assert done.code == 0, done.err
    recorded, before = (
        json.loads(run(folder, "state", "list", "--format", "json").out)["resources"] for folder in (stateless, stored)
    )
    for name in ("address", "fields", "keywords", "metadata", "source", "protect", "serverId", "status"):
        assert [each.get(name) for each in recorded] == [each.get(name) for each in before]
    assert all(each["doubtful"] for each in recorded)


def is_kept(stored: Any, written: Any) -> bool:
    """Return whether all that is stored is written again. Fields that were added since may stand beside it."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return all(name in written and is_kept(value, written[name]) for name, value in stored.items())
    if isinstance(stored, list) and isinstance(written, list):
        return len(stored) == len(written) and all(map(is_kept, stored, written))
    return bool(stored == written)


def test_calls_that_may_still_land_are_read_in_full(tmp_path: Path) -> None:
    """No field was renamed since they were stored, not even the ids and survivors that only a late call needs."""
    restore(tmp_path, "interrupted")
    with closing(sqlite3.connect(tmp_path / DATABASES["state.sql"])) as database:
        stored = database.execute("SELECT content FROM state_calls WHERE content IS NOT NULL").fetchall()
    read = [(content, msgspec.msgpack.decode(content, type=Attempt)) for (content,) in stored]
    kept = [is_kept(*map(msgspec.msgpack.decode, (content, msgspec.msgpack.encode(each)))) for content, each in read]
    assert kept == [True] * len(stored)
    assert stored
