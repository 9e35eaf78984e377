"""The comment in docs/reviews.md and the pictures of plans are made from projects by the program and a browser.

Each picture contains a digest of the page's words and style as a comment, so that an outdated picture is noticed;
`SYNCENGINE_DOCS=write` makes outdated ones again.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncengine.render.html import page_file
from syncengine.sandbox.app import running_sandbox
from tests.pull_requests.clones import Clone, Forge
from tests.support import loopback
from tests.support.pages import ROOT, WRITES

from .conftest import emulated

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGE = ROOT / "docs/reviews.md"
IMAGES = ROOT / "docs/images"
LARGEST = 200_000
"""The largest size of a picture in bytes; a README loads quickly."""

CHANGING = re.compile(r"\b(?:[0-9a-f]{12}|[0-9a-f]{40})\b|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC)?|@[0-9a-f]{20}\b")
"""What differs in every plan: its id, commit, times and approvals."""

WORDS = """\
const main = document.querySelector('main'), texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
const words = [];
while (texts.nextNode()) words.push(texts.currentNode.data);
return [words.join('\\n'), main.offsetHeight];
"""
"""A script that returns the page's text and its height. `innerText` would vary while the page is laid out."""


def declared(*, is_changed: bool) -> str:
    """The manifest of the base branch, or that of the pull request."""
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


FIRM = """\
tagCategories:
  - {externalId: hartmann, label: Hartmann Optics, keywords: [hartmann optics]}
  - {externalId: solera, label: Solera Foods, keywords: [solera foods]}
defaults: {tags: {visibility: PRIVATE}}
tags:
  - {name: HAR-1001, category: hartmann, description: Opposition against EP 3 417 209, keywords: [EP 3417209, lens]}
  - {name: HAR-1002, category: hartmann, description: Licence for coated lenses, keywords: [Lensworks licence]}
  - {name: HAR-1003, category: hartmann, description: Trade mark HARTMANN VISION, keywords: [HARTMANN VISION]}
  - {name: SOL-3001, category: solera, description: Purchase of a cannery, keywords: [cannery, Project Almond]}
  - {name: SOL-3002, category: solera, description: Olive recall, keywords: [olives]}
"""
PROJECT = """\
version: 1
service: {baseUrl: sandbox}
environments: {production: {}}
policy:
  tagRemoval: retire
  maxDeletes: {tags: 0, keywords: 0}
  diagnostics: {private-in-shared-category: off}
"""


def cloned(folder: Path, repository: str, project: str) -> Clone:
    """The clone of a team's repository, with its project file."""
    clone = Forge(folder).clone(repository.partition("/")[2])
    clone.environ |= {"GITHUB_SERVER_URL": "https://github.example.com", "GITHUB_REPOSITORY": repository}
    clone.write("syncengine.yaml", project)
    clone.write(".gitignore", ".syncengine/\n")
    return clone


@pytest.fixture
def team(tmp_path: Path) -> Clone:
    """A pull request, and the applied base branch that it changes."""
    team = cloned(tmp_path, "acme/tags", "version: 1\nservice: {baseUrl: sandbox}\n")
    team.commit(matters=declared(is_changed=False))
    team.push()
    team.prints("apply", "-y")
    team.git("switch", "--quiet", "--create", "tidy")
    team.commit(matters=declared(is_changed=True))
    team.prints("plan", "--base", "origin/main", "--report", "json=plan.json", "--report", "html=plan.html")
    return team


@pytest.fixture
def firm(tmp_path: Path) -> Clone:
    """A plan that closes a matter, removes a keyword and makes a tag public; the first two are approved."""
    firm = cloned(tmp_path, "bell-hart/matters", PROJECT)
    data = firm.folder / ".syncengine/sandbox/service.db"
    data.parent.mkdir(parents=True)
    with running_sandbox(data) as running, loopback.client(base_url=running.control_url) as control:
        assert control.post("/settings", json={"teamName": "Bell & Hart LLP"}).is_success
    firm.commit(matters=FIRM)
    firm.prints("apply", "-y", "--env", "production")
    kept = [line for line in FIRM.splitlines() if "SOL-3002" not in line]
    changed = "\n".join(kept).replace(", lens]", "]").replace("coated lenses", "tinted lenses")
    changed = changed.replace("VISION, keywords", "VISION, visibility: PUBLIC, keywords")
    new = "  - {name: SOL-3003, category: solera}"
    firm.commit(matters=f"{changed}\n{new}\n")
    plan = json.loads(firm.prints("plan", "--env", "production", "--format", "json"))
    (approved,) = [unit["approve"] for unit in plan["gate"]["units"] if unit["unit"] == "manifests/matters.yaml"]
    firm.write("syncengine.yaml", f"{PROJECT}approvals:\n  - {approved}\n")
    firm.commit()
    firm.prints("plan", "--env", "production", "--report", "html=plan.html")
    return firm


def test_the_comment_is_the_one_that_is_published(team: Clone) -> None:
    comment = team.prints("publish", "plan.json", "--to", "github", "--dry-run")
    shown = "".join(f"> {line}".rstrip() + "\n" for line in comment.splitlines()[1:])
    begin, end = "<!-- comment -->\n", "<!-- end of comment -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    there, _, after = rest.partition(end)
    if CHANGING.sub("", there) != CHANGING.sub("", shown) and WRITES:
        PAGE.write_text(f"{before}{begin}{shown}{end}{after}", encoding="utf-8")
        there = shown
    assert CHANGING.sub("", there) == CHANGING.sub("", shown)


@pytest.mark.parametrize(
    ("made", "name", "width", "height", "scheme"),
    [
        ("team", "wide", 1280, 1450, "light"),
        ("team", "narrow", 390, 780, "dark"),
        ("firm", "light", 1280, 0, "light"),  # the README's, in light and dark colours
        ("firm", "dark", 1280, 0, "dark"),
    ],
)
def test_a_picture_is_of_the_current_page(
    request: pytest.FixtureRequest, chromium: Chrome, made: str, name: str, width: int, height: int, scheme: str
) -> None:
    """With height 0, it is as high as the page."""
    clone: Clone = request.getfixturevalue(made)
    file = IMAGES / f"plan-{name}.png"
    with emulated(chromium, width, scheme, height or 900):
        chromium.get((clone.folder / "plan.html").as_uri())
        text, needed = chromium.execute_script(WORDS)  # type: ignore[no-untyped-call] # selenium has no types
    says = hashlib.sha256((CHANGING.sub("", text) + page_file("pages.css")).encode()).hexdigest()
    comment = f"Comment\0{says}".encode()
    if WRITES and not (file.exists() and comment in file.read_bytes()):
        with emulated(chromium, width, scheme, height or needed):
            new, part = chromium.get_screenshot_as_png(), b"tEXt" + comment
        lengths = struct.pack(">I", len(comment)), struct.pack(">I", zlib.crc32(part))
        file.write_bytes(new[:33] + lengths[0] + part + lengths[1] + new[33:])  # behind the signature and the header
    picture = file.read_bytes()
    assert (comment in picture, len(picture) <= LARGEST) == (True, True)
