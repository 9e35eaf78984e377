"""The version to release and a file → that version's section of the CHANGELOG in the file, and the version on stdout.

Ends with an error when the version is not that of the program, or the changelog has no section for it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def section_of(version: str, changelog: str) -> str | None:
    """Return the text between this version's heading (`## 0.1.0` or `## 0.1.0 - DATE`) and the next, or `None`."""
    heading = re.search(rf"^## \[?{re.escape(version)}\]?( .*)?$", changelog, re.MULTILINE)
    if heading is None:
        return None
    rest = changelog[heading.end() :]
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()


def main(version: str, target: str) -> None:
    program = re.search(r'^__version__ = "(.+)"$', (ROOT / "syncengine/__init__.py").read_text(), re.MULTILINE)
    if program is None or program[1] != version:
        sys.exit(f"the tag says {version}, syncengine/__init__.py says {program[1] if program else 'nothing'}")
    notes = section_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if not notes:
        sys.exit(f"CHANGELOG.md has no section for {version}: name it `## {version}`")
    Path(target).write_text(notes + "\n", encoding="utf-8")
    sys.stdout.write(f"{version}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
