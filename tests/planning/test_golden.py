"""Golden cases: a manifest, recorded rows, and the exact text of the plan.

Each folder of `golden/` is a case: `manifest.yaml`, `recorded.yaml` (rows by address; `how`: policy and flags), and
`plan.txt`. `SYNCENGINE_GOLDEN=write pytest tests/planning/test_golden.py` writes the plans anew; read the difference
before committing it. The other renderings have golden files in `tests/render`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.render import PLAN_FORMATS
from syncengine.render.documents import plan_document
from syncengine.render.style import PLAIN
from syncengine.resource import Recorded, Removal, Source, Status
from tests.render.samples import without_files

from .estate import planned, row

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(folder.name for folder in GOLDEN.iterdir())
MANIFEST = "manifests/acme.yaml"


def recorded(address: str, said: Mapping[str, Any]) -> Recorded:
    """Return a row of a case, which is confirmed, active and declared in line 1 unless the case says otherwise."""
    said = dict(said)
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in said.pop("fields", {}).items()}
    status, source = Status(said.pop("status", "active")), Source(MANIFEST, said.pop("line", 1))
    said["former_categories"] = tuple(said.pop("former_categories", ()))
    return row(address, *said.pop("keywords", ()), status=status, source=source, **fields, **said)


def how(said: Mapping[str, Any]) -> dict[str, Any]:
    scope = Scope(no_delete=said.get("no_delete", False))
    policy = {"tag_removal": Removal(said.get("tag_removal", "forget")), "scope": scope}
    return policy | {name: said[name] for name in ("swept_before", "deletes_tags") if name in said}


@cache
def plan_of(case: str) -> Plan:
    folder = GOLDEN / case
    state = yaml.safe_load((folder / "recorded.yaml").read_text(encoding="utf-8"))
    rows = [recorded(address, said) for address, said in state["rows"].items()]
    text = (folder / "manifest.yaml").read_text(encoding="utf-8")
    return planned({MANIFEST: text}, rows, **how(state.get("how", {})))


@pytest.mark.parametrize("case", CASES)
def test_the_text_of_a_plan_is_unchanged(case: str) -> None:
    file = GOLDEN / case / "plan.txt"
    rendered = without_files(PLAN_FORMATS["text"](plan_document(plan_of(case)), PLAIN))
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        file.write_text(rendered, encoding="utf-8", newline="")
    assert file.read_bytes().decode() == rendered
