"""The rooms, or packages, of syncengine, and the names in them. Docstrings are valid text."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "syncengine"


def rooms() -> list[str]:
    """Rooms in the order of the contract, each followed by its own rooms."""
    return [room for layer in layers() for name in layer for room in (name, *parts(name))]


def layers() -> list[list[str]]:
    """The rooms of each layer of the contract, from top to bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["containers"] == ["syncengine"])
    return [line.split(" | ") for line in lines]


def parts(room: str) -> list[str]:
    return sorted(f"{room}/{path.parent.name}" for path in (PACKAGE / room).glob("*/__init__.py"))


def sentence(room: str) -> str:
    """The first line of a room's docstring."""
    folder = PACKAGE / room
    source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").splitlines()[0]


def shown(room: str) -> str:
    return f"{room}/" if (PACKAGE / room).is_dir() else f"{room}.py"


def test_the_table_in_contributing_has_the_rooms_own_docstrings() -> None:
    """To correct the table, copy the lines that this test expects."""
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    expected = [f"| `{shown(room)}` | {sentence(room)} |" for room in rooms()]
    assert re.findall(r"^\| `.*\|$", text, re.MULTILINE) == expected


def test_every_room_is_in_the_contract() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == {room for room in rooms() if "/" not in room}


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
