"""A reading is known by a digest only if its inputs were the same all the time that it was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from syncengine.manifest.context import LoadContext
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.load import read_one
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.reading import ReadFile

BLOCKS = """\
generate:
  - forEach: {json: ../rows.json}
    when: row.n != 'none'
    tagCategories:
      - {externalId: "C-{{ row.n }}", label: "{{ row.v }}"}
    tags:
      - name: "{{ row.n }}"
        description: "{{ row.v }} {{ var.team }}"
        keywords: "{{ row.get('k', []) }}"
        visibility: "{{ 'PRIVATE' if row.v is string else '' }}"
  - forEach: {json: ../rows.json, distinct: n}
    tags: [{name: "second {{ row.n }}", managedBy: "{{ row.v * 2 if row.v is number else row.v }}"}]
"""


def rows(folder: Path, *table: dict[str, Any]) -> None:
    (folder / "rows.json").write_text(json.dumps(table))


@dataclass(frozen=True)
class Replacing(LoadContext):
    """A context in whose files something is replaced just before the file numbered `at` is opened."""

    at: int = 0
    change: Callable[[], None] = lambda: None
    opened: list[str] = field(default_factory=list)

    def data(self, name: str, folder: Path) -> Path:
        self._count(name)
        return super().data(name, folder)

    def template(self, name: str) -> Path:
        self._count(name)
        return super().template(name)

    def _count(self, name: str) -> None:
        self.opened.append(name)
        if len(self.opened) == self.at:
            self.change()


TEMPLATE = """\
{% include "part.txt" %}
tags:
{% for row in data("../rows.json") %}  - name: {{ row.n }}
{% endfor %}
"""
COMPUTED = TEMPLATE.replace('"part.txt"', '"pa" ~ "rt.txt"')


@pytest.mark.parametrize("text", [BLOCKS, TEMPLATE, COMPUTED], ids=["blocks", "template", "computed name"])
@pytest.mark.parametrize("part", ["rows.json", "part.txt"])
def test_an_input_replaced_while_it_is_read_is_not_known_by_a_digest(tmp_path: Path, text: str, part: str) -> None:
    """Else the cache would have old rows as those of the new file, and every later plan would miss the change."""
    (tmp_path / "manifests").mkdir()
    path = tmp_path / "manifests" / ("m.yaml" if text == BLOCKS else "m.yaml.j2")
    path.write_text(text)

    def write(version: str) -> None:
        rows(tmp_path, {"n": f"tag {version}", "v": "alpha"})
        (tmp_path / "part.txt").write_text("# a comment\n")

    def change() -> None:
        content = {"rows.json": '[{"n": "tag new", "v": "alpha"}]', "part.txt": "# another\nremoved: []\n"}[part]
        (tmp_path / part).write_text(content)

    def read(at: int) -> tuple[ReadFile, int]:
        context = Replacing(tmp_path, variables={"team": "A"}, at=at, change=change)
        name = path.relative_to(tmp_path).as_posix()
        found = read_one(ManifestFile(path, name, context=context), NO_DEFAULTS)
        return found, len(context.opened)

    write("old")
    old, most = read(0)
    change()
    new, _ = read(0)
    assert old.sha256 and new.sha256
    for at in range(1, most + 1):
        write("old")
        found, _ = read(at)
        assert not found.sha256 or found in (old, new), at
