"""Names of the house: one public class for one name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import syncengine

MIRRORS = {"ActivityType", "Tag"}
"""The sandbox's rows of the resources that manifests declare."""


def test_no_public_class_name_is_there_twice() -> None:
    """Besides the sandbox's mirrors."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in Path(syncengine.__path__[0]).rglob("*.py"))
    names = Counter(
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == MIRRORS
