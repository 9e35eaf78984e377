"""Names in the package: public classes are unique, and things are named by nouns. Docstrings are valid text."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import syncengine

PACKAGE = Path(syncengine.__path__[0])


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
