"""JSON documents made from stored files of an earlier version still mean the same, byte for byte.

Renaming a stored field that has a default would silently drop it from users' files; one of these documents would lack
it then. `SYNCENGINE_CONTRACT=write` writes them again where a difference is intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.contract.documents import DOCUMENTS, SAVED, UNCACHED, Case, made
from tests.contract.program import HERE, IS_WRITING

FOLDER = HERE / "documents"


def test_documents_are_what_they_were(tmp_path: Path) -> None:
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
    """Except for times and ids, the document equals the stored one."""
    for name, text in made(tmp_path, cases).items():
        assert text == (FOLDER / f"{name}.json").read_text(encoding="utf-8")
