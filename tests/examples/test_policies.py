"""Rules for the example manifests, and their tests."""

from __future__ import annotations

import os
from pathlib import Path

import jsonschema
import yaml

from syncengine.render.schemas import schemas
from tests.support import warm

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "policies"


def test_their_tests_pass() -> None:
    done = warm.run(["test", str(FOLDER)], folder=ROOT, environ={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
    assert (done.code, done.out) == (0, "7 tests passed.\n"), done.out


def test_editors_find_nothing_wrong_with_them() -> None:
    """The rules fit the schema that their first line names."""
    path = FOLDER / "firm.yaml"
    text = path.read_text(encoding="utf-8")
    named = path.parent / text.splitlines()[0].rpartition("$schema=")[2]
    assert named.resolve() == ROOT / "schemas" / "policies.schema.json"
    jsonschema.validate(yaml.safe_load(text), schemas()["policies.schema.json"])
