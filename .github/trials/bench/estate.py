"""The manifests of a firm, as large as asked for: about 360 bytes a tag with three keywords, two metadata entries and a
URL; 1,000 tags a file."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path

TAG = """\
  - name: M-{n:07}
    description: "{words}, a matter of some length with words that people would write"
    keywords: [{keywords}]
    metadata: {{Client: "ACME Holding Corporation {n:07}", Billing Group: billable}}
    externalId: "{n}"
    url: https://pms.example.com/matters/{n:07}/overview
    visibility: PUBLIC
"""
TAGS_A_FILE = 1000
BLOCK = """\
generate:
  - forEach: {csv: ../matters.csv}
    as: matter
    tags:
      - name: "{{ matter.name }}"
        description: "{{ matter.description }}"
        keywords: ["EP {{ matter.number }} B1", "matter {{ matter.number }} file", "docket {{ matter.number }}/2026"]
        metadata: {Client: "{{ matter.client }}", Billing Group: billable}
        externalId: "{{ matter.id }}"
        url: "https://pms.example.com/matters/{{ matter.number }}/overview"
        visibility: PUBLIC
"""


@dataclass(frozen=True)
class Estate:
    """A project's folder whose service is at `base_url`."""

    folder: Path
    base_url: str

    def __post_init__(self) -> None:
        (self.folder / "manifests").mkdir(parents=True)
        lines = ("version: 1", "service:", f"  baseUrl: {self.base_url}")
        (self.folder / "syncengine.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def holds(self, start: int, end: int, *, without_keyword: int = 0) -> None:
        """Write the tags from `start` on; those below `without_keyword` have lost their last keyword."""
        for first in range(start, end, TAGS_A_FILE):
            numbers = range(first, min(first + TAGS_A_FILE, end))
            self._write(first, "".join(tag(n, loses_keyword=n < without_keyword) for n in numbers))

    def changes_one(self, version: int, size: int) -> None:
        """One tag, in the middle, has another description."""
        middle = size // 2 // TAGS_A_FILE * TAGS_A_FILE
        numbers = range(middle, min(middle + TAGS_A_FILE, size))
        changed = tag(middle, words=f"Version {version}")
        self._write(middle, changed + "".join(tag(n) for n in numbers[1:]))

    def generates(self, size: int, version: int = 0) -> None:
        """The same tags, made of the rows of a CSV file by one block; of a later `version` one row differs."""
        with (self.folder / "matters.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("name", "number", "description", "client", "id"))
            for n in range(size):
                words = f"Version {version}" if version and n == size // 2 else f"Opposition against EP {n:07}"
                described = f"{words}, a matter of some length with words that people would write"
                writer.writerow((f"M-{n:07}", f"{n:07}", described, f"ACME Holding Corporation {n:07}", n))
        (self.folder / "manifests" / "matters.yaml").write_text(BLOCK, encoding="utf-8")

    def forgets(self) -> None:
        """Nothing is cached or recorded."""
        shutil.rmtree(self.folder / ".syncengine", ignore_errors=True)

    def _write(self, first: int, tags: str) -> None:
        (self.folder / "manifests" / f"matters-{first:07}.yaml").write_text("tags:\n" + tags, encoding="utf-8")


def tag(n: int, *, loses_keyword: bool = False, words: str | None = None) -> str:
    """The tag number `n`."""
    keywords = (f"EP {n:07} B1", f"matter {n:07} file", f"docket {n:07}/2026")
    listed = ", ".join(f'"{keyword}"' for keyword in (keywords[:-1] if loses_keyword else keywords))
    return TAG.format(n=n, keywords=listed, words=words or f"Opposition against EP {n:07}")
