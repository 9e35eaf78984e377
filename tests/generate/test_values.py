"""Values from data arrive exactly as they are, whatever characters they contain."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from syncengine.resource import Row
from tests.cli.program import Project
from tests.cli.service import Service
from tests.manifest.loading import block, loaded, loop, problems, tag

VALUES = [
    *("a: b", "- a", "# no comment", "a #2", "'", '"', "''", '"quoted"', "{{ row.name }}", "{% raw %}", "{# x #}"),
    *("  leading", "trailing  ", "no", "0123", "1.10", "1e3", "null", "~", "true", "2024-01-01"),
    *("*a", "&a", "!a", "%a"),
    *("@a", "`a`", "[a]", "{a: b}", "a\\nb", "two\nlines", "tab\there", "é", "日本語", "😀", "a|b", "> a", "?"),
    *(":", "-", "---", "...", "<<", "=", "\u00a0x", "\u200b", "$(x)", "&amp;<b>", "\\", "a,b;c"),
]
BLOCK = """generate:
  - forEach: {csv: ../rows.csv}
    tags:
      - name: "T{{ row.n }}"
        description: "{{ row.v }}"
        metadata: {Value: "{{ row.v }}", Both: "<{{ row.v }}>"}
        externalId: "{{ row.line }}"
        managedBy: "{{ row.line }}"
        keywords: ["key{{ row.n }}", "{{ row.word }}"]
"""


def rows_of(values: list[str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["n", "v", "line", "word"])
    for number, value in enumerate(values):
        one_line = value if value.isprintable() and value == value.strip() else ""
        writer.writerow([number, value, one_line, f"k{number} {one_line} k" if one_line else ""])
    return out.getvalue()


def test_values_arrive_at_the_service_byte_by_byte(project: Project, service: Service) -> None:
    """Values that look like YAML, Jinja2 or CSV syntax reach the service unchanged."""
    (project.folder / "rows.csv").write_text(rows_of(VALUES), encoding="utf-8", newline="")
    (project.folder / "manifests").mkdir()
    (project.folder / "manifests" / "m.yaml").write_text(BLOCK, encoding="utf-8")
    done = project.run("apply", "-y")
    assert done.code == 0, (done.out, done.err)
    held = {tag["name"]: tag for tag in service.holds()["tags"]}
    for number, value in enumerate(VALUES):
        assert held[f"T{number}"]["description"] == value
        assert held[f"T{number}"]["metadata"] == {"Value": value, "Both": f"<{value}>"}
        one_line = value if value.isprintable() and value == value.strip() else ""
        assert (held[f"T{number}"].get("externalId", ""), held[f"T{number}"].get("managedBy", "")) == (
            one_line,
            one_line,
        )
        words = {f"key{number}", *([f"k{number} {one_line} k"] if one_line else [])}
        assert words <= set(held[f"T{number}"]["keywords"])
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_tojson_makes_any_value_safe_in_a_text_template(tmp_path: Path) -> None:
    template = loop(tag="name: T{{ row.n }}, description: {{ row.v | tojson }}")
    desired = loaded(tmp_path, {"r.csv": rows_of(VALUES), "manifests/m.yaml.j2": template})
    assert [r.body.fields["description"] for r in desired.resources.values()] == VALUES


def test_a_rendered_manifest_means_the_same_as_its_sources(tmp_path: Path) -> None:
    from syncengine.render.manifest import manifest_yaml

    first = loaded(tmp_path / "a", {"rows.csv": rows_of(VALUES), "manifests/m.yaml": BLOCK})
    text = manifest_yaml(first.resources.values())
    assert "# manifests/m.yaml:4 (rows.csv:2)" in text
    again = loaded(tmp_path / "b", {"manifests/m.yaml": text})
    assert [(r.key, r.body) for r in again.resources.values()] == [(r.key, r.body) for r in first.resources.values()]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("rows.csv", "n,v\nA,0123\nB,no\n"),
        ("rows.json", json.dumps([{"n": "A", "v": "0123"}, {"n": "B", "v": "no"}])),
        ("rows.json", json.dumps([{"n": "A", "v": "0123"}, {"n": "B", "v": "no"}], indent=1)),
        ("rows.jsonl", '{"n": "A", "v": "0123"}\n\n{"n": "B", "v": "no"}\n'),
        ("rows.yaml", "- {n: A, v: 0123}\n- {n: B, v: no}\n"),
    ],
)
def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path, file: str, content: str) -> None:
    kind = file.partition(".")[2]
    manifest = block(f"{kind}: ../{file}", "name: '{{ row.n }}', managedBy: '{{ row.v }}'")
    desired = loaded(tmp_path, {file: content, "manifests/m.yaml": manifest})
    assert [r.body.fields["managedBy"] for r in desired.resources.values()] == ["0123", "no"]
    lines = {"csv": [2, 3], "json": [1, 2] if "\n" not in content else [2, 6], "jsonl": [1, 3], "yaml": [1, 2]}[kind]
    assert [r.source.data and r.source.data.row for r in desired.resources.values()] == lines


def test_lists_are_lists_and_what_is_empty_is_left_out(tmp_path: Path) -> None:
    """Nested lists are flattened, empty items and fields are left out, and one row can make several kinds."""
    manifest = """generate:
  - forEach: {json: ../rows.json}
    as: m
    when: "{{ m.open }}"
    tagCategories:
      - {externalId: "c-{{ m.n }}", label: "{{ m.n }}"}
    tags:
      - name: "{{ m.n }}"
        category: "c-{{ m.n }}"
        keywords: ["{{ m.words }}", "{{ m.one }}", fixed, "{{ '' }}"]
        assigneeExternalIds: "{{ m.who }}"
        closedTimestamp: "{{ m.closed }}"
        protect: "{{ m.n == 'A' }}"
        visibility: "{% if m.n == 'A' %}PRIVATE{% else %}PUBLIC{% endif %}"
"""
    rows: list[dict[str, Any]] = [
        {"n": "A", "open": True, "words": ["w1x", "w2x"], "one": "", "who": ["jd"], "closed": None},
        {"n": "B", "open": True, "words": [], "one": "single", "who": [], "closed": "2024-05-01T09:00:00Z"},
        {"n": "C", "open": False, "words": [], "one": "", "who": [], "closed": None},
    ]
    desired = loaded(tmp_path, {"rows.json": json.dumps(rows), "manifests/m.yaml": manifest})
    assert sorted(str(key) for key in desired.resources) == ["category/c-A", "category/c-B", "tag/A", "tag/B"]
    a, b = tag(desired, "A"), tag(desired, "B")
    assert (a.body.keywords, b.body.keywords) == (("w1x", "w2x", "fixed", "A"), ("single", "fixed", "B"))
    assert (a.protect, b.protect) == (True, False)
    assert (a.body.fields["visibility"], b.body.fields["visibility"]) == ("PRIVATE", "PUBLIC")
    assert "closedTimestamp" not in a.body.fields
    assert b.body.fields["closedTimestamp"] == 1714554000000


def test_other_encodings_delimiters_and_headerless_files(tmp_path: Path) -> None:
    """`encoding`, `delimiter`, `columns` and `distinct`; an invalid byte names the likely encoding."""
    data = "A;Müller\nB;x\nA;other\n".encode("cp1252")
    form, tag = (
        "csv: ../r.csv, delimiter: ';', columns: [n, v], distinct: n",
        "name: '{{ row.n }}', managedBy: '{{ row.v }}'",
    )
    (found,) = problems(tmp_path, {"r.csv": data, "manifests/m.yaml": block(form, tag)})
    assert (found.code, found.file, found.line, found.column) == ("bad-source", "manifests/m.yaml", 2, 20)
    assert "r.csv:1: byte 0xfc" in found.message
    assert "encoding: cp1252" in found.message
    desired = loaded(tmp_path, {"manifests/m.yaml": block(f"{form}, encoding: cp1252", tag)})
    assert [r.body.fields["managedBy"] for r in desired.resources.values()] == ["Müller", "x"]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_breaks_of_data_are_line_feeds(tmp_path: Path, end: str) -> None:
    """Line breaks in values become line feeds, and row numbers are the lines that an editor shows."""
    cells = f'n,v{end}A,"two{end}lines"{end}B,x{end}'
    files = {
        "r.csv": cells,
        "r.json": json.dumps([{"n": "A", "v": f"two{end}lines"}]),
        "manifests/a.yaml": block("csv: ../r.csv", "name: 'C{{ row.n }}', description: '{{ row.v }}'"),
        "manifests/b.yaml": block("json: ../r.json", "name: 'O{{ row.n }}', description: '{{ row.v }}'"),
        "manifests/c.yaml.j2": loop(tag="name: J{{ row.n }}, description: {{ row.v | tojson }}"),
    }
    desired = loaded(tmp_path, files)
    found = {key.name: (r.body.fields["description"], r.source.data) for key, r in desired.resources.items()}
    assert found["CA"] == found["JA"] == ("two\nlines", Row("r.csv", 2))
    assert found["CB"] == found["JB"] == ("x", Row("r.csv", 4))
    assert found["OA"][0] == "two\nlines"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_json_of_data_has_line_feeds(tmp_path: Path, end: str) -> None:
    """Line breaks in texts, lists and names of JSON become line feeds, too."""
    value = {f"a{end}b": [f"two{end}lines"]}
    tag = "name: A, description: {{ row.v | tojson | tojson }}, metadata: {M: {{ row.t | tojson }}}"
    files = {
        "r.jsonl": json.dumps({"v": value, "t": f"two{end}lines"}),
        "manifests/a.yaml.j2": loop("'../r.jsonl'", tag),
        "manifests/b.yaml": block("jsonl: ../r.jsonl", "name: B, description: '{{ row.v | tojson }}'"),
    }
    first, second = loaded(tmp_path, files).resources.values()
    assert first.body.metadata["M"] == "two\nlines"
    for made in (first, second):
        assert json.loads(str(made.body.fields["description"])) == {"a\nb": ["two\nlines"]}


def test_a_whole_mapping_comes_from_data(tmp_path: Path) -> None:
    """A mapping keeps its names; numbers and flags are written as in the data, and null is left out."""
    rows = '[{"m": {"Client: a": "no", "Number": 1.50, "Flag": true, "None": null, "{{ x }}": "{{ y }}"}}]'
    manifest = block("json: ../r.json", "name: A, metadata: '{{ row.m }}'")
    (made,) = loaded(tmp_path, {"r.json": rows, "manifests/m.yaml": manifest}).resources.values()
    wanted = {"Client: a": "no", "Number": "1.50", "Flag": "true", "{{ x }}": "{{ y }}"}
    assert dict(made.body.metadata) == wanted


def test_generated_resources_override_defaults(tmp_path: Path) -> None:
    """A row overrides the defaults of its file, which override those of the project."""
    settings = "version: 1\ndefaults: {tags: {metadata: {P: project, F: project}, visibility: PRIVATE}}\n"
    manifest = (
        "defaults: {tags: {metadata: {F: file, R: file}}}\n"
        "generate:\n  - forEach: {csv: ../r.csv}\n    tags: [{name: '{{ row.n }}', metadata: {R: '{{ row.n }}'}}]\n"
        "    activityTypes: [{code: 'a-{{ row.n }}', label: '{{ row.n }}'}]\n"
    )
    desired = loaded(tmp_path, {"syncengine.yaml": settings, "r.csv": "n\nA\n", "manifests/m.yaml": manifest})
    made = tag(desired, "A")
    assert dict(made.body.metadata) == {"P": "project", "F": "file", "R": "A"}
    assert made.body.fields["visibility"] == "PRIVATE"
    assert sorted(map(str, desired.resources)) == ["activity-type/a-A", "tag/A"]


def test_braces_of_other_files_are_text(tmp_path: Path) -> None:
    """Only `generate` blocks and files named .yaml.j2 are templates."""
    manifest = (
        "tags:\n  - {name: '{{ a }}', description: '{% if %}', keywords: ['{{ env.HOME }} x'], managedBy: '{# u #}'}\n"
    )
    (made,) = loaded(tmp_path, {"manifests/m.yaml": manifest}).resources.values()
    assert (made.key.name, made.body.fields["description"], made.body.fields["managedBy"]) == (
        "{{ a }}",
        "{% if %}",
        "{# u #}",
    )
    assert "{{ env.HOME }} x" in made.body.keywords


FILTERS = {
    "words of prose": ('"Smith, (Jones) & Co. – C++"', "row.v | words | join('|')", "Smith|Jones|Co|C++"),
    "words of blanks": (" a  b a", "row.v | words | join('|')", "a|b"),
    "ascii of letters with strokes": (
        "Łódź, Ærø, Gıda, Þór, STRAẞE", "row.v | ascii", "Lodz, AEro, Gida, Thor, STRASSE",
    ),
    "slug of letters with strokes": ("Łódź, Ærø, Gıda, Þór", "row.v | slug", "lodz-aero-gida-thor"),
    "ascii of a long text": ("é\u0301x" * 300, "row.v | ascii", "ex" * 300),
    "date of another form": ("01/05/2024", "row.v | date(read='%d/%m/%Y')", "2024-05-01"),
    "date of an early year": ("0987-05-01", "row.v | date('%d.%m.%Y %%Y %G')", "01.05.0987 %Y 0987"),
    "groups": (
        [{"a": "x"}, {"a": "y"}, {"a": "X"}],
        "row.v | groupby('a') | map(attribute='list') | map('length') | join('|')", "2|1",
    ),
    "a slice": ("abcdef", "row.v[1:3] ~ row.v[::-1]", "bcfedcba"),
    "what is not there": ("a", "row.zz | default('x') ~ var.zz | d('y') ~ [] | first | default('z')", "xyz"),
    "what is there": ("", "row.v | default('x') ~ row.v | default('y', true) ~ row.zz | default('z', true)", "yz"),
    "a sorted list": ([{"a": 2}, {"a": 1}], "(row.v | sort(attribute='a') | first).a", "1"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "expression", "text"), FILTERS.values(), ids=FILTERS.keys())
def test_what_templates_do_with_values(tmp_path: Path, value: Any, expression: str, text: str) -> None:
    """A block and a text template give the same result."""
    files = {
        "r.json": json.dumps([{"v": value}]),
        "manifests/a.yaml": block("json: ../r.json", f'name: A, managedBy: "<{{{{ {expression} }}}}>"'),
        "manifests/b.yaml.j2": loop("'../r.json'", f"name: B, managedBy: '<{{{{ {expression} }}}}>'"),
    }
    desired = loaded(tmp_path, files)
    assert [r.body.fields["managedBy"] for r in desired.resources.values()] == [f"<{text}>"] * 2


NUMBERS = ["12345678901234567890.123456789", "1e300", "1.50", "0.1", "100000000000000000000000", "-7", "2.5E-3"]


def test_tojson_keeps_every_digit(tmp_path: Path) -> None:
    """Numbers keep their spelling in lists and in objects."""
    numbers = ", ".join(NUMBERS)
    rows = f'[{{"v": [{numbers}, true, null, "\u00e9\\"", {{"a b": 1.50, "c": []}}]}}]'
    manifest = block("json: ../r.json", "name: A, description: '{{ row.v | tojson }}'")
    (made,) = loaded(tmp_path, {"r.json": rows, "manifests/m.yaml": manifest}).resources.values()
    text = str(made.body.fields["description"])
    assert text == f'[{numbers}, true, null, "\\u00e9\\"", {{"a b": 1.50, "c": []}}]'
    assert json.loads(text) == json.loads(rows)[0]["v"]


@pytest.mark.parametrize("name", ["result", "context", "environment", "tag"])
def test_a_row_may_have_a_name_that_the_program_uses_internally(tmp_path: Path, name: str) -> None:
    text = f"generate:\n  - forEach: {{csv: ../r.csv}}\n    as: {name}\n    tags: [{{name: 'T{{{{ {name}.n }}}}'}}]\n"
    desired = loaded(tmp_path, {"r.csv": "n\n1\n2\n3\n", "manifests/m.yaml": text})
    assert [key.name for key in desired.resources] == ["T1", "T2", "T3"]
