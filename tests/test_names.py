"""Names in the package: public classes are unique, and things are named by nouns. Docstrings are valid text."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import syncengine

PACKAGE = Path(syncengine.__path__[0])
MIRRORS = {"ActivityType", "Tag"}
"""Classes of the sandbox with the same names as resources of manifests."""

NO_NOUNS = {"given", "asked", "said", "told", "standing", "meant", "held", "known", "taken", "left", "gone"}
"""Participles, which say what happened to a value and not what it is."""

STORED = {
    ("document/comparison.py", "gone"),
    ("plan/model.py", "gone"),
    ("plan/calls.py", "known"),
    ("render/formats.py", "gone"),
    ("render/formats.py", "known"),
    ("render/schemas/posted_time.py", "asked"),
    ("render/schemas/posted_time.py", "taken"),
    ("state/inbox_model.py", "asked"),
}
"""Names that are columns of a database or keys of JSON."""
OPERANDS = {("templating/bounds.py", "left"), ("templating/filters.py", "left"), ("templating/sandbox.py", "left")}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for file in PACKAGE.rglob("*.py"):
        yield file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def test_no_public_class_name_is_there_twice() -> None:
    """The sandbox's mirrors of resources are excepted."""
    names = Counter(
        node.name
        for _, tree in _trees()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == MIRRORS


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names of functions, parameters and values."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.MatchAs(name=str(name)):
                yield name


def test_a_thing_is_named_by_a_noun() -> None:
    """Operands and stored names are excepted."""
    found = {(file, name.strip("_")) for file, tree in _trees() for name in _bound(tree)}
    assert {(file, name) for file, name in found if name in NO_NOUNS} == STORED | OPERANDS


def test_every_docstring_is_text() -> None:
    r"""Python 3.13 does not compile a docstring with half a surrogate pair: `\ud83d` without a prefix `r`."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [(file, node) for file, tree in _trees() for node in ast.walk(tree) if isinstance(node, documented)]
    found = [(file, ast.get_docstring(node, clean=False) or "") for file, node in nodes]
    assert [file for file, text in found if text.encode(errors="replace").decode() != text] == []
