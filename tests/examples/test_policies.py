"""The rules for the example manifests, and the tests of both."""

from __future__ import annotations

import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncengine.render.schemas.published import schemas
from tests.support import warm

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "policies"


def test_their_tests_pass() -> None:
    """In the project that the repository is."""
    done = warm.run(["test", str(FOLDER)], folder=ROOT, environ={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
    assert (done.code, done.out) == (0, "10 tests passed.\n")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_nothing_wrong_with_them(path: Path) -> None:
    """By the schema that their first line names."""
    text = path.read_text(encoding="utf-8")
    named = path.parent / text.splitlines()[0].rpartition("$schema=")[2]
    assert named.resolve() == ROOT / "schemas" / "policies.schema.json"
    jsonschema.validate(yaml.safe_load(text), schemas()["policies.schema.json"])
