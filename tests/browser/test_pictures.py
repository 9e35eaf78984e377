"""The comment and the pictures of docs/first-pull-request.md, made of its project by the program and a browser.

A picture is named for what the page says, so that an old one is noticed; `SYNCENGINE_DOCS=write` makes them anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import warm
from tests.support.pages import ROOT, WRITES

from .test_plan_page import Page

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGE = ROOT / "docs/first-pull-request.md"
IMAGES = ROOT / "docs/images"
PICTURES = {"wide": (1280, 1450, "light"), "narrow": (390, 780, "dark")}
"""Width and height in pixels, and the colours that the reader prefers."""

ADA = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "Ada"), ("EMAIL", "ada@example.com"), ("DATE", "2026-03-02T09:00:00Z"))}  # fmt: skip
GITHUB = {"GITHUB_SERVER_URL": "https://github.example.com", "GITHUB_REPOSITORY": "acme/tags"}

APPROVAL = re.compile(r"@[0-9a-f]{20}\b")
CHANGING = re.compile(r"\bPlan [0-9a-f]{12}|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC)?|@[0-9a-f]{20}\b")
"""Whatever is another one in each plan: its name, its time, and approvals, which are those of a state."""


def declared(*, is_changed: bool) -> str:
    """The manifest of the base, or that of the pull request."""
    lines = ["tagCategories:", "  - {externalId: acme, label: ACME Corp.}"]
    lines += [] if is_changed else ["  - {externalId: jacobi, label: Jacobi GmbH}"]
    lines += ["tags:"]
    for number in range(1, 25):
        text = f"Patent family {number}" + (" (reviewed)" if is_changed else "")
        text = "Strictly confidential merger of A and B" if is_changed and number == 17 else text
        lines.append(f"  - {{name: ACME-{number:04}, category: acme, description: {text}}}")
    if is_changed:
        lines.append("  - {name: ACME-0025, category: acme, description: Opposition against EP 1 234 567}")
    else:
        lines += [f"  - {{name: JAC-{n:04}, category: jacobi, description: Trade mark {n}}}" for n in (1, 2, 3)]
    return "\n".join(lines) + "\n"


class Team:
    """A clone of the team's repository, in which its base is applied."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tags"
        self._environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **ADA}
        self.git("init", "--quiet", "--bare", "--initial-branch=main", "origin.git", folder=folder)
        self.git("clone", "--quiet", "origin.git", "tags", folder=folder)
        self._write("syncengine.yaml", "version: 1\nservice: {baseUrl: sandbox}\n")
        self._write(".gitignore", ".syncengine/\n")
        self.commit(is_changed=False)
        self.git("push", "--quiet", "origin", "main")
        self.run("apply", "-y")

    def commit(self, *, is_changed: bool) -> None:
        self._write("manifests/matters.yaml", declared(is_changed=is_changed))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Review descriptions")

    def run(self, *arguments: str) -> str:
        done = warm.run(arguments, folder=self.folder, environ={**self._environ, **GITHUB})
        assert done.code == 0, done.err
        return done.out

    def git(self, *arguments: str, folder: Path | None = None) -> None:
        subprocess.run(["git", *arguments], cwd=folder or self.folder, env=self._environ, check=True)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    team = Team(tmp_path)
    team.git("switch", "--quiet", "--create", "tidy")
    team.commit(is_changed=True)
    team.run("plan", "--base", "origin/main", "--report", "json=plan.json", "--report", "html=plan.html")
    yield team


def held(name: str, content: str) -> str:
    """Whatever the page has between two marks; with `SYNCENGINE_DOCS=write` this content is written there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    there, _, after = rest.partition(end)
    if WRITES:
        PAGE.write_text(f"{before}{begin}{content}{end}{after}", encoding="utf-8")
        return content
    return there


def test_the_comment_is_the_one_that_is_published(team: Team) -> None:
    """But for approvals, which are those of a state."""
    comment = team.run("publish", "plan.json", "--to", "github", "--dry-run")
    shown = "".join(f"> {line}".rstrip() + "\n" for line in comment.splitlines()[1:])
    written = held("comment", shown)
    assert APPROVAL.sub("@", written) == APPROVAL.sub("@", shown)


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_of_the_page_that_is_made(chromium: Chrome, team: Team, name: str, tmp_path: Path) -> None:
    width, height, scheme = PICTURES[name]
    page = Page(chromium, tmp_path)
    chromium.get((team.folder / "plan.html").as_uri())
    with page.emulated(width, scheme, height):
        says = hashlib.sha256(CHANGING.sub("", page.text("body")).encode()).hexdigest()[:12]
        picture = chromium.get_screenshot_as_png()
    file = IMAGES / f"plan-{name}-{says}.png"
    if WRITES:
        for old in IMAGES.glob(f"plan-{name}-*.png"):
            old.unlink()
        file.write_bytes(picture)
    shown = f"![The page of the plan, {width} pixels wide](images/{file.name})\n"
    assert held(name, shown) == shown
    assert file.is_file()
