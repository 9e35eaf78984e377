"""How manifests are interpreted: strings, defaults, keywords, timestamps and links."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Scalar
from syncengine.document.reader import read
from syncengine.instants import milliseconds
from syncengine.resource import Key, Kind, Removal
from tests.settings.test_schema import judge
from tests.support.profiles import tried

from .loading import block, loaded, problems, tag

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "text",
    ["0123", "1.10", "no", "2024-01-01", "0x1F", "1e3", "12:30:45", "-1", ".5", "off", "True", "=", "1_000", "1:2"],
)
def test_strings_stay_strings(text: str, tmp_path: Path) -> None:
    """A text field takes the scalar as written, even if YAML 1.1 has another type for it."""
    manifest = f"tags:\n  - name: {text}\n    externalId: {text}\n    metadata: {{Some Name: {text}}}\n"
    resource = tag(loaded(tmp_path, {"manifests/m.yaml": manifest}), text)
    assert resource.body.fields["externalId"] == text
    assert resource.body.metadata == {"Some Name": text}


FACE = "\N{GRINNING FACE}"
READ: dict[str, tuple[str, str, dict[str, object]]] = {
    **{
        f"a quoted null: {text}": ("m.yaml", f'tags: [{{name: abc, managedBy: "{text}"}}]', {"managedBy": text})
        for text in ("null", "~", "Null", "")
    },
    # YAML 1.2 allows both, and no parser of ruamel.yaml reads a file with both (decision 3).
    "a colon in brackets, and a tab before a comment": (
        "m.yaml", "tags:\n  - name: abc\t# from CRM\n    keywords: [EP:1]\n    metadata: {url: https://example.com}\n",
        {"keywords": ("EP:1", "abc"), "metadata": {"url": "https://example.com"}},
    ),
    "escapes, which are text outside of double quotes": (
        "m.yaml", "tags:\n  - name: \"\\ud83d\\ude00\"\n    description: C:\\ud83d\n    managedBy: '\\ud83d\\ude00'\n",
        {"name": FACE, "description": "C:\\ud83d", "managedBy": "\\ud83d\\ude00"},
    ),
    "JSON with tabs, escaped slashes and surrogate pairs": (
        "m.json", '{"tags": [\n\t{"name": "a\\/b \\ud83d\\ude00", "description": "\\\\ud83d", "protect": true}]}',
        {"name": f"a/b {FACE}", "description": "\\ud83d", "protect": True},
    ),
    "core tags that match the types of fields": (
        "m.yaml", "%YAML 1.2\n---\n!!map\ntags: !!seq\n  - name: !!str null\n    protect: !!bool true\n",
        {"name": "null", "protect": True},
    ),
    "aliases, which stand for what they name": (
        "m.yaml", "tags:\n- {name: a, managedBy: &u x, metadata: &m {A: c}}\n- {name: b, managedBy: *u, metadata: *m}",
        {"name": "b", "managedBy": "x", "metadata": {"A": "c"}},
    ),
}  # fmt: skip
"""A manifest, and what its last tag has."""


@pytest.mark.parametrize(("file", "text", "expected"), READ.values(), ids=READ)
def test_a_manifest_is_read_as_yaml_1_2_or_json(
    file: str, text: str, expected: dict[str, object], tmp_path: Path
) -> None:
    *_, made = loaded(tmp_path, {f"manifests/{file}": text}).resources.values()
    body = {**made.body.fields, "keywords": made.body.keywords, "metadata": made.body.metadata}
    found = {"name": made.key.name, "protect": made.protect, **body}
    assert {name: found[name] for name in expected} == expected


def test_a_body_has_only_declared_fields(tmp_path: Path) -> None:
    """The exception is `excludeTagNameKeyword`, which is always set (docs/planning.md 2.4).

    Resources are identified by kind and name. Keywords of a category are an ordinary field, without its name.
    """
    text = (
        "tags: [{name: abc, protect: true, previously: [x, y]}]\n"
        "activityTypes: [{code: abc, label: y}]\ntagCategories: [{externalId: abc, keywords: [x, x]}]\n"
    )
    made, kind, category = loaded(tmp_path, {"manifests/m.yaml": text}).resources.values()
    assert (made.protect, made.previously) == (True, ("x", "y"))
    assert made.body.fields == {"excludeTagNameKeyword": False}
    assert (kind.body.fields, category.body.fields) == ({"label": "y"}, {"keywords": ("x",)})
    assert category.body.keywords == ()


@pytest.mark.parametrize(
    ("fields", "keywords"),
    [
        ("", ("Name",)),
        ("keywords: [two, one, two]", ("two", "one", "Name")),
        ("keywords: [Name, one]", ("Name", "one")),
        ("keywords: [one]\n    excludeTagNameKeyword: true", ("one",)),
        ("keywords: [Name]\n    excludeTagNameKeyword: true", ("Name",)),
        ("keywords: [name]", ("name", "Name")),
    ],
)
def test_a_tags_keywords_include_its_name(fields: str, keywords: tuple[str, ...], tmp_path: Path) -> None:
    """They are the declared ones without repeats, and the name unless it is excluded (docs/planning.md 2.3)."""
    desired = loaded(tmp_path, {"manifests/m.yaml": f"tags:\n  - name: Name\n    {fields}\n"})
    assert tag(desired, "Name").body.keywords == keywords


def test_defaults_apply_to_every_resource_of_their_file(tmp_path: Path) -> None:
    """Mappings are merged; lists and scalars replace the default.

    A file's defaults override those of the project file.
    """
    files = {
        "syncengine.yaml": "version: 1\ndefaults: {tags: {managedBy: p, path: /p, metadata: {P: p, X: p}}}\n",
        "manifests/a.yaml": (
            "tags: [{name: one, metadata: {X: own}, keywords: [mine]}]\n---\n"
            "defaults: {tags: {managedBy: f, metadata: {F: f, X: f}, keywords: [theirs], protect: true}}\n"
        ),
        "manifests/b.yaml": "tags: [{name: two}]\n",
    }
    desired = loaded(tmp_path, files)
    one, two = tag(desired, "one"), tag(desired, "two")
    assert one.body.metadata == {"P": "p", "F": "f", "X": "own"}
    assert (one.body.fields["managedBy"], one.body.fields["path"]) == ("f", "/p")
    assert (one.body.keywords, one.protect) == (("mine", "one"), True)
    assert (two.body.fields["managedBy"], two.body.keywords, two.protect) == ("p", ("two",), False)


def test_a_tags_own_category_overrides_a_default_of_the_other_field(tmp_path: Path) -> None:
    """`tagCategoryId` replaces a default `category`. Also a required field may be a default."""
    text = (
        "defaults: {tags: {category: c}, tagCategories: {label: C}, activityTypes: {label: Work}}\n"
        "tagCategories: [{externalId: c}]\nactivityTypes: [{code: x}]\n"
        "tags: [{name: one, tagCategoryId: '9'}, {name: two}]\n"
    )
    desired = loaded(tmp_path, {"manifests/m.yaml": text})
    assert desired.resources[Key(Kind.ACTIVITY_TYPE, "x")].body.fields == {"label": "Work"}
    assert tag(desired, "one").body.fields == {"tagCategoryId": "9", "excludeTagNameKeyword": False}
    assert tag(desired, "two").body.fields == {"category": "c", "excludeTagNameKeyword": False}


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "---\n---\n...\n", "\ufeff", "{}", "tags: []"])
def test_a_file_may_be_empty(text: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, {"manifests/m.yaml": text}).resources == {}


def test_the_line_of_a_resource_is_that_of_its_first_key(tmp_path: Path) -> None:
    """Usually that is the line of its dash (docs/manifests.md)."""
    text = "tags:\n  - name: one\n  -\n    managedBy: x\n    name: two\n  - &a\n    {\n    name: six}\n"
    desired = loaded(tmp_path, {"manifests/m.yaml": text})
    assert [tag(desired, name).source.line for name in ("one", "two", "six")] == [2, 4, 8]
    assert str(tag(desired, "one").source) == "manifests/m.yaml:2"


def test_lines_under_removed_are_loaded_with_their_place(tmp_path: Path) -> None:
    text = "removed:\n  - {tag: a, as: retire, reason: closed}\n  - tag: b\n    as: delete\n"
    first, second = loaded(tmp_path, {"manifests/m.yaml": text}).removed.values()
    assert (first.key, first.how, first.reason) == (Key(Kind.TAG, "a"), Removal.RETIRE, "closed")
    assert (second.how, second.reason, second.source.line) == (Removal.DELETE, None, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-05-01T09:00:00Z", 1714554000000),
        ("2024-05-01t09:00:00.123456z", 1714554000123),
        ("2024-05-01 11:00:00.5+02:00", 1714554000500),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2024-05-01", None),
        ("2024-05-01T09:00:00", None),
        ("2024-13-01T09:00:00Z", None),
        ("2024-05-01T09:00:00+99:00", None),
    ],
)
def test_timestamps_are_rfc_3339(text: str, expected: int | None) -> None:
    """They become milliseconds since the epoch; smaller fractions are cut off."""
    assert milliseconds(text) == expected


def test_timestamps_may_be_milliseconds(tmp_path: Path) -> None:
    """An integer is used as it is; a quoted text must be RFC 3339."""
    text = 'tags: [{name: abc, createdTimestamp: 1714554000000, closedTimestamp: "2024-05-01T09:00:00Z"}]'
    fields = tag(loaded(tmp_path, {"manifests/m.yaml": text}), "abc").body.fields
    assert fields["createdTimestamp"] == fields["closedTimestamp"] == 1714554000000


printable = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\ufeff\ufffe\uffff"))


@settings(max_examples=tried(200), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(printable, printable, min_size=1, max_size=5), st.booleans())
def test_quoted_text_is_read_back_exactly(values: dict[str, str], escaped: bool) -> None:
    text = yaml.safe_dump(values, default_style='"', allow_unicode=not escaped, width=10**6)
    findings = Collector("x")
    (root,) = read(text.encode(), findings).roots
    assert findings.found == []
    assert isinstance(root, Mapping)
    pairs = zip(root.keys, root.values, strict=True)
    assert {key.text: value.text for key, value in pairs if isinstance(value, Scalar)} == values


LINKS = ["https://pms.example.com/4711", "HTTP://intranet/a b?c=ü#d", "http://[::1]:8080/", ""]
NO_LINKS = [
    *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "ftp://example.com/", "//example.com/x"),
    *("/matters/4711", "example.com", "https:", "https://", "http:///x", "http:// x", " https://example.com", "4711"),
]


def test_a_tags_url_must_be_a_web_link(tmp_path: Path) -> None:
    """All readers and the schema agree. The console makes the URL clickable, so other schemes are refused."""
    schema = judge("manifest.schema.json")
    links = [*LINKS, *NO_LINKS]
    assert [link for link in links if schema.is_valid({"tags": [{"name": "A", "url": link}]})] == LINKS
    tags = "".join(f"  - {{name: Tag {n}, url: {json.dumps(link)}}}\n" for n, link in enumerate(links))
    rows = ",\n".join(json.dumps({"n": f"Row {n}", "u": link}) for n, link in enumerate(links))
    files = {
        "r.json": f"[{rows}]",
        "manifests/a.yaml": f"tags:\n{tags}",
        "manifests/b.yaml": block("json: ../r.json", "name: '{{ row.n }}', url: '{{ row.u }}'"),
    }
    found = problems(tmp_path, files)
    wrong = range(len(LINKS), len(links))
    assert [d.line for d in found if d.file == "manifests/a.yaml"] == [n + 2 for n in wrong]
    assert [d.data for d in found if d.file == "manifests/b.yaml"] == [("r.json", n + 1) for n in wrong]
    words = "`url` must be a link that starts with https:// or http://, not "
    assert [d.message for d in found if d.code != "bad-value" or not d.message.startswith(words)] == []
