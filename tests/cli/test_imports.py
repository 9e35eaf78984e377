"""Commands do not load libraries that they do not need; loading each takes longer than a plan of ten tags."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.documents import APPLY, saved_approval
from tests.contract.program import restore, surroundings

HEAVY = {"jinja2", "ruamel.yaml", "httpx", "h11", "sqlalchemy", "deepdiff", "starlette", "uvicorn", "rich"}
PLAIN = "tags:\n" + "".join(f"  - {{name: Matter {n:04}, keywords: [docket {n:04}]}}\n" for n in range(600))
"""Large enough that the fast reader and the cache are used."""
PROGRAM = """\
import json, sys
from syncengine.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code or 0, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that are loaded when the program ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environ = surroundings(folder)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, 1, 2, 3, 4), done.stderr
    return set(modules)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "m.yaml").write_text(PLAIN)
    return tmp_path


@pytest.mark.parametrize("words", ["--version", "plan --help", "plan --sandbox", "validate"])
def test_nothing_heavy_is_loaded(folder: Path, words: str) -> None:
    """Neither without nor with a cache; not even pydantic for help, and SQLAlchemy only for a state."""
    is_help = words in ("--version", "plan --help")
    for _ in range(1 if is_help else 2):
        found = loaded(folder, *words.split())
        assert found & HEAVY == ({"sqlalchemy"} if "sandbox" in words else set())
        assert ("pydantic" in found) == (not is_help)


def test_a_csv_block_loads_templates_but_no_http_client(folder: Path) -> None:
    """A manifest that generates tags from CSV loads jinja2, but neither httpx nor ruamel.yaml."""
    (folder / "r.csv").write_text("n\nAlpha\n")
    block = "generate:\n  - forEach: {csv: ../r.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
    (folder / "manifests" / "g.yaml").write_text(block)
    found = loaded(folder, "plan", "--sandbox")
    assert "jinja2" in found
    assert found.isdisjoint({"ruamel.yaml", "httpx"})


@pytest.mark.slow
def test_only_showing_a_changed_group_loads_deepdiff(tmp_path: Path) -> None:
    """All load pydantic, to validate files, posted groups or requests."""
    folder = restore(tmp_path, "planned")
    approved = [*APPLY, saved_approval(), "saved.plan"]
    for words in (["state", "list"], ["time", "inbox"], ["time", "show", "g-changed"], approved):
        found = loaded(folder, *words)
        assert ("pydantic" in found, "deepdiff" in found) == (True, words[-1] == "g-changed"), words
