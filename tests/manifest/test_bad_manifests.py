"""Invalid and hostile manifests: all errors are reported at once, each at its place, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncengine.document.diagnostics import Collector
from syncengine.document.reader import read
from syncengine.manifest.read_template import Places
from syncengine.resource import Source

from .bad import BAD
from .loading import errors, problems


@pytest.mark.parametrize(("text", "places", "says"), BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_refused_at_the_right_place(
    text: str | bytes, places: str, says: str, tmp_path: Path
) -> None:
    found = errors(tmp_path, {"manifests/m.yaml": text})
    assert ", ".join(f"{d.code} {d.line}:{d.column}" for d in found) == places
    assert {d.file for d in found} == {"manifests/m.yaml"}
    assert says in " ".join(d.message for d in found)


SIGNS, WORDS = "a0 \n\t:,[]{}\"'\\#|>!%@<", "- |? |: |&a |*a|!!str |%YAML 1.|%TAG ! |---\n|...\n"
PIECES = (*SIGNS, *WORDS.split("|"))


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_read_or_refused_in_our_words_at_a_place_in_it(text: str) -> None:
    """A syntax error has one of our sentences, and a line and column that the text has, or the end of the text."""
    findings = Collector("m.yaml")
    read(text.encode(), findings)
    lines = [*text.replace("\r\n", "\n").split("\n"), ""]
    for found in findings.found:
        assert 1 <= (found.column or 0) <= len(lines[(found.line or 0) - 1]) + 1
        assert not any(words in found.message for words in ("did not", "could not", "found ", "expected ", "while "))


def test_errors_of_all_files_come_together_and_in_order(tmp_path: Path) -> None:
    """A syntax error in one file does not hide the errors of others; they are sorted by file, line and column."""
    files = {
        "manifests/b.yaml": "tags:\n  - nam: x\n  - url: http://y\n",
        "manifests/a.yaml": "tags: [\n",
        "manifests/c/d.json": '{"tags": [{"name": 1, "protect": "no"}]}',
    }
    places = [f"{d.file.removeprefix('manifests/')}:{d.line}" for d in problems(tmp_path, files) if d.file]
    assert places == ["a.yaml:1", "b.yaml:2", "b.yaml:3", "c/d.json:1"]


def test_a_broken_file_does_not_make_its_categories_unknown(tmp_path: Path) -> None:
    """A tag's category may be declared in the part that could not be read, so it is not reported as unknown."""
    files = {
        "manifests/a.yaml": "tagCategories:\n  - externalId: acme\n  - x: [\n",
        "manifests/b.yaml": "tags: [{name: Alpha, category: acme}]\n",
    }
    assert [d.code for d in problems(tmp_path, files)] == ["yaml-syntax"]


def test_a_duplicate_in_another_file_names_the_first(tmp_path: Path) -> None:
    files = {"manifests/a.yaml": "tags:\n  - name: Alpha\n", "manifests/b.yaml": "\n\ntags:\n  - name: Alpha\n"}
    (found,) = problems(tmp_path, files)
    assert (found.code, found.file, found.line) == ("duplicate-resource", "manifests/b.yaml", 4)
    assert "manifests/a.yaml:2" in found.message
    assert found.address == "tag/Alpha"


WRONG_BESIDE = {
    "a field of another tag": ("  - {name: Beta, nam: x}\n", True),
    "the name of another tag": ("  - {name: [x]}\n", True),
    "an item that is none": ("  - Beta\n", True),
    "a category's field": ("tagCategories: [{externalId: acme, label: [x]}]\n", True),
    "an activity type": ("activityTypes: [{code: [x], label: x}]\n", True),
    "a section that is no list": ("removed: x\n", True),
    "a misspelt section": ("activityType: []\n", True),
    "a block of tags": ("generate: [{forEach: {csv: none.csv}, tags: [{name: x}]}]\n", True),
    "a category's id": ("tagCategories: [{externalId: [x], label: x}]\n", False),
    "a category that is none": ("tagCategories: [acne]\n", False),
    "a misspelt section of categories": ("tagCategorys: [{externalId: acne}]\n", False),
    "a block of categories": ("generate: [{forEach: {csv: none.csv}, tagCategories: [{externalId: x}]}]\n", False),
    "a block of misspelt categories": ("generate: [{forEach: {csv: n.csv}, tagCategory: [{externalId: x}]}]\n", False),
    "half of a file": ("tagCategories: [{externalId: acne\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("beside", "is_told"), WRONG_BESIDE.values(), ids=WRONG_BESIDE.keys())
def test_an_unknown_category_is_reported_beside_other_errors(tmp_path: Path, beside: str, is_told: bool) -> None:
    """It is not reported if the category may be in the part that could not be read."""
    files = {"manifests/m.yaml": f"tags:\n  - {{name: Alpha, category: acne}}\n{beside}"}
    codes = [d.code for d in problems(tmp_path, files)]
    assert ("unknown-category" in codes) is is_told
    assert len(codes) > is_told


def test_a_message_names_the_key_in_a_mapping_and_escapes_quotes(tmp_path: Path) -> None:
    """Of `metadata.A`, not of `metadata`, which is valid; quotes are escaped where a quoted value has some."""
    tags = "tags:\n  - {name: Alpha, metadata: {A: [1], Billing Group: {}, C: , D: x}}\n"
    text = f"{tags}  - name: ' say \"hi\" \\'\n  - name: ' C:\\x'\n"
    assert [d.message for d in problems(tmp_path, {"manifests/m.yaml": text})] == [
        "`metadata.A` must be text, not a list",
        "`metadata.Billing Group` must be text, not a mapping",
        '`metadata.C` has no value: write "" to clear it, or remove the line',
        '`name` must not start or end with blanks: " say \\"hi\\" \\\\"',
        '`name` must not start or end with blanks: " C:\\x"',
    ]
    settings = "version: 1\nservice: {endpoints: {deleteTag: x}}\nvariables: {a: [1]}\n"
    assert [d.message for d in problems(tmp_path, {"syncengine.yaml": settings})] == [
        '`endpoints.deleteTag` must be a mapping, not the text "x"',
        "`variables.a` must be text, not a list",
    ]


TEXT = "tags:\n  - name: A\r\n\n  - name: B"
"""Its lines begin at 0, 6, 19 and 20."""
PLACES = Places(TEXT, [(offset, Source("t.j2", line)) for offset, line in ((0, 1), (6, 5), (22, 7), (28, 9))])


@pytest.mark.parametrize(
    ("line", "column", "writer"),
    [
        *((1, 1, 1), (2, 1, 5), (2, 3, 5), (4, 1, 7), (4, 8, 7), (4, 9, 9)),  # leading blanks are skipped
        (3, 1, 5),  # an empty line counts by its end, which the line before wrote
        *((1, 99, 1), (4, 99, 9)),  # a column after the end of the line means its last character
        *((99, 1, 7), (0, 1, 1)),  # a line after the end means the last line
    ],
)
def test_a_place_is_that_of_the_next_visible_character_of_its_line(line: int, column: int, writer: int) -> None:
    """The blanks before a resource's key may come from another line of the template."""
    assert PLACES.at(line, column).line == writer


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
)
WIDE_BOMB = "x: &x [" + "a," * 5000 + "]\n" + "y:\n" + "  - *x\n" * 5000
UNKNOWN_FIELDS = "tags:\n  - name: abc\n" + "".join(f"    f{n}: x\n" for n in range(10_000))
UNKNOWN_CATEGORIES = "tags:\n" + "".join(f"  - {{name: abc{n}, category: c{n}}}\n" for n in range(10_000))

HOSTILE: dict[str, tuple[bytes, str]] = {
    "alias bomb": (BOMB.encode(), "too-many-aliases"),
    "wide alias bomb": (WIDE_BOMB.encode(), "too-many-aliases"),
    "20,000 lists": (b"[" * 20_000, "too-deep"),
    "20,000 closed lists": (b"tags: " + b"[" * 20_000 + b"]" * 20_000, "too-deep"),
    "20,000 lists on lines of their own": (b"[\n" * 20_000, "too-deep"),
    "20,000 mappings": (b"{a: " * 20_000, "too-deep"),
    "20,000 block lists": (b"- " * 20_000, "too-deep"),
    "20,000 question marks": (b"? " * 20_000, "too-deep"),
    "indented ever deeper": (b"".join(b" " * n + b"a:\n" for n in range(2000)), "too-deep"),
    "20,000 lists in JSON": (b'{"tags": ' + b"[" * 20_000, "too-deep"),
    "binary": (bytes(range(256)) * 1000, "not-utf8"),
    "zeros": (bytes(100_000), "control-character"),
    "objects": (b"tags: !!python/object/apply:os.system ['exit 9']\n", "unsupported-tag"),
    "a long key": (b"tags:\n  - " + b"k" * 5_000_000 + b": x\n", "yaml-syntax"),
    "10,000 unknown fields": (UNKNOWN_FIELDS.encode(), "unknown-field"),
    "10,000 unknown categories": (UNKNOWN_CATEGORIES.encode(), "unknown-category"),
}  # fmt: skip

SCRIPT = """
import gc
import sys
from pathlib import Path
from syncengine.manifest.desired import ManifestSet, desired
from syncengine.errors import Problems
from syncengine.manifest.desired import read_all
from syncengine.manifest.files import find
gc.disable()  # as the program does
for path in map(Path, sys.argv[1:]):
    try:
        files = find([path], path.parent).files
        desired(ManifestSet(files), read_all(files))
    except Problems as refused:
        print(path.stem, refused.found[0].code, flush=True)
"""


@pytest.mark.slow
def test_hostile_input_is_refused_cleanly(tmp_path: Path) -> None:
    """There is one diagnostic for each file, no traceback and no crash, within seconds."""
    for name, (data, _) in HOSTILE.items():
        (tmp_path / f"{name}.yaml").write_bytes(data)
    with (tmp_path / "more than 64 MB.yaml").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    words = [sys.executable, "-c", SCRIPT, *(str(path) for path in tmp_path.iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    codes = {name: code for name, (_, code) in HOSTILE.items()} | {"more than 64 MB": "file-too-large"}
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(f"{name} {code}" for name, code in codes.items())
