"""The rooms, or packages, of syncengine, and the names in them; and how the test suite itself behaves."""

import ast
import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "syncengine"


def layers() -> list[list[str]]:
    """The rooms of each layer of the contract, from top to bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["containers"] == ["syncengine"])
    return [line.split(" | ") for line in lines]


def described(room: str) -> Iterator[str]:
    """The row of a room in the table, with the first line of its docstring, and those of the rooms in it."""
    folder = PACKAGE / room
    source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    sentence = (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").splitlines()[0]
    yield f"| `{room}{'/' if folder.is_dir() else '.py'}` | {sentence} |"
    for inner in sorted(folder.glob("*/__init__.py")):
        yield from described(f"{room}/{inner.parent.name}")


def test_the_table_in_contributing_has_the_rooms_own_docstrings() -> None:
    """To correct the table, copy the lines that this test expects."""
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    expected = [row for layer in layers() for room in layer for row in described(room)]
    assert re.findall(r"^\| `.*\|$", text, re.MULTILINE) == expected


def test_every_room_is_in_the_contract() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == {room for layer in layers() for room in layer}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for file in PACKAGE.rglob("*.py"):
        yield file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def test_no_public_class_name_is_there_twice() -> None:
    names = Counter(
        node.name
        for _, tree in _trees()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_docstring_is_text() -> None:
    r"""Python 3.13 does not compile a docstring with half a surrogate pair: `\ud83d` without a prefix `r`."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [(file, node) for file, tree in _trees() for node in ast.walk(tree) if isinstance(node, documented)]
    found = [(file, ast.get_docstring(node, clean=False) or "") for file, node in nodes]
    assert [file for file, text in found if text.encode(errors="replace").decode() != text] == []


INHERITS = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"


def test_a_child_of_the_tests_can_be_interrupted_and_a_test_that_hangs_fails(request: pytest.FixtureRequest) -> None:
    """Although a shell makes background jobs ignore SIGINT. The time limit of a test is ten minutes."""
    assert subprocess.check_output([sys.executable, "-c", INHERITS], text=True) == "True\n"
    assert float(request.config.getini("timeout")) == 600
    assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
