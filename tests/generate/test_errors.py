"""Every error names the file and line of the template, and the row of the data."""

import json
import sqlite3
import sys
from pathlib import Path

import jsonschema
import pytest

from syncengine.render.schemas import schemas
from tests.cli.program import Project
from tests.cli.service import Service
from tests.manifest.loading import Files, errors, loaded, loop, problems, tag
from tests.manifest.loading import block as tags_of

ROWS, MULLER = "n,v\nA,1\nB,2\n", "n,v\nA,Müller\n"
HEAD = "generate:\n  - forEach: {csv: ../r.csv}\n"

BLOCKS = {
    "misspelt column": ("    tags:\n      - name: '{{ row.nn }}'\n", "bad-template", 4, 15, "`n`? (r.csv:2, and 1"),
    "items of a misspelt column": (
        "    tags: [{name: '{{ row.nn|items|list }}'}]\n", "bad-template", 3, 19, "did you mean `n`?",
    ),
    "syntax": ("    tags:\n      - name: '{{ row.n'\n", "bad-template", 4, 15, "the template is not valid"),
    "unknown field": (
        "    tags:\n      - name: '{{ row.n }}'\n        nam: '{{ row.v }}'\n", "unknown-field", 5, 9, "`nam`",
    ),
    "when is text": ("    when: row.v\n    tags: [{name: '{{ row.n }}'}]\n", "when-text", 3, 11, "2, and 1 more row)"),
    "when is a constant": ("    when: \"'x'\"\n    tags: [{name: '{{ row.n }}'}]\n", "when-text", 3, 11, "not text"),
    "bad value": (
        "    tags:\n      - name: '{{ row.n }}'\n        createdTimestamp: '{{ row.n }}'\n",
        "bad-value", 5, 27, "(r.csv:2)",
    ),
    "unknown category": (
        "    tags: [{name: '{{ row.n }}', category: '{{ row.v }}'}]\n", "unknown-category", 3, 44, "(r.csv:2)",
    ),
    "misspelt section": ("    tag: []\n", "unknown-field", 3, 5, "did you mean `tags`?"),
    "a number too large": ("    tags: [{name: 'T{{ 1e999 }}'}]\n", "bad-template", 3, 19, "the number is too large"),
    "assignment": ("    when: row.n = 'A'\n    tags: [{name: a}]\n", "bad-template", 3, 11, "did you mean `==`?"),
    "surrogate": ("    tags: [{name: '{{ row[\"\\ud83c\"] }}'}]\n", "bad-template", 3, 19, "there is no"),
    "variable": ("    tags: [{name: '{{ var.tem }}{{ row.n }}'}]\n", "bad-template", 3, 19, "did you mean `team`?"),
    "one key twice": (
        "    tags:\n      - name: '{{ row.n }}'\n        metadata:\n          A: x\n          '{{ row.n }}': y\n",
        "duplicate-key", 7, 11, 'the mapping has the key "A" twice (r.csv:2)',
    ),
    "one key of a mapping twice": (
        "    tags:\n      - name: '{{ row.n }}'\n        metadata: '{{ {1: row.v, \"1\": row.n} }}'\n",
        "duplicate-key", 5, 19, 'the mapping has the key "1" twice (r.csv:2, and 1 more row)',
    ),
    "a form of a date": (
        "    tags: [{name: '{{ row.n|date(read=\"%Y %d %d\") }}'}]\n", "bad-template", 3, 19, "a part appears twice",
    ),
    "environment": ("    tags: [{name: '{{ env.HOME }}'}]\n", "bad-template", 3, 19, "allowEnv"),
    "unset environment": ("    tags: [{name: '{{ env.TEAM }}'}]\n", "bad-template", 3, 19, "TEAM is not set"),
}  # fmt: skip


@pytest.mark.parametrize(("block", "code", "line", "column", "words"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_that_is_wrong(tmp_path: Path, block: str, code: str, line: int, column: int, words: str) -> None:
    """The error has its place in the manifest, and the row if there is one."""
    settings = "version: 1\nvariables: {team: x}\nallowEnv: [TEAM]\n"
    found = problems(tmp_path, {"syncengine.yaml": settings, "r.csv": ROWS, "manifests/m.yaml": HEAD + block})
    first = next(d for d in found if d.code == code)
    assert (first.file, first.line, first.column) == ("manifests/m.yaml", line, column)
    assert any(words in d.message for d in found if d.code == code)


SEVERAL = {
    "names and a column": (
        "    tags: [{name: '{{ rov.n }}', url: '{{ row.uu }}', description: '{{ row.w }}'}]\n",
        ["did you mean `row`?", "no `uu`", "no `w`"],
    ),
    "a field and a column": ("    tags: [{name: '{{ row.nn }}', nam: x}]\n", ["no field `nam`", "no `nn`"]),
    "a column and a value": (
        "    tags: [{name: '{{ row.nn }}', visibility: '{{ row.v }}'}]\n", ["no `nn`", "PRIVATE", "PRIVATE"]
    ),
    "two resources": (
        "    tags: [{name: '{{ row.nn }}'}]\n    activityTypes: [{code: '{{ rov.n }}', label: x}]\n",
        ["did you mean `row`?", "no `nn`"],
    ),
    "a row that is left out": ("    when: row.n == 'C'\n    tags: [{name: '{{ rov.n }}{{ row.nn }}'}]\n", ["`rov`"]),
    "a condition": ("    when: rov.n == 'C'\n    tags: [{name: '{{ row.nn }}'}]\n", ["did you mean `row`?"]),
}  # fmt: skip


@pytest.mark.parametrize(("block", "words"), SEVERAL.values(), ids=SEVERAL.keys())
def test_each_field_that_is_wrong_is_reported_at_once(tmp_path: Path, block: str, words: list[str]) -> None:
    """An error found before any row is read does not hide errors that only rows show."""
    found = [d.message for d in errors(tmp_path, {"r.csv": ROWS, "manifests/m.yaml": HEAD + block})]
    missing = [word for word in words if not any(word in message for message in found)]
    assert (missing, len(found)) == ([], len(words)), found


TWICE = {
    "one file": ("", "rows 2 and 4 of r.csv both make tag/A: correct one, or use only the first row of each with"),
    "two blocks": (
        "  - forEach: {csv: ../r.csv, distinct: n}\n    tags: [{name: '{{ row.n }}'}]\n",
        "row 2 of r.csv makes tag/A, as it already does at manifests/m.yaml:3",
    ),
    "two files": (
        "  - forEach: {csv: ../s.csv}\n    tags: [{name: '{{ row.n }}'}]\n",
        "row 2 of s.csv makes tag/A, as does row 2 of r.csv at manifests/m.yaml:3",
    ),
    "by hand": ("tags: [{name: A}]\n", "row 2 of r.csv makes tag/A, which is already declared at manifests/m.yaml:4"),
}


@pytest.mark.parametrize(("second", "words"), TWICE.values(), ids=TWICE.keys())
def test_rows_that_make_one_tag_are_named(tmp_path: Path, second: str, words: str) -> None:
    """The message names both rows, and each diagnostic has its row as data."""
    data = {"r.csv": "n\nA\nB\n" if second else "n\nA\nB\nA\n", "s.csv": "n\nA\n"}
    text = tags_of("csv: ../r.csv") + second
    found = [d for d in problems(tmp_path, {**data, "manifests/m.yaml": text}) if d.code == "duplicate-resource"]
    assert words in found[0].message, found
    assert found[0].data is not None


@pytest.mark.parametrize("file", ["m.yaml", "m.yaml.j2"])
def test_blanks_around_what_a_template_makes_can_be_trimmed(tmp_path: Path, file: str) -> None:
    text = loop() if file.endswith("j2") else tags_of("csv: ../r.csv")
    (found,) = problems(tmp_path, {"r.csv": "n\n A\n", f"manifests/{file}": text})
    assert (found.code, "`| trim`" in found.message) == ("surrounding-blanks", True)
    trimmed = text.replace("row.n", "row.n | trim")
    assert tag(loaded(tmp_path, {f"manifests/{file}": trimmed}), "A")


UNQUOTED = [
    "name: {{ row.n }}", "category: {{ row.n }}", "keywords: {{ row.n }}", "keywords: [{{ row.n }}]",
    "metadata: {{ row.n }}", "metadata: {A: {{ row.n }}}", "visibility: {{ row.n }}", "protect: {{ row.n }}",
    "createdTimestamp: {{ row.n }}", "previously: [{{ row.n }}]",
]  # fmt: skip


@pytest.mark.parametrize("head", [HEAD, ""], ids=["generated", "written out"])
@pytest.mark.parametrize("field", UNQUOTED)
def test_a_template_without_quotes(tmp_path: Path, field: str, head: str) -> None:
    """The error is reported once at its place, and not for each row."""
    name = "" if field.startswith("name") else "name: '{{ row.n }}', "
    tags = f"    tags:\n      - {{{name}{field}}}\n" if head else f"tags:\n  - {{{name}{field}}}\n"
    found = errors(tmp_path, {"r.csv": ROWS, "manifests/m.yaml": head + tags})
    assert [d.code for d in found] == ["complex-key"]
    assert (found[0].line, 'in quotes: "{{ … }}"' in found[0].message) == (4 if head else 2, True)


@pytest.mark.parametrize(
    ("source", "name", "place", "words"),
    [
        ("csv: ../r", "for", "bad-value 3:9", "`as` must not be `for`, which is a reserved word in templates"),
        ("csv: ../r", "var", "bad-value 3:9", "`as` must not be `var`, which already has a meaning in templates"),
        ("csv: ../r", "9a", "bad-value 3:9", "a name of letters, digits and `_` that begins with a letter"),
        ("cvs: ../r", "row", "unknown-field 2:15", "did you mean `csv`?"),
        ("json: ../r, delimiter: ';'", "row", "bad-value 2:27", "`delimiter` can be used with `csv` only"),
        ("jsonl: ../r, columns: [n]", "row", "bad-value 2:28", "`columns` can be used with `csv` only"),
        ("csv: ../r, items: a", "row", "bad-value 2:26", "`items` can be used with json and yaml only"),
        (
            "sql: {source: s, query: q}, encoding: cp1252",
            "row",
            "bad-value 2:43",
            "`encoding` can be used with files only",
        ),
        ("csv: ../data/clio_matters.csv", "row", "bad-source 2:20", "did you mean `clio-matters.csv`?"),
        ("csv: ../data/Clio-Matters.CSV", "row", "bad-source 2:20", "did you mean `clio-matters.csv`?"),
        ("sql: {file: ../data/matter.db, query: SELECT 1}", "row", "bad-source 2:21", "did you mean `matters.db`?"),
        ("csv: ../data/hiden.csv", "row", "bad-source 2:20", "does not exist"),
        ("csv: ../nowhere/clio-matters.csv", "row", "bad-source 2:20", "does not exist"),
        ("csv: ../data", "row", "bad-source 2:20", "../data: this is a folder"),
    ],
)
def test_a_source_that_is_described_wrongly(tmp_path: Path, source: str, name: str, place: str, words: str) -> None:
    """A name that templates cannot use, a setting that the source would ignore, and a file that is not there.
    Suggestions are from the same folder, and never hidden files."""
    data = {f"data/{name}": "n\n" for name in ("clio-matters.csv", "matters.db", ".hidden.csv")}
    text = f"generate:\n  - forEach: {{{source}}}\n    as: {name}\n    tags: [{{name: '{{{{ {name}.n }}}}'}}]\n"
    (found,) = errors(tmp_path, {**data, "r": "", "manifests/m.yaml": text})
    assert f"{found.code} {found.line}:{found.column}" == place
    assert found.message.endswith(words)


CSV: dict[str, tuple[str | bytes, str]] = {
    "missing": ("", "the file does not exist"),
    "short row": ("n,v\nA\n", "r.csv:2: the row has one value"),
    "long row": (
        "n,v\nA,b,c\n", 'r.csv:2: the row has 3 values, but there are 2 columns; text that contains "," must be',
    ),
    "another delimiter": ("n;v\nA;b,c\n", 'but the file has one column, "n;v": is the `delimiter` ";"?'),
    "row after one of two lines": ('n,v\n"A\nB",1\nC\n', "r.csv:4: the row has one value"),
    "open quote before other rows": ('n,v\n"A,x\nB,y\n', "r.csv:2: a quotation mark is never closed"),
    "an empty file": ("\ufeff", "r.csv:1: the file is empty: its first line must name the columns"),
    "only blank lines": ("\n\n", "r.csv:1: the file is empty: its first line must name the columns"),
    "column without a name": ("n,\n", "r.csv:1:3: column 2 has no name: name it or delete it"),
    "columns without names": ("n,,v,,,\n", "r.csv:1:3: columns 2, 4, 5 and 6 have no name: name them or delete them"),
    "trailing columns without names": ("n,v,,,\n", "r.csv:1:5: columns 3 to 5 have no name"),
    "a note for Excel": ("sep=;\nn;v\n", "r.csv:1:1: the line is a note for Excel (`sep=`), not the header: delete it"),
    "a blank header": (" , ,\nn,v\n", "r.csv:1:1: the line is blank; the header must be the first line"),
    "a byte that is 0": ("n,v\nA,\0\n", "r.csv:2: the file contains a NUL byte, so it is not text"),
    "text behind a quote": ('n,v\nA,"x" y\n', "r.csv:2: text follows a closing quotation mark"),
    "blank behind a quote": ('n,v\n"A" ,x\n', "r.csv:2: text follows a closing quotation mark"),
    "blank before a quote": ('n, v\nA, "x"\n', "r.csv:2: in column 2, a blank stands before the quotation mark"),
    "blank before a quote in the header": ('n, "v"\nA,x\n', "r.csv:1: in column 2, a blank stands before"),
    "blank before a quote after many lines": ('n,v\r"A\rB",1\rC, "x"\r', "r.csv:4: in column 2, a blank stands before"),
    "cp1252": (MULLER.encode("cp1252"), "r.csv:2: byte 0xfc is not valid UTF-8; the file is probably cp1252"),
    "UTF-16": (MULLER.encode("utf-16"), "r.csv:1: byte 0xff is not valid UTF-8; the file is probably utf-16"),
    "UTF-32": (MULLER.encode("utf-32"), "r.csv:1: byte 0xff is not valid UTF-8; the file is probably utf-32"),
    "UTF-16 without a mark": (MULLER.encode("utf-16-le"), "r.csv:2: byte 0xfc is not valid UTF-8; the file is"),
    "half UTF-8": (b"\xef\xbb\xbf" + MULLER.encode("cp1252"), "r.csv:2: byte 0xfc is not valid UTF-8; the file is"),
}  # fmt: skip
NO_NUMBER, TOO_LONG = (
    "r.json:2: this is not JSON: NaN is not a JSON number",
    "this is not JSON: a number has more than 1000",
)
# Python itself tells of a comma before a bracket since 3.13.
COMMA = "no comma can stand before a closing" if sys.version_info >= (3, 13) else "a name in double quotes is missing"
JSON: dict[str, tuple[str | bytes, str]] = {
    "NaN": ('[{"n": "NaN"},\n {"n": NaN}]', NO_NUMBER),
    "Infinity": ('[{"n": -Infinity}]', "r.json:1: this is not JSON: -Infinity is not a JSON number"),
    "a very long number": ('[\n{"n": ' + "1" * 5000 + "}]", f"r.json:2: {TOO_LONG}"),
    "a very small number": ('[{"n": -1e-999999999}]', TOO_LONG),
    "half of it": ('[{"n": 1},\n', "r.json:2:1: this is not JSON: a value is missing here"),
    "a comma too many": ('[{"n": 1,}]', f"this is not JSON: {COMMA}"),
    "a comma too few": ('[{"n": 1 "m": 2}]', "this is not JSON: `,` or a closing bracket is missing here"),
    "an open quote": ('[{"n": "1}]', "this is not JSON: the quotation mark here is never closed"),
    "an object": ('{"n": 1}', "r.json: the file must contain a list of objects, not an object"),
    "JSON lines": ('{"n": 1}\n{"n": 2}\n', "r.json:2:1: this is not JSON; with one value in each line"),
    "texts": ('["n"]', "r.json:1: a row must be an object, not text"),
    "a name twice": (
        '[{"n": 0},\n {"n": 1, "n": 2}]', 'r.json:2: this is not JSON: an object has two values named "n"',
    ),
}  # fmt: skip
SOURCES: dict[str, dict[str, tuple[str | bytes, str]]] = {
    "csv: ../r.csv": CSV,
    "json: ../r.json": JSON,
    "jsonl: ../r.json": {
        "NaN": ('{"n": "NaN"}\n{"n": NaN}', NO_NUMBER),
        "a very long number": ('{"n": 1e9999999999999999999}', TOO_LONG),
    },
    "csv: ../r.csv, encoding: cp1252": {
        "UTF-16": (MULLER.encode("utf-16-be"), "r.csv:1: every other byte is 0; the file is probably utf-16-be"),
        "UTF-8": (MULLER.encode("utf-8-sig"), "begins with the byte order mark of UTF-8: write `encoding: utf-8`"),
    },
    "csv: ../r.csv, encoding: ascii": {
        "UTF-8": (MULLER.encode(), "r.csv:2: byte 0xc3 is not valid ASCII; the file is probably utf-8")
    },
}


@pytest.mark.parametrize(
    ("source", "content", "words"),
    [
        pytest.param(source, *row, id=f"{source} {name}")
        for source, rows in SOURCES.items()
        for name, row in rows.items()
    ],
)
def test_a_source_that_is_wrong(tmp_path: Path, source: str, content: str | bytes, words: str) -> None:
    """The error is at the source in the manifest; its message has the line of the data, and the encoding to write."""
    name = source.partition("../")[2].partition(",")[0]
    data = {name: content} if content else {}
    (found,) = problems(tmp_path, {"manifests/m.yaml": tags_of(source), **data})
    at = 2, len("  - forEach: {") + source.index("..") + 1
    assert (found.code, found.file, found.line, found.column) == ("bad-source", "manifests/m.yaml", *at)
    assert words in found.message


@pytest.mark.parametrize(
    ("form", "content", "delimiter"), [("", "n\tv\nA\ta\n", "tab"), (", delimiter: ;", "n,v\nA,a\n", '","')]
)
def test_a_header_of_one_column_suggests_the_delimiter(tmp_path: Path, form: str, content: str, delimiter: str) -> None:
    (found,) = problems(tmp_path, {"r.csv": content, "manifests/m.yaml": tags_of(f"csv: ../r.csv{form}")})
    assert (found.code, found.line, found.column) == ("bad-template", 3, 19)
    assert f"is the `delimiter` {delimiter}?" in found.message


COLUMNS = {
    "a blank": ("{{ row.Matter No }}", 'as `row["Matter No"]`'),
    "a blank and a dot": ("{{ row.Matter No. }}", 'as `row["Matter No."]`'),
    "a filter behind": ("x {{ row.Matter No. | trim }}", 'as `row["Matter No."]`'),
    "a hyphen": ("{{ row.Case-No }}", 'as `row["Case-No"]`'),
    "another spelling": ("{{ row.matter_no }}", 'did you mean `["Matter No."]`?'),
    "the beginning": ("{{ row.Matter }}", 'did you mean `["Matter No."]`?'),
}


@pytest.mark.parametrize(("template", "words"), COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_that_a_dot_cannot_name_is_written_in_brackets(tmp_path: Path, template: str, words: str) -> None:
    """The message shows the spelling with brackets, in blocks and in text templates."""
    data = "n,Matter No.,Client/Name,Case-No\nA,1,2,3\n"
    block = {"manifests/m.yaml": tags_of("csv: ../r.csv", f"name: '{template}'")}
    text = {"manifests/m.yaml.j2": loop(tag=f"name: {template}")}
    for folder, manifest in (("block", block), ("text", text)):
        (found,) = problems(tmp_path / folder, {"r.csv": data, **manifest})
        assert words in found.message


WHERE = {
    "json": '{"meta": {"a.b": [\n{"n": 1}]},\n "data": {"total": 2, "list": [\n  {"n": "A"},\n  {"n": "B"}]}}\n',
    "yaml": "meta: {a.b: [{n: 1}]}\ndata:\n  list:\n    - n: A\n    - n: B\n",
}
"""Data with a list at `data.list`, from line 4 on."""


@pytest.mark.parametrize("kind", WHERE)
def test_a_list_below_the_top_is_found_by_its_path(tmp_path: Path, kind: str) -> None:
    """Rows keep the lines of their items; a missing or wrong path names the lists in the file."""

    def files(path: str) -> Files:
        manifest = tags_of(f"{kind}: ../r.{kind}{path}", "name: 'Tag {{ row.n }}'")
        return {f"r.{kind}": WHERE[kind], "manifests/m.yaml": manifest}

    made = loaded(tmp_path, files(", items: data.list")).resources.values()
    assert [(each.key.name, each.source.data) for each in made] == [
        (f"Tag {n}", (f"r.{kind}", at)) for n, at in (("A", 4), ("B", 5))
    ]
    assert [key.name for key in loaded(tmp_path, files(", items: meta.a.b")).resources] == ["Tag 1"]
    for path in ("", ", items: data.total", ", items: nowhere"):
        (found,) = problems(tmp_path, files(path))
        assert "for the list in it, write `items: meta.a.b` or `items: data.list`" in found.message
    for content, words in (('{"a": {}}', "there is nothing"), ('{"a": {"b": null}}', "not null")):
        (found,) = problems(tmp_path, {**files(", items: a.b"), f"r.{kind}": content})
        assert (found.code, words in found.message) == ("bad-source", True)


def test_json_in_a_cell_is_read(tmp_path: Path) -> None:
    """`fromjson` reads a list, an object or an empty cell; invalid JSON is an error that quotes it."""
    cells = '["a","b"]', '{"k": "c", "n": 1.50}', ""
    data = "".join(json.dumps({"n": n, "v": cell}) + "\n" for n, cell in enumerate(cells))
    value = "{% set v = row.v | fromjson %}{{ v.k ~ v.n if v is mapping else v | join('+') if v else 'none' }}"
    block = tags_of("jsonl: ../r.jsonl", f"name: 'Tag {{{{ row.n }}}}', description: \"{value}\"")
    files = {"r.jsonl": data, "manifests/m.yaml": block}
    found = [each.body.fields["description"] for each in loaded(tmp_path, files).resources.values()]
    assert found == ["a+b", "c1.50", "none"]
    (wrong,) = problems(tmp_path, {**files, "r.jsonl": '{"n": 1, "v": "[1,"}\n'})
    assert (wrong.code, "`fromjson`: this is not JSON: '[1,'" in wrong.message) == ("bad-template", True)


NO_TEXT = {
    "a method": ("{{ row.items }}", "the value is a function"),
    "a function": ("x{{ range }}", "the value is a function"),
    "a method in a list": ("{{ [row.keys] }}", "the value is a function"),
    "a series": ("{{ ['a'] | map('upper') }}", "append `| list`"),
    "bytes": ("{{ row.b }}", "the value is bytes"),
    "an infinite number": ("{{ row.i }}", "inf is not a number"),
}


@pytest.mark.parametrize("field", ["description", "keywords", "metadata"])
@pytest.mark.parametrize(("value", "words"), NO_TEXT.values(), ids=NO_TEXT.keys())
def test_a_value_that_is_no_text(tmp_path: Path, value: str, words: str, field: str) -> None:
    """The error names the template's place and the row, and shows no Python representation."""
    connection = sqlite3.connect(tmp_path / "r.db")
    connection.executescript("CREATE TABLE t (b BLOB, i REAL); INSERT INTO t VALUES (x'00ff', 9e999)")
    connection.close()
    written = {"description": f'"{value}"', "keywords": f'["{value}"]', "metadata": f'{{a: "{value}"}}'}[field]
    block = "generate:\n  - forEach: {sql: {file: ../r.db, query: SELECT * FROM t}}\n    tags:\n      - name: Alpha\n"
    (found,) = problems(tmp_path, {"manifests/m.yaml": f"{block}        {field}: {written}\n"})
    assert (found.code, found.line) == ("bad-template", 5)
    assert words in found.message
    assert "(../r.db:1)" in found.message or "(r.db:1)" in found.message


def test_many_warnings_stay_warnings(tmp_path: Path) -> None:
    """Warnings over the limit are counted in the last one, and stay warnings."""
    rows = "n\n" + "".join(f"{n:03}\n" for n in range(300))
    block = tags_of("csv: ../r.csv", "name: 'matter {{ row.n }}', keywords: ['{{ row.n }}']")
    found = loaded(tmp_path, {"r.csv": rows, "manifests/m.yaml": block}).diagnostics
    assert [d.code for d in found] == ["keyword-too-broad"] * 25
    assert [d.message.endswith("(r.csv:26, and 275 more rows)") for d in found] == [False] * 24 + [True]


def written(template: str) -> str:
    """The text of a template in which `EACH` begins a loop over the rows, `DATA`, and `END` ends one."""
    text = template.replace("EACH", "{% for row in DATA %}").replace("END", "{% endfor %}")
    return text.replace("DATA", "data('../r.csv')")


TEMPLATES = {
    "syntax": ("tags:\n{% for a in %}\nEND\n", "bad-template", 2, "the template is not valid"),
    "undefined": ("tags:\n  - name: {{ nam }}\n", "unknown-name", 2, "`nam` is undefined"),
    "variable": ("tags:\n  - name: A{{ var.tem }}\n", "bad-template", 2, "`tem`; did you mean `team`?"),
    "unset environment": ("tags:\n  - name: {{ env.TEAM }}\n", "bad-template", 2, "TEAM is not set"),
    "column": (
        "tags:\nEACH\n  - name: {{ row.n }}\n    managedBy: {{ row.vv }}\nEND\n",
        "bad-template", 4, "did you mean `v`? (r.csv:2)",
    ),
    "yaml": ("tags:\nEACH\n  - name: {{ row.n }}\n    managedBy: 'a{{ row.v }}\nEND\n", "yaml-syntax", 4, "quote"),
    "field": (
        "# one\ntags:\nEACH\n  - name: {{ row.n }}\n\n    ulr: {{ row.v }}\nEND\n",
        "unknown-field", 6, "did you mean `url`? (r.csv:2, and 1 more row)",
    ),
    "after a macro": (
        "{% macro t(n) %}\n  - name: {{ n }}\n    managedBy: x{% endmacro %}\ntags:\n{{ t('A') }}\n\n    ulr: x\n",
        "unknown-field", 7, "did you mean `url`?",
    ),
    "macro that fails": (
        "{% macro t(r) %}\n  - name: {{ r.n }}\n    url: {{ r.vv }}\n{% endmacro %}\ntags:\nEACH{{ t(row) }}END\n",
        "bad-template", 3, "did you mean `v`? (r.csv:2)",
    ),
    "after a loop": ("tags:\nEACH\n  - name: {{ row.n }}\nEND\n  - nam: x\n", "unknown-field", 5, "`nam`"),
    "too much": (
        "tags:\n#\n{% for n in range(200) %}{{ 'x' * 1000000 }}END\n", "bad-template", 3, "writes more than 64 MB",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("template", "code", "line", "words"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_a_template_that_is_wrong(tmp_path: Path, template: str, code: str, line: int, words: str) -> None:
    """Errors of the template, of the rendered YAML and of a field all have the template's own line."""
    settings = "version: 1\nvariables: {team: x}\nallowEnv: [TEAM]\n"
    files = {"syncengine.yaml": settings, "r.csv": ROWS, "manifests/m.yaml.j2": written(template)}
    found = errors(tmp_path, files)
    assert (found[0].code, found[0].file, found[0].line) == (code, "manifests/m.yaml.j2", line)
    assert any(words in d.message for d in found)


PLACES = {
    "include of an include": ("EACH{% include 'manifests/outer.j2' %}END", "1:2 1:3 1:4"),
    "after an include": ("EACH{% include 'manifests/part.j2' %}END\n  - {name: A}\n", "1:2 1:3 1:4 3"),
    "groups": ("{% for c, rows in DATA | groupby('c') %}\n  - {name: '{{ c }}'}\nEND", "3:2 3:3"),
    "rows of groups": (
        "{% for c, rows in DATA | groupby('c') %}{% for r in rows %}\n  - {name: '{{ r.n }}'}\nENDEND", "3:2 3:4 3:3",
    ),
    "values of values": (
        "{% for c in DATA | map(attribute='c') | map('upper') | unique | sort %}\n  - {name: '{{ c }}'}\nEND",
        "3:2 3:3",
    ),
    "values of several rows": (
        "{% for c in DATA | map(attribute='c') | map('replace', 'one', 'none') %}\n"
        "  - {name: '{{ c }}{{ loop.index }}'}\nEND{% for c in ['one', 'two'] %}\n  - {name: '{{ c }}'}\nEND",
        "3:2 3:3 3:4 5 5",
    ),
    "a number that rows have": (
        "{% for n in DATA | map(attribute='c') | map('length') %}\n  - {name: '{{ n }}{{ loop.index }}'}\nEND", "3 3 3",
    ),
    "parts of a value": ("EACH{% for k in row.n | split('-') %}\n  - {name: '{{ k }}'}\nENDEND", "3:2 3:3 3:4"),
    "filter block": ("{% filter indent(2, true) %}EACH\n- {name: '{{ row.n }}'}\nEND{% endfilter %}", "3:2 3:3 3:4"),
    "one line, with columns of several bytes": (
        "  [{name: 'Ünïcödé 😀'}, EACH{name: '😀{{ row.n }}'}, END{name: A}]", "2 2:2 2:3 2:4 2",
    ),
    "macro of a macro": (
        "{% macro t(n) %}\n  - name: {{ n }}\n{% endmacro %}{% macro u(r) %}{{ t(r.n) }}"
        "{{ t('A' ~ r.n) }}{% endmacro %}EACH{{ u(row) }}END", "3:2 3:2 3:3 3:3 3:4 3:4",
    ),
    "macro that is indented": (
        "{% macro t(n) %}\n- name: {{ n }}\n{% endmacro %}EACH\n  {{ t(row.n) | indent(2) }}\nEND", "3:2 3:3 3:4",
    ),
    "macro with a loop": (
        "{% macro all(rows) %}{% for row in rows %}\n  - name: {{ row.n }}\nEND\n  - name: A\n{% endmacro %}"
        "{{ all(DATA) }}", "3:2 3:3 3:4 5",
    ),
    "macro with an include": (
        "{% macro t(row) %}{% include 'manifests/part.j2' %}{% endmacro %}EACH{{ t(row) }}END", "1:2 1:3 1:4",
    ),
    "set block of all": ("{% set b %}EACH\n  - name: {{ row.n }}\nEND{% endset %}{{ b }}", "3:2 3:3 3:4"),
    "call block": (
        "{% macro each(rows) %}{% for r in rows %}{{ caller(r) }}END{% endmacro %}"
        "{% call(r) each(DATA) %}\n  - name: {{ r.n }}\n{% endcall %}", "3:2 3:3 3:4",
    ),
    "loop that calls itself": (
        "{% for row in DATA recursive %}\n  - name: {{ row.n }}{{ loop.depth }}\n"
        "{% if loop.depth == 1 %}{{ loop([row]) }}{% endif %}END", "3:2 3:2 3:3 3:3 3:4 3:4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("template", "places"), PLACES.values(), ids=PLACES.keys())
def test_resources_of_a_text_template_know_their_line_and_row(tmp_path: Path, template: str, places: str) -> None:
    """Each has the line that wrote it and the row that it was made from; a group has its first row."""
    files = {
        "r.csv": "n,c\nx,one\ny,two\nz,one\n",
        "manifests/m.yaml.j2": written(f"tags:\n{template}\n"),
        "manifests/part.j2": "  - name: '{{ row.n }}'\n    managedBy: u\n",
        "manifests/outer.j2": "{% include 'manifests/part.j2' %}",
    }
    sources = [each.source for each in loaded(tmp_path, files).resources.values()]
    assert " ".join(f"{each.line}:{each.data.row}" if each.data else f"{each.line}" for each in sources) == places


def test_errors_of_one_rendered_line_have_their_own_rows(tmp_path: Path) -> None:
    files = {
        "r.csv": "n,c\nx,one\ny,two\n",
        "manifests/m.yaml.j2": (
            "tags: [{name: A}, {% for row in data('../r.csv') %}\n"
            "  {#- -#} {name: {{ row.n }}, {{ row.c }}: red}, {% endfor %}\n  {name: Z, ulr: z}]\n"
            "removed: [{% include 'parts/r.j2' %}]\n"
        ),
        "parts/r.j2": "# those\n{tag: A, as: forget}",
    }
    found = errors(tmp_path, files)
    assert [(d.code, d.file, d.line, d.data and d.data.row) for d in found] == [
        ("unknown-field", "manifests/m.yaml.j2", 2, 2),
        ("unknown-field", "manifests/m.yaml.j2", 2, 3),
        ("unknown-field", "manifests/m.yaml.j2", 3, None),
        ("removed-and-declared", "parts/r.j2", 2, None),
    ]


MACROS = (
    "# those\n{% macro t(r) %}\n  - name: {{ r.n }}-1\n    path: u\n  - name: {{ r.n }}-2\n    ulr: x\n{% endmacro %}\n"
)
IMPORTS = {
    "import": "{% import 'parts/macros.j2' as m %}\ntags:\n{% for r in data('../r.csv') %}{{ m.t(r) }}{% endfor %}\n",
    "from": "{% from 'parts/macros.j2' import t %}\ntags:\n{% for r in data('../r.csv') %}{{ t(r) }}{% endfor %}\n",
}


@pytest.mark.parametrize("template", IMPORTS.values(), ids=IMPORTS.keys())
def test_an_imported_macro_has_lines_of_its_own_file(tmp_path: Path, template: str) -> None:
    """Errors, and every resource of one call, have the line in the macro's file."""
    files = {"r.csv": ROWS, "manifests/m.yaml.j2": template, "parts/macros.j2": MACROS}
    (found,) = errors(tmp_path, files)
    assert (found.code, found.file, found.line, found.data) == ("unknown-field", "parts/macros.j2", 6, ("r.csv", 2))
    assert found.message.endswith("(r.csv:2, and 1 more row)")
    sound = {**files, "parts/macros.j2": MACROS.replace("ulr: x", "url: http://x")}
    made = loaded(tmp_path, sound).resources.values()
    assert [(r.key.name, r.source.file, r.source.line, r.source.data and r.source.data.row) for r in made] == [
        (f"{name}-{n}", "parts/macros.j2", line, row)
        for name, row in (("A", 2), ("B", 3))
        for n, line in ((1, 3), (2, 5))
    ]


@pytest.mark.parametrize(
    "value",
    [
        *("{{ {}.items }}", "{{ range }}", "{{ self }}", "{{ ['a'] | map('upper') }}"),
        *("{{ b.marks }}", "{{ b['marks'] }}", "{{ b.__class__ }}", "{{ b | mark! }}", "{{ 5 | _mark(9, []) }}"),
        *("{{ b | captured }}", "{{ m().marks }}"),
    ],
)
def test_a_text_template_writes_text_only_and_reaches_no_internal_marks(tmp_path: Path, value: str) -> None:
    template = f"{{% macro m() %}}text{{% endmacro %}}{{% set b %}}text{{% endset %}}\ntags:\n  - name: {value}\n"
    (found,) = problems(tmp_path, {"manifests/m.yaml.j2": template})
    assert (found.code, found.line) == ("bad-template", 3)


USES = [
    *("b | length == 9", "b == 'some text'", "b ~ '' == 'some text'", "b | upper == 'SOME TEXT'", "b[0] == 's'"),
    *("b | replace('some', 'a') == 'a text'", "b | list | length == 9", "(b ~ b) | length == 18", "b in ['some text']"),
    *("b | tojson == '\"some text\"'", "b.split(' ') == ['some', 'text']", "{b: 1}['some text'] == 1", "f(b) == b"),
    *("b | words | count == 2", "b | indent(2, true) == '  some text'", "b | trim == b"),
]


@pytest.mark.parametrize("use", USES)
def test_captured_text_is_as_long_and_as_equal_as_it_looks(tmp_path: Path, use: str) -> None:
    template = (
        "{% macro m() %}some text{% endmacro %}{% macro f(x) %}{{ x }}{% endmacro %}{% set a %}some text{% endset %}"
        "{% macro g() %}{{ caller() }}{% endmacro %}{% set c %}{% call g() %}{{ a }}{% endcall %}{% endset %}"
        "{% set d %}{% filter lower %}{{ m() }}{% endfilter %}{% endset %}\ntags:\n"
        f"{{% for b in [m(), f(m()), a, c, d] %}}\n  - name: T{{{{ loop.index }}}}{{{{ {use} }}}}\n{{% endfor %}}\n"
    )
    made = loaded(tmp_path, {"manifests/m.yaml.j2": template}).resources.values()
    assert [r.key.name for r in made] == [f"T{n}true" for n in range(1, 6)]


def test_an_error_of_the_service_names_the_row(project: Project, service: Service) -> None:
    (project.folder / "r.csv").write_text("n,v\nA,1\nB,2\nC,3\n")
    project.wants()
    (project.folder / "manifests" / "m.yaml").write_text(HEAD + "    tags: [{name: '{{ row.n }}'}]\n")
    formats = ("text", "junit", "sarif", "github", "gitlab", "markdown")
    service.fault("upsertTags", itemErrors=[{"index": 1, "errorDescription": "no such thing"}])
    done = project.run("apply", "-y", "--format", "json", *(f"--report={name}={name}.txt" for name in formats))
    assert done.code == 3, (done.out, done.err)
    (failed,) = [result for result in done.document["results"] if result["outcome"] == "failed"]
    assert failed["source"] == {"file": "manifests/m.yaml", "line": 3, "data": {"file": "r.csv", "row": 3}}
    for name in formats:
        assert "r.csv:3" in (project.folder / f"{name}.txt").read_text(), name


SHARED = HEAD + "    tags: [{name: '{{ row.n }}', keywords: [shared phrase], visibility: '{{ row.p }}'}]\n"


def test_findings_have_a_place_for_the_row(project: Project) -> None:
    """The row is `data` in JSON and a related location in SARIF, also for a finding about two rows."""
    project.wants()
    (project.folder / "r.csv").write_text("n,p\nmatter one,PRIVATE\nmatter two,\n")
    (project.folder / "manifests" / "m.yaml").write_text(SHARED)
    document = project.run("validate", "--format", "json").document
    jsonschema.validate(document, schemas()["diagnostics.schema.json"])
    found = {d["code"]: d for d in document["diagnostics"]}
    assert found.keys() == {"same-keyword", "public-by-silence"}
    for finding in found.values():
        assert (finding["line"], finding["data"]) == (3, {"file": "r.csv", "row": 3})
        assert finding["message"].endswith("(r.csv:3)")
        assert "tag/matter two" in finding["message"]
    sarif = project.run("validate", "--format", "sarif").document
    for result in sarif["runs"][0]["results"]:
        (related,) = result["relatedLocations"]
        assert related["physicalLocation"]["artifactLocation"]["uri"].endswith("r.csv")
        assert related["physicalLocation"]["region"]["startLine"] == 3


REPEATED = {
    "m.yaml": HEAD + "    tags: [{name: '{{ row.n }}', description: '{{ row.title }}', visibility: '{{ row.v }}'}]\n",
    "m.yaml.j2": loop(tag="name: '{{ row.n }}', ulr: x, visibility: '{{ row.v }}'"),
}


@pytest.mark.parametrize("file", REPEATED)
def test_an_error_of_all_rows_is_reported_once(tmp_path: Path, file: str) -> None:
    """A misspelt column or field is one error for all rows, and an error of one row is reported beside it."""
    rows = "n,v\n" + "".join(f"ROW-{n},{'x' if n == 290 else 'PUBLIC'}\n" for n in range(300))
    alike, other = errors(tmp_path, {"r.csv": rows, f"manifests/{file}": REPEATED[file]})
    assert (alike.line, alike.message.endswith("(r.csv:2, and 299 more rows)")) == (3, True)
    assert ("no `title`" if file == "m.yaml" else "did you mean `url`?") in alike.message
    assert (other.line, other.data and other.data.row, "visibility" in other.message) == (3, 292, True)


@pytest.mark.parametrize(
    "field", ["name: '{{ row.v }}'", "name: x, keywords: ['{{ row.v }}']", "name: x, metadata: {k: '{{ row.v }}'}"]
)
@pytest.mark.parametrize("value", ["\\ud800", "True-\\ud800"])
def test_half_a_surrogate_pair_in_data_is_told_with_its_row(tmp_path: Path, value: str, field: str) -> None:
    """JSON can escape what is no character; no field takes it, be it a text, an item of a list or a name."""
    block = f"generate:\n  - forEach: {{json: ../r.json}}\n    when: row.v != ''\n    tags: [{{{field}}}]\n"
    (found,) = errors(tmp_path, {"r.json": f'[\n{{"v": ""}},\n{{"v": "{value}"}}]', "manifests/m.yaml": block})
    assert (found.code, found.line, found.data) == ("control-character", 4, ("r.json", 3))
    assert "contains the control character U+D800" in found.message


def test_a_message_about_two_lines_names_both_of_the_template(tmp_path: Path) -> None:
    """Nobody sees the lines of the rendered result."""
    unwritten = "{# A comment that #}\n{# writes no line. #}\n{% for n in range(3) -%}\n{% endfor -%}\n"
    template = f"{unwritten}tags:\n  - name: Alpha\n    description: one\n    description: two\n"
    (found,) = problems(tmp_path, {"manifests/m.yaml.j2": template})
    assert (found.code, found.line, found.message) == ("duplicate-key", 8, 'the key "description" is already on line 7')


def test_a_file_name_that_looks_like_a_place_is_no_place(tmp_path: Path) -> None:
    """Places are passed as data beside messages, and never parsed from a message."""
    text = "{# A comment of\ntwo lines. #}\n" + tags_of('csv: "../line 3", distinct: number', "name: x")
    (found,) = problems(tmp_path, {"manifests/m.yaml.j2": text, "line 3": "title,note\nAlpha,a\n"})
    assert (found.line, found.message) == (4, "line 3:2: `distinct`: there is no `number` in line 3")
