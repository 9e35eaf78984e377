"""The pages of docs: citations and links lead somewhere, tables are whole, examples are as the program wants them.

A citation is the path of a page, and behind it the numbers of sections or rules: `docs/planning.md 2.8`,
`docs/formats.md §4`, `docs/architecture.md, rule 8`. The places that have numbers are anchors: `<a id="2.8"></a>`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from syncengine.cli.command_table import COMMANDS
from syncengine.errors import ExitCode
from syncengine.service.operations import OPERATIONS, Operation
from tests.support import warm

THIS = Path(__file__)
ROOT = THIS.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WRITTEN = [ROOT / "README.md", *sorted(ROOT.glob(".github/**/*.md")), *PAGES]
CITING = [
    *(path for folder in ("syncengine", "tests") for path in sorted((ROOT / folder).rglob("*.py")) if path != THIS),
    *sorted((ROOT / "schemas").glob("*.json")),
    *(ROOT / name for name in ("pyproject.toml", ".ci/run", "README.md")),
    *sorted(ROOT.glob(".github/**/*.md")),
    *PAGES,
]

NUMBER = r"\d+(?:\.\d+)*"
CITATION = re.compile(
    rf"(?<![\w./-])(?P<page>[\w./-]*?[a-z][a-z-]*\.md)\b"
    rf"(?P<numbers>,?\ (?:rule\ )?§?{NUMBER}(?:(?:,|\ and|\ to)\ §?{NUMBER})*)?",
    re.VERBOSE,
)
SECTION = re.compile(r"(?<!# )(?<!\[)§\d.{0,20}")
"""The number of a section, but for its own heading and the text of a link to it."""
RFC = re.compile(r"RFC \d+(?:,? §[\d.]+)+")
LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PLANNING = {
    *(f"1.{number}" for number in range(1, 9)),
    *(f"2.{number}" for number in range(1, 10)),
    *(f"3.{number}" for number in range(1, 7)),
    *(f"4.{number}" for number in range(1, 12)),
    *"1234567",
}
"""Sections and rules that others rely on."""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def examples(kind: str) -> list[str]:
    """Of a kind of files, as they stand in docs/formats.md."""
    return [body for found, body in BLOCK.findall(text_of(DOCS / "formats.md")) if found == kind]


def broken(text: str, folder: Path) -> Iterator[str]:
    """Citations in `text`, of a file in `folder`, that lead nowhere."""
    flat = " ".join(RFC.sub("", text).split())
    for found in CITATION.finditer(flat):
        page = next((base / found["page"] for base in (ROOT, folder) if (base / found["page"]).is_file()), None)
        if page is None:
            yield found[0]
        elif page.parent == DOCS:
            yield from (f"{found['page']} {name}" for name in cited(found["numbers"]) if name not in anchors(page))
    yield from SECTION.findall(CITATION.sub("", flat))


def cited(numbers: str | None) -> list[str]:
    """The anchors that stand behind a page's name."""
    rule = "rule-" if numbers and "rule " in numbers else ""
    return [rule + number for number in re.findall(NUMBER, numbers or "")]


def anchors(page: Path) -> list[str]:
    """Anchors that are written out, and those that headings have by themselves."""
    text = text_of(page)
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return ANCHOR.findall(text) + [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def dead_links(path: Path) -> Iterator[str]:
    """Links within the repository whose file or anchor does not exist."""
    for link in LINK.finditer(text_of(path)):
        if re.match(r"\w+:", link["path"]):
            continue
        page = path.parent / link["path"] if link["path"] else path
        if not page.exists() or (link["anchor"] and link["anchor"] not in anchors(page)):
            yield link[0]


# --- citations and links


@pytest.mark.parametrize("path", CITING, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_citation_leads_to_a_place_that_exists(path: Path) -> None:
    """Whoever reads it has nothing but this repository."""
    assert list(broken(text_of(path), path.parent)) == []


@pytest.mark.parametrize(
    "text",
    [
        "see nothing.{md} 2.8",
        "(docs/nothing.{md})",
        "docs/planning.{md} 2.99",
        "docs/planning.{md} 2.1, 2.99",
        "docs/planning.{md} 2.1 to 2.99",
        "docs/planning.{md}\n    2.99",
        "docs/formats.{md} §4, §44",
        "docs/architecture.{md}, rule 88",
        "(§4)",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    """A page or a number that does not exist, or a number without a page."""
    assert list(broken(text.format(md="md"), ROOT / "tests"))


@pytest.mark.parametrize(
    "text",
    ["docs/planning.md 1.3, 6", "docs/formats.md §4, §8", "docs/architecture.md, rule 8", "RFC 8259 §6, §8.1", "x.md5"],
)
def test_a_citation_that_is_right_is_let_be(text: str) -> None:
    """Also one of a document that everybody has."""
    assert list(broken(text, ROOT / "tests")) == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_to_a_place_that_exists(path: Path) -> None:
    """Between pages, and from the README and what contributors read."""
    assert list(dead_links(path)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """Its file is not there, or its anchor is not."""
    page = tmp_path / "PAGE.md"
    page.write_text('<a id="1"></a>\n## A heading\n[a](#1) [b](#a-heading) [c](#2) [d](GONE.md) [e](PAGE.md#3)\n')
    assert list(dead_links(page)) == ["](#2)", "](GONE.md)", "](PAGE.md#3)"]


# --- pages


def test_the_index_lists_every_page() -> None:
    """Each once, with what is in it."""
    listed = re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| \S", text_of(DOCS / "README.md"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES if page.name != "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_anchor_is_the_number_that_stands_there(page: Path) -> None:
    """And each is there once."""
    found = re.findall(r'<a id="([\d.]+)"></a>\s*(?:#+ |\*\*)§?([\d.]*\d)', text_of(page))
    assert [number for number, shown in found if number != shown] == []
    assert sorted(set(anchors(page))) == sorted(anchors(page))


def test_the_rules_of_planning_keep_their_numbers() -> None:
    """They are cited from everywhere; a new rule has a new number."""
    assert set(ANCHOR.findall(text_of(DOCS / "planning.md"))) >= PLANNING


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_described(command: str) -> None:
    """But for `help`, which describes all others."""
    assert re.search(rf"^\|.*`{command}\b", text_of(DOCS / "formats.md"), re.MULTILINE) or command == "help"


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name)
def test_every_exit_code_is_described(code: ExitCode) -> None:
    """No exit code is a surprise."""
    assert re.search(rf"^\| {code.value} \|", text_of(DOCS / "formats.md"), re.MULTILINE)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.id)
def test_every_operation_of_the_service_is_described(operation: Operation) -> None:
    """With the method and the path that we use."""
    row = rf"^\| `{operation.id}`[^|]*\| {operation.method} \| {operation.path} \|"
    assert re.search(row, text_of(DOCS / "service.md"), re.MULTILINE)


def test_every_state_of_a_group_is_described() -> None:
    """Those that `time inbox --state` takes, in the order in which a group comes to them."""
    schema = json.loads(text_of(ROOT / "schemas/group.schema.json"))
    states = re.findall(r"^\| `([\w-]+)` \| ", text_of(DOCS / "posted-time.md").partition("## 6.")[2], re.MULTILINE)
    assert states == schema["properties"]["state"]["enum"]


def test_every_setting_of_the_project_file_is_shown() -> None:
    """By the examples, which `validate` takes."""
    schema = json.loads(text_of(ROOT / "schemas/project.schema.json"))
    shown = "".join(examples("yaml"))
    assert [name for name in schema["properties"] if not re.search(rf"^{name}:", shown, re.MULTILINE)] == []


# --- examples


@pytest.mark.parametrize("example", examples("json"))
def test_an_example_of_a_format_is_one(example: str) -> None:
    """It is what the published schema of its format describes."""
    document = json.loads(example)
    name = document["format"].removeprefix("syncengine.").removesuffix("/v1")
    Draft202012Validator(json.loads(text_of(ROOT / f"schemas/{name}.schema.json"))).validate(document)


@pytest.mark.parametrize("example", examples("yaml"))
def test_an_example_of_a_file_is_valid(example: str, tmp_path: Path) -> None:
    """`validate` finds nothing in a project that has it, not even something to warn of."""
    files = {
        "manifests/none.yaml": "",
        "data/matters.csv": "number;title;client;status\nACME-0042;Opposition;ACME Corp.;open\n",
        example.split()[1]: example,
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = warm.run(["validate", "-C", str(tmp_path)], folder=tmp_path, environ=environ)
    assert (done.code, done.out.splitlines()[:1], done.err) == (0, ["No problems found."], "")
