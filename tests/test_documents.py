"""The pages of docs: citations and links lead somewhere, tables are complete, and examples are valid.

A citation is the path of a page followed by the numbers of sections or rules: `docs/planning.md 2.8`,
`docs/interface.md §4`. Numbered places have anchors: `<a id="2.8"></a>`.
"""

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest
from jinja2.filters import FILTERS as JINJA

from syncengine.cli import SECTIONS, program
from syncengine.document.validation import names_of
from syncengine.errors import ExitCode
from syncengine.http.list_pages import SIGNS
from syncengine.manifest.lints import LINTS
from syncengine.manifest.schema import Tag
from syncengine.plan.checks import LINTS as PLANNING_LINTS
from syncengine.posted_time import templates
from syncengine.project.delivery_schema import SINKS
from syncengine.project.load import LINTS as SETTING_LINTS
from syncengine.render import DIAGNOSTIC_FORMATS, PLAN_FORMATS, REPORT_FORMATS
from syncengine.render.schemas import schemas
from syncengine.sandbox.bodies import TagBody
from syncengine.serve.probes import Metrics
from syncengine.templating.filters import ENTRIES, FilterEntry
from tests.manifest.loading import write
from tests.support import warm
from tests.support.formats import fitting
from tests.support.pages import BLOCK, FILE, WRITES, Walk, blocks, walked

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

DATA = "number;title;client;status;keywords;id;earlier\nACME-0042;Opposition;ACME Corp.;open;EP 1234567;4711;\n"
"""The list of matters that the examples read."""
TABLE = "CREATE TABLE matter (number, title, opened, closed)"
MATTER = "INSERT INTO matter VALUES ('ACME-0042', 'Opposition', '2024-05-01 09:00:00', NULL)"
TEMPLATE = re.compile(r"\{# (\S+\.j2) #\}\n")
"""The first line of a text template: a comment with its path."""
NUMBER = r"\d+(?:\.\d+)*"
CITATION = re.compile(
    rf"(?<![\w./-])(?P<page>[\w./-]*?[a-z][a-z-]*\.md)\b"
    rf"(?P<numbers>,?\ §?{NUMBER}(?:(?:,|\ and|\ to)\ §?{NUMBER})*)?",
    re.VERBOSE,
)
SECTION = re.compile(r"(?<!# )(?<!\[)§\d.{0,20}")
"""The number of a section, outside of its own heading and of link texts."""
RFC = re.compile(r"RFC \d+(?:,? §[\d.]+)+")
LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


def environ(home: Path) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def examples(kind: str) -> list[tuple[str, str]]:
    return [(page.name, body) for page in (ROOT / "README.md", *PAGES) for body in blocks(page, kind)]


def broken(text: str, folder: Path) -> Iterator[str]:
    """The citations in `text`, of a file in `folder`, that lead nowhere."""
    flat = " ".join(RFC.sub("", text).split())
    for found in CITATION.finditer(flat):
        page = next((base / found["page"] for base in (ROOT, folder) if (base / found["page"]).is_file()), None)
        if page is None:
            yield found[0]
        elif page.parent == DOCS:
            known = anchors(page)
            yield from (
                f"{found['page']} {name}" for name in re.findall(NUMBER, found["numbers"] or "") if name not in known
            )
    yield from SECTION.findall(CITATION.sub("", flat))


def anchors(page: Path) -> list[str]:
    """The explicit anchors of a page, and those of its headings."""
    text = text_of(page)
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    return ANCHOR.findall(text) + [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def dead_links(path: Path) -> Iterator[str]:
    """Links within the repository whose file or anchor does not exist."""
    for link in LINK.finditer(text_of(path)):
        if re.match(r"<?\w+:", link["path"]):
            continue
        page = path.parent / link["path"] if link["path"] else path
        if not page.exists() or (link["anchor"] and link["anchor"] not in anchors(page)):
            yield link[0]


# --- citations and links


@pytest.mark.parametrize("path", CITING, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_citation_leads_to_a_place_that_exists(path: Path) -> None:
    """A reader has only this repository to follow it."""
    assert list(broken(text_of(path), path.parent)) == []


@pytest.mark.parametrize(
    "text",
    [
        "see nothing.{md} 2.8",
        "docs/planning.{md} 2.99",
        "docs/planning.{md} 2.1, 2.99",
        "docs/planning.{md} 2.1 to 2.99",
        "docs/planning.{md}\n    2.99",
        "docs/interface.{md} §2, §44",
        "(§4)",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    """An unknown page, an unknown number, and a number without a page are found. RFCs may be cited, too."""
    assert list(broken(text.format(md="md"), ROOT / "tests"))
    valid = "docs/planning.md 1.3, 6; docs/interface.md §2, §4; RFC 8259 §6, §8.1; x.md5"
    assert list(broken(valid, ROOT / "tests")) == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_to_a_place_that_exists(path: Path) -> None:
    assert list(dead_links(path)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "PAGE.md"
    page.write_text('<a id="1"></a>\n## A heading\n[a](#1) [b](#a-heading) [c](#2) [d](GONE.md) [e](PAGE.md#3)\n')
    assert list(dead_links(page)) == ["](#2)", "](GONE.md)", "](PAGE.md#3)"]


# --- pages


def test_the_index_lists_every_page() -> None:
    listed = re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \| \S", text_of(DOCS / "README.md"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES if page.name != "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_anchor_equals_the_number_after_it(page: Path) -> None:
    """Anchors are unique in their page, too."""
    found = re.findall(r'<a id="([\d.]+)"></a>\s*(?:#+ |\*\*)§?([\d.]*\d)', text_of(page))
    assert [number for number, shown in found if number != shown] == []
    assert sorted(set(anchors(page))) == sorted(anchors(page))


COMMANDS = {
    **{name: f"\n| `{name}" for section in SECTIONS.values() for name in section},
    **{code.name: f"\n| {code.value} |" for code in ExitCode},
    **{name: name for name in (*PLAN_FORMATS, *REPORT_FORMATS, *DIAGNOSTIC_FORMATS)},
    **{code: f"\n| `{code}` |" for code in (*LINTS, *PLANNING_LINTS, *SETTING_LINTS)},
}
"""Commands, exit codes, formats and warnings, and how the page names each of them."""


def test_everything_that_a_command_line_shows_is_described() -> None:
    text = text_of(DOCS / "commands.md")
    assert [name for name, written in COMMANDS.items() if written not in text] == []


@pytest.mark.parametrize("name", ["state", "time", "connector", "health"])
def test_the_row_of_a_group_names_its_commands(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name} (.*?)` \|", text_of(DOCS / "commands.md"), re.MULTILINE)
    group = program.get_command(context := click.Context(program), name)
    assert isinstance(group, click.Group)
    assert {each.split()[0] for each in row.split("\\|")} == {*group.list_commands(context)}


def test_every_field_of_a_tag_is_described() -> None:
    """One table says what the service makes of it, and the example of a manifest has it, but for `also modified…`."""
    service, example = text_of(DOCS / "interface.md"), text_of(DOCS / "manifests.md")
    assert [info.alias for info in TagBody.model_fields.values() if f"`{info.alias}`" not in service] == []
    absent = {name for name in names_of(Tag) if not re.search(rf"\b{name}\b", example)}
    assert absent == {"path", "modifiedTimestamp", "closedTimestamp"}


@pytest.mark.parametrize("kind", SINKS)
def test_every_kind_of_sink_is_described(kind: str) -> None:
    """One table says how often it gets a group, and the page of all settings has an example."""
    assert f"\n| `{kind}`" in text_of(DOCS / "posted-time.md")
    assert f"      {kind}:" in text_of(DOCS / "posted-time-settings.md")


def test_every_state_of_a_group_is_described() -> None:
    schema = schemas()["group.schema.json"]
    states = re.findall(r"^\| `([\w-]+)` \| ", text_of(DOCS / "posted-time.md").partition("## 6.")[2], re.MULTILINE)
    assert states == schema["$defs"]["GroupState"]["enum"]


SETTINGS = json.loads(text_of(ROOT / "schemas/project.schema.json"))
"""`environments` repeats its keys, and kinds of resources have pages of their own."""


def filter_rows(entries: Mapping[str, FilterEntry]) -> list[str]:
    return [f"| {entry.written} | {entry.result} |" for entry in entries.values() if entry.written]


def sign_rows() -> list[str]:
    """The names that a source is looked through for."""
    return [f"| {value} | {', '.join(f'`{name}`' for name in sorted(names))} |" for value, names in SIGNS.items()]


TABLES: dict[tuple[str, str], tuple[str, Callable[[], Iterable[str]]]] = {
    ("project-file.md", "keys"): ("key | meaning", lambda: rows_of(SETTINGS, SETTINGS, "")),
    ("operate.md", "metrics"): ("metric | meaning", lambda: metric_rows()),
    ("manifests-from-data.md", "filters"): ("filter | result", lambda: filter_rows(ENTRIES)),
    ("manifests-from-data.md", "signs"): ("value | names of fields", sign_rows),
    ("posted-time-settings.md", "filters"): (
        "filter | result for 10000 s, or for a time", lambda: filter_rows(templates.ENTRIES),
    ),
}  # fmt: skip
"""The tables between two marks of a page, which are made of what the program knows."""


@pytest.mark.parametrize(("page", "name"), TABLES)
def test_a_table_of_a_page_is_complete(page: str, name: str) -> None:
    """With `SYNCENGINE_DOCS=write`, the page is written."""
    head, rows = TABLES[page, name]
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = text_of(DOCS / page).partition(begin)
    table = "\n".join([f"| {head} |", "|---|---|", *rows()])
    text = f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}"
    if WRITES:
        (DOCS / page).write_text(text, encoding="utf-8")
    assert text_of(DOCS / page) == text


def test_every_filter_of_jinja_is_ours_or_described() -> None:
    """The table has the filters that Jinja2 does not have, and those that read text in our own way."""
    assert {name for name, entry in ENTRIES.items() if not entry.written} <= {*JINJA} <= {*ENTRIES, "random"}


def rows_of(schema: dict[str, Any], node: dict[str, Any], prefix: str) -> Iterator[str]:
    """The keys below one place of a schema, each with its description."""
    for name, value in node.get("properties", {}).items():
        key = prefix + name
        if told := value.get("description") or resolved(schema, value).get("description"):
            yield f"| `{key}` | {told} |"
        if key not in ("environments", "defaults"):
            yield from below(schema, value, key)


def below(schema: dict[str, Any], value: dict[str, Any], key: str) -> Iterator[str]:
    """The keys of a section, of the items of a list, or of sections that have names."""
    section = resolved(schema, value)
    if "items" in section:
        yield from rows_of(schema, resolved(schema, section["items"]), f"{key}[].")
    if isinstance(named := section.get("additionalProperties"), dict):
        yield from rows_of(schema, resolved(schema, named), f"{key}.NAME.")
    if key.rpartition(".")[2] not in ("apiKey", "callerKey"):
        yield from rows_of(schema, section, f"{key}.")


def resolved(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    name = value.get("$ref", "").rpartition("/")[2]
    return schema["$defs"][name] if name else value


def metric_rows() -> Iterator[str]:
    for kind in Metrics().registry.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(kind.type, "")
        yield f"| `{kind.name}{suffix}` | {kind.documentation} |"


# --- examples


@pytest.mark.parametrize(("page", "example"), examples("json"))
def test_an_example_of_a_format_fits_its_schema(page: str, example: str) -> None:
    fitting(json.loads(example))


@pytest.mark.parametrize(("page", "example"), [*examples("yaml"), *examples("jinja")])
def test_an_example_of_a_file_is_valid(page: str, example: str, tmp_path: Path) -> None:
    """In a project with this file, `validate` finds no error and no warning."""
    named = FILE.match(example) or TEMPLATE.match(example)
    assert named, f"an example in {page} does not say in its first line which file it is"
    category = "tagCategories: [{externalId: acme, label: ACME Corp.}]\n"
    files = {
        "manifests/categories.yaml": "" if "tagCategories:" in example else category,
        "data/matters.csv": DATA,
        named[1]: example,
    }
    write(tmp_path, files)
    with closing(sqlite3.connect(tmp_path / "data/matters.db")) as connection, connection:
        connection.execute(TABLE)
        connection.execute(MATTER)
    done = warm.run(["validate"], folder=tmp_path, environ=environ(tmp_path))
    assert (done.code, done.out.splitlines()[:1], done.err) == (0, ["No problems found."], "")


ELSEWHERE = {DOCS / "moving.md"}
"""Pages whose commands need a service that was used before; `tests/connector/test_moving.py` walks them."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "console") and page not in ELSEWHERE], ids=lambda page: page.name
)
def test_commands_print_what_a_page_shows(page: Path, tmp_path: Path) -> None:
    text, walk = walked(page, Walk(tmp_path))
    assert walk == text


@pytest.mark.parametrize(
    ("page", "line"), [(name, line) for name, body in examples("sh") for line in body.splitlines()]
)
def test_a_command_of_a_page_exists(page: str, line: str) -> None:
    """The program knows the command and its options; commands of other programs are not checked."""
    words = shlex.split(line, comments=True)
    if "syncengine" not in words:
        return
    arguments = list(takewhile(lambda word: word not in ("&", "|", "&&"), words[words.index("syncengine") + 1 :]))
    assert warm.run([*arguments, "--help"], folder=ROOT, environ=environ(ROOT)).code == 0
