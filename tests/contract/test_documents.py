"""JSON documents, made from files of an earlier day: each means, to the letter, what it meant then.

A stored field that is renamed while it has a default is dropped without a word from the files that users have: one of
these documents lacks it then. `SYNCENGINE_CONTRACT=write` writes them anew, where a difference is meant.
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
    """From the files of today's program, whichever program reads them; none is missing or left over."""
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
    """To the letter, but for times and ids."""
    for name, text in made(tmp_path, cases).items():
        assert text == (FOLDER / f"{name}.json").read_text(encoding="utf-8")
