"""Values from data arrive exactly as they are, in any encoding, whatever characters they contain."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from syncengine.manifest.desired import load
from syncengine.manifest.schema import ENCODING_SCHEMA, ENCODINGS, codec_of
from syncengine.manifest.sources.files import text_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.load import load_project
from syncengine.resource import Row
from tests.cli.program import Project
from tests.cli.service import Service
from tests.manifest.loading import Files, block, errors, loaded, loop, tag, write

VALUES = [
    *("a: b", "- a", "# no comment", "a #2", "'", '"', "''", '"quoted"', "{{ row.name }}", "{% raw %}", "{# x #}"),
    *("  leading", "trailing  ", "no", "0123", "1.10", "1e3", "null", "~", "true", "2024-01-01"),
    *("*a", "&a", "!a", "%a"),
    *("@a", "`a`", "[a]", "{a: b}", "a\\nb", "two\nlines", "tab\there", "é", "日本語", "😀", "a|b", "> a", "?"),
    *(":", "-", "---", "...", "<<", "=", "\u00a0x", "\u200b", "$(x)", "&amp;<b>", "\\", "a,b;c"),
]
BLOCK = block(
    "csv: ../rows.csv",
    "name: 'T{{ row.n }}', description: '{{ row.v }}', metadata: {Value: '{{ row.v }}', Both: '<{{ row.v }}>'}, "
    "externalId: '{{ row.line }}', managedBy: '{{ row.line }}', keywords: ['key{{ row.n }}', '{{ row.word }}']",
)


SAME = [{"n": "A", "v": "0123"}, {"n": "B", "v": "nö"}]


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
    write(project.folder, {"rows.csv": rows_of(VALUES), "manifests/m.yaml": BLOCK})
    done = project.run("apply", "-y")
    assert done.code == 0, (done.out, done.err)
    held = {tag["name"]: tag for tag in service.holds()["tags"]}
    for number, value in enumerate(VALUES):
        found = held[f"T{number}"]
        assert found["description"] == value
        assert found["metadata"] == {"Value": value, "Both": f"<{value}>"}
        one_line = value if value.isprintable() and value == value.strip() else ""
        assert (found.get("externalId", ""), found.get("managedBy", "")) == (one_line, one_line)
        words = {f"key{number}", *([f"k{number} {one_line} k"] if one_line else [])}
        assert words <= set(found["keywords"])
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_tojson_makes_any_value_safe_in_a_text_template(tmp_path: Path) -> None:
    template = loop(tag="name: T{{ row.n }}, description: {{ row.v | tojson }}")
    desired = loaded(tmp_path, {"r.csv": rows_of(VALUES), "manifests/m.yaml.j2": template})
    assert [r.body.fields["description"] for r in desired.resources.values()] == VALUES


@pytest.mark.parametrize(
    ("source", "content", "lines"),
    [
        ("csv: ../rows", "n,v\nA,0123\nB,nö\n", [2, 3]),
        ("json: ../rows", json.dumps(SAME), [1, 2]),
        ("json: ../rows", json.dumps(SAME, indent=1), [2, 6]),
        ("jsonl: ../rows", '{"n": "A", "v": "0123"}\n\n{"n": "B", "v": "nö"}\n', [1, 3]),
        ("yaml: ../rows", "- {n: A, v: 0123}\n- {n: B, v: nö}\n", [1, 2]),
        (
            "csv: ../rows, encoding: cp1252, delimiter: ';', columns: [n, v], distinct: n",
            "A;0123\nB;nö\nA;x\n".encode("cp1252"), [1, 2],
        ),
    ],
)  # fmt: skip
def test_every_kind_of_file_gives_the_same_rows(
    tmp_path: Path, source: str, content: str | bytes, lines: list[int]
) -> None:
    manifest = block(source, "name: '{{ row.n }}', managedBy: '{{ row.v }}'")
    made = loaded(tmp_path, {"rows": content, "manifests/m.yaml": manifest}).resources.values()
    assert [each.body.fields["managedBy"] for each in made] == ["0123", "nö"]
    assert [each.source.data and each.source.data.row for each in made] == lines


def test_lists_are_lists_and_what_is_empty_is_left_out(tmp_path: Path) -> None:
    """Nested lists are flattened, empty items and fields are left out, and one row can make several kinds. A row may
    have a name that the program uses internally."""
    manifest = """generate:
  - forEach: {json: ../rows.json}
    as: context
    when: "{{ context.open }}"
    tagCategories: [{externalId: "c-{{ context.n }}", label: "{{ context.n }}"}]
    tags:
      - name: "{{ context.n }}"
        category: "c-{{ context.n }}"
        keywords: ["{{ context.words }}", "{{ context.one }}", fixed, "{{ '' }}"]
        assigneeExternalIds: "{{ context.who }}"
        closedTimestamp: "{{ context.closed }}"
        protect: "{{ context.n == 'A' }}"
        visibility: "{% if context.n == 'A' %}PRIVATE{% else %}PUBLIC{% endif %}"
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
    assert ("closedTimestamp" in a.body.fields, b.body.fields["closedTimestamp"]) == (False, 1714554000000)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_breaks_of_data_are_line_feeds(tmp_path: Path, end: str) -> None:
    """In values, lists and names of JSON, too; row numbers are the lines that an editor shows."""
    nested = {f"a{end}b": [f"two{end}lines"]}
    files = {
        "r.csv": f'n,v{end}A,"two{end}lines"{end}B,x{end}',
        "r.jsonl": json.dumps({"n": "A", "v": f"two{end}lines", "w": nested}),
        "manifests/a.yaml": block("csv: ../r.csv", "name: 'C{{ row.n }}', description: '{{ row.v }}'"),
        "manifests/b.yaml": block("jsonl: ../r.jsonl", "name: 'O{{ row.n }}', description: '{{ row.v }}'"),
        "manifests/c.yaml.j2": loop(tag="name: J{{ row.n }}, description: {{ row.v | tojson }}"),
        "manifests/d.yaml.j2": loop("'../r.jsonl'", "name: N, description: {{ row.w | tojson | tojson }}"),
        "manifests/e.yaml": block("jsonl: ../r.jsonl", "name: M, description: '{{ row.w | tojson }}'"),
    }
    desired = loaded(tmp_path, files)
    found = {key.name: (r.body.fields["description"], r.source.data) for key, r in desired.resources.items()}
    assert found["CA"] == found["JA"] == ("two\nlines", Row("r.csv", 2))
    assert found["CB"] == found["JB"] == ("x", Row("r.csv", 4))
    assert found["OA"][0] == "two\nlines"
    for name in ("N", "M"):
        assert json.loads(str(found[name][0])) == {"a\nb": ["two\nlines"]}


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
        "tags: [{name: '{{ a }}', description: '{% if %}', keywords: ['{{ env.HOME }} x'], managedBy: '{# u #}'}]"
    )
    (made,) = loaded(tmp_path, {"manifests/m.yaml": manifest}).resources.values()
    fields = made.body.fields
    assert (made.key.name, fields["description"], fields["managedBy"]) == ("{{ a }}", "{% if %}", "{# u #}")
    assert "{{ env.HOME }} x" in made.body.keywords


FILTERS = {
    "words of prose": ('"Smith, (Jones) & Co. – C++"', "row.v | words | join('|')", "Smith|Jones|Co|C++"),
    "ascii of letters with strokes": (
        "Łódź, Ærø, Gıda, Þór, STRAẞE", "row.v | ascii", "Lodz, AEro, Gida, Thor, STRASSE",
    ),
    "date of another form": ("01/05/2024", "row.v | date(read='%d/%m/%Y')", "2024-05-01"),
    "date of an early year": ("0987-05-01", "row.v | date('%d.%m.%Y %%Y %G')", "01.05.0987 %Y 0987"),
    "groups": (
        [{"a": "x"}, {"a": "y"}, {"a": "X"}],
        "row.v | groupby('a') | map(attribute='list') | map('length') | join('|')", "2|1",
    ),
    "what is not there": ("a", "row.zz | default('x') ~ var.zz | d('y') ~ [] | first | default('z')", "xyz"),
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


CSV = {
    "a quoted blank and quotes": ('n,v\nA," ""x"""\n', "row.v", ' "x"'),
    "inches": ('n,v\nA,24" screen\n', "row.v", '24" screen'),
    "a quoted word": ('n,v\nA,the "x" case\n', "row.v", 'the "x" case'),
    "nothing but quotes": ('n,v\nA,""""\n', "row.v", '"'),
    "columns of one name": (
        "n,v,v,v 3,v\rA,1,2,3,4\r", '[row.v, row["v 2"], row["v 3"], row["v 4"]] | join("-")', "1-2-3-4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expression", "value"), CSV.values(), ids=CSV.keys())
def test_a_cell_is_as_a_spreadsheet_shows_it(tmp_path: Path, content: str, expression: str, value: str) -> None:
    """Quotation marks inside of a value are text. A repeated column, as trackers export, gets the next free number."""
    manifest = block("csv: ../r.csv", f"name: A, metadata: {{v: '{{{{ {expression} }}}}'}}")
    assert tag(loaded(tmp_path, {"r.csv": content, "manifests/m.yaml": manifest}), "A").body.metadata == {"v": value}


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


MANIFEST = """\
defaults: {tags: {visibility: PRIVATE, metadata: {Office: Vienna}}}
tagCategories: [{externalId: acme, label: "no", keywords: ["acme: corp"], protect: true, previously: [old]}]
activityTypes: [{code: "0101", label: "Plan # and prepare", enableIfNew: true}]
tags:
  - {name: "0042", description: "two\\nlines, and {{ no }} template", category: acme, keywords: ["- x", "yes"],
     metadata: {"Client: name": "~"}, closedTimestamp: 2024-05-01T09:00:00Z, previously: ["#41"], protect: true}
  - {name: ALONE, visibility: PUBLIC, keywords: []}
removed: [{tag: GONE, as: retire, reason: "closed: ticket 77"}]
generate: [{forEach: {csv: ../texts.csv}, tags: [{name: "{{ row.n }}", description: "{{ row.text }}"}]}]
"""
TEXTS = 'n,text\nG-1," leading, ""quoted"" # and {{ this }}"\nG-2,no\n'


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_what_is_rendered_means_the_same(project: Project, format: str) -> None:
    """It has the same resources, renames, protections and removals. A comment names the line and the row of each."""

    def meant() -> tuple[object, object]:
        found = load(load_project(folder=project.folder, environ={}))
        resources = {key: (each.body, each.protect, each.previously) for key, each in found.resources.items()}
        return resources, {key: (each.how, each.reason) for key, each in found.removed.items()}

    files = {"manifests/m.yaml": MANIFEST, "texts.csv": TEXTS, "manifests/v.yaml": BLOCK, "rows.csv": rows_of(VALUES)}
    write(project.folder, files)
    before = meant()
    done = project.run("render", "--format", format)
    assert done.code == 0, done.err
    if format == "yaml":
        assert '  # manifests/m.yaml:9 (texts.csv:3)\n  - name: "G-2"\n' in done.out
        assert '  # manifests/m.yaml:5\n  - name: "0042"\n' in done.out
    write(project.folder, {"texts.csv": "n\nG-1\n"})
    refused = project.run("render", "--format", "json")
    assert (refused.code, "bad-template" in refused.codes) == (8, True)
    (project.folder / "manifests/m.yaml").unlink()
    (project.folder / "manifests/v.yaml").unlink()
    write(project.folder, {f"manifests/m.{format}": done.out})
    assert meant() == before


def encoded(name: str, data: bytes = b"n\nAcme\n") -> Files:
    """A manifest with a tag for each row of data in this encoding."""
    return {"r.csv": data, "manifests/m.yaml": block(f"csv: ../r.csv, encoding: {name}")}


@pytest.mark.parametrize("name", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "hex"])
def test_a_codec_that_is_no_encoding_of_files_is_refused(tmp_path: Path, name: str) -> None:
    """Codecs that do not encode text files are refused before the file is read; punycode takes quadratic time."""
    (found,) = errors(tmp_path, encoded(name))
    assert (found.code, found.line, found.column) == ("bad-value", 2, 40)
    assert found.message.startswith(f'`encoding` must be an encoding such as utf-8 or cp1252, not "{name}"')
    assert found.message.endswith("did you mean `utf-8`?") == (name == "utf-7")


@pytest.mark.parametrize("name", ["UTF8", "utf_8", "Windows-1252", "Latin1", "ISO8859-15", "Shift_JIS", "us-ascii"])
def test_an_encoding_has_the_names_that_people_write(tmp_path: Path, name: str) -> None:
    """Any case and separator is accepted, and the schema's pattern accepts the same names."""
    assert [str(key) for key in loaded(tmp_path, encoded(name)).resources] == ["tag/Acme"]
    assert re.search(ENCODING_SCHEMA["pattern"], name)


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path, name: str) -> None:
    """Programs write it in any Unicode encoding, and twice where they join files."""
    made = loaded(tmp_path, encoded(name, "\ufeff\ufeffn\nAcme\n".encode(name))).resources
    assert [str(key) for key in made] == ["tag/Acme"]


@pytest.mark.parametrize("name", ENCODINGS)
def test_any_bytes_are_text_or_trouble(name: str) -> None:
    """In every encoding, malformed bytes raise SourceTrouble and nothing else."""
    codec = codec_of(name)
    assert codec is not None
    for data in (bytes(range(256)), bytes(reversed(range(256))), b"\x1b$B\x80", b"\xff\xfe\x00\xd8", b"n\nAcme\n"):
        try:
            assert text_of(data, "r.csv", codec).isprintable() in (True, False)
        except SourceTrouble as trouble:
            assert str(trouble).startswith("r.csv:")


ROWS = "number,title\n" + "".join(f"A-{n},Acme {n}\n" for n in range(40))


@pytest.mark.parametrize(
    ("written", "declared", "likely"),
    [
        ("utf-16-be", "utf-16-le", "utf-16-be"),
        ("utf-16-le", "utf-16-be", "utf-16-le"),
        ("utf-16-be", "utf-16", "utf-16-be"),
        ("utf-8", "utf-16", "utf-8"),
        ("utf-8", "utf-16-le", "utf-8"),
    ],
)
@pytest.mark.parametrize("rows", [ROWS, "号码,题目\n一,二\n三,二\n"], ids=["letters", "signs"])
def test_text_that_is_not_utf_16_is_no_header_without_rows(
    tmp_path: Path, written: str, declared: str, likely: str, rows: str
) -> None:
    """Most bytes are text in UTF-16, without a line feed: then no row would be left, and all tags be removed."""
    data = rows.encode(written, "replace")
    data += b"\n" * (len(data) % 2)
    (found,) = errors(tmp_path, encoded(f"{declared}, allowEmpty: true", data))
    assert (found.file, found.line) == ("manifests/m.yaml", 2)
    assert found.message.startswith(f"r.csv:1: this is not {declared.upper()} but probably {likely}: ")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("rows", [ROWS, "号码,题目\n一,二\n三,二\n"], ids=["letters", "signs"])
def test_utf_16_is_read(name: str, mark: str, rows: str) -> None:
    """In either order of bytes, with and without a mark of it."""
    assert text_of((mark + rows).encode(name), "r.csv", name) == rows
    if name == "utf-16":
        assert text_of(("\ufeff" + rows).encode("utf-16-be"), "r.csv", name) == rows
