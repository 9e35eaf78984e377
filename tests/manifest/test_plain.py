"""The reader of boring manifests reads them exactly as the full reader does, or leaves them to it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.document.diagnostics import Collector
from syncengine.document.fast_reader import Plain, PlainItem
from syncengine.document.fast_reader import read as read_plain
from syncengine.document.nodes import Mapping, Sequence, place, scalars
from syncengine.document.reader import read as read_fully
from syncengine.document.text import decoded
from syncengine.manifest.schema import PLAIN_SECTIONS, RESOURCE_TABLES, SECTIONS
from tests.support.profiles import tried

from .bad import BAD
from .yaml_spec import EXAMPLES

TAG = """\
  - name: M-{n:07}
    description: "Opposition against EP {n:07}, a matter of some length with words that people would write"
    keywords: ["EP {n:07} B1", "matter {n:07} file", "docket {n:07}/2026"]
    metadata: {{Client: "ACME Holding Corporation {n:07}", Billing Group: billable}}
    externalId: "{n}"
    managedBy: https://pms.example.com/matters/{n:07}/overview
    visibility: PUBLIC
"""
FLOW = "tags:\n" + "".join(TAG.format(n=n) for n in range(3))
DATA: dict[str, list[dict[str, Any]]] = yaml.safe_load(FLOW)


def plain(text: str) -> Plain | None:
    """What the reader of boring files says of a file, which is decoded before, as any is."""
    return None if decoded(text.encode(), Collector("m")) is None else read_plain(text, PLAIN_SECTIONS)


def items_fully(text: str) -> list[PlainItem]:
    """What the full reader says; an AssertionError if it complains of anything."""
    findings = Collector("m")
    documents = read_fully(text.encode(), findings)
    items: list[PlainItem] = []
    assert len(documents.roots) <= 1
    for root in documents.roots:
        assert isinstance(root, Mapping)
        for key, section in zip(root.keys, root.values, strict=True):
            if key.text != "defaults":
                assert isinstance(section, Sequence)
                items += [_item(key.text, node, findings) for node in section.items if isinstance(node, Mapping)]
                assert all(isinstance(node, Mapping) for node in section.items)
    assert (findings.found, documents.cut, documents.whole) == ([], (), True)
    return items


def _item(section: str, node: Mapping, findings: Collector) -> PlainItem:
    values = RESOURCE_TABLES[SECTIONS[section]].read(node, findings)
    return PlainItem(section, *place(node), values)


def agrees(text: str) -> bool:
    """Whether the file is taken, and that it is read as the full reader reads it if it is."""
    found = plain(text)
    if found is None:
        return False
    expected = _without_defaults(text, found)
    assert found.items == expected
    for one, other in zip(found.items, expected, strict=True):
        assert list(one.values) == list(other.values)
        assert [type(value) for value in one.values.values()] == [type(value) for value in other.values.values()]
    return True


def _without_defaults(text: str, found: Plain) -> list[PlainItem]:
    """Items as the full reader finds them; `defaults` are blanked, since they may be wrong."""
    if found.defaults is None:
        return items_fully(text)
    lines = text.split("\n")
    section = found.defaults.lstrip("\n")
    start, count = len(found.defaults) - len(section), section.count("\n")
    assert "\n".join([*lines, ""])[len("\n".join(["", *lines[:start]])) :].startswith(section) or start == 0
    return items_fully("\n".join([*lines[:start], *[""] * count, *lines[start + count :]]))


def dumped(**options: Any) -> str:
    return yaml.safe_dump(DATA, **options)


TAKEN = {
    "as people write": FLOW,
    "as PyYAML dumps": dumped(default_flow_style=False, sort_keys=False),
    "as PyYAML dumps, sorted": dumped(default_flow_style=False),
    "as PyYAML dumps, wide": dumped(default_flow_style=False, width=1000),
    "as PyYAML dumps, narrow": dumped(default_flow_style=False, width=20),
    "nothing": "",
    "a comment": "# nothing",
    "empty sections": "tags: []\ntagCategories: []\n",
    "all sections, in any order": (
        "tags:\n- name: one\nactivityTypes:\n  - code: A1\n    label: Work\n    enableIfNew: true\n"
        "tagCategories:\n    -   externalId: acme\n        keywords: [acme, acme]\n"
    ),
    "no line feed at the end": "tags:\n  - name: one\n    managedBy: two",
    "comments and empty lines": (
        "# one\n\ntags:\n\n  # two\n  - name: one\n\n# three\n    keywords:\n      # four\n      - alpha\n\n"
        "      - beta # or not\n".replace(" # or not", "")
        + "    metadata:\n      # five\n      A: b\n          # six\n\n      C: 'd#'\n\n  - name: two\n# end\n\n"
        "tagCategories:\n  # seven\n  - externalId: x\n  # eight\n"
    ),
    "blanks at the ends of lines": "tags: \n  - name: a  \n    keywords: [a b] \n  \n    metadata: \n      A: 'b'  \n",
    "colons, hashes and blanks inside": (
        "tags:\n  - name: a:b#c  d\n    managedBy: http://x/#y?z=[1]\n    description: \"a: b #c ' [\"\n"
        "    metadata: { A: x:y, 'B b': 'it''s', \"C\": \"a, b: c\" }\n    keywords: [ a b,c, 'd, e', \"f]\" ]\n"
    ),
    "lists in three indentations": (
        "tags:\n  - name: one\n    keywords:\n    - a\n    - 'b'\n  - name: two\n    keywords:\n      - a\n"
        "  - name: three\n    keywords:\n        - a\n        - \"b\"\n        - a\n"
    ),
    "maps in two indentations": (
        "tags:\n  - name: one\n    metadata:\n      A b: c\n      'D': \"e\"\n      \"F f\": 'g''h'\n"
        "  - name: two\n    metadata:\n        A b: c\n"
    ),
    "empty lists and maps": "tags:\n  - name: one\n    keywords: []\n    metadata: {}\n    url: ''\n    path: \"\"\n",
    "folded scalars": (
        "tags:\n- name: one\n  description: it goes\n    - on: and\n  managedBy: on\n".replace(": and", " and")
        + "- name: two\n  description: 'it''s\n    # folded'\n  managedBy: \"so is\n    this: x\"\n  keywords:\n"
        "  - a\n    b\n  - 'c\n    d'\n  metadata:\n    A: b\n      c\n    D: 'e\n      f: g'\n"
    ),
    "strings that look like others": (
        "tags:\n  - name: 0123\n    externalId: 1.10\n    description: no\n    path: 0x1F\n"
        "    defaultActivityTypeCode: 2024-01-01\n"
        "    managedBy: True\n    metadata: {A: 1e3, B: off}\n    protect: true\n    excludeTagNameKeyword: FALSE\n"
        "    createdTimestamp: 2024-05-01T09:00:00Z\n    modifiedTimestamp: 1714554000000\n"
        "    closedTimestamp: '2024-05-01T09:00:00Z'\n"
    ),
    "blanks before a fold": "tags:\n  - name: one\n    managedBy: \" \n     two\"\n    path: a \n      b\n",
    "a line of blanks before a list": "tags:\n  - name: one\n    keywords:\n \n      - a\n \n      - b\n",
    "a line of blanks before a map": "tags:\n  - name: one\n    metadata:\n \n      A: b\n \n      C: d\n",
    "other letters": "tags:\n  - name: Müller 特許\n    keywords: [Ü, 特許 1, '😀']\n    metadata: {Größe: é}\n",
    "keys in many orders": (
        "tags:\n  - name: a\n    managedBy: b\n  - managedBy: c\n    name: d\n  - name: e\n    path: f\n"
        "    managedBy: g\n  - name: h\n  - name: i\n    managedBy: j\n    path: k\n  - managedBy: l\n"
    ),
    "a category anywhere": (
        "tags:\n  - name: a\n    category: x\n  - category:   'y'\n    name: b\n  - name: c\n    description: d\n"
        "      e\n    category: z\n"
    ),
    "defaults": (
        "# c\ndefaults: #d\n  tags: {visibility: PRIVATE,\n   path: x}\n\n  activityTypes:\n    label: |\n     a\n# e\n"
        "tags:\n  - name: one\n"
    ),
    "defaults at the end": "tags:\n  - name: one\ndefaults: {tags: {path: /}}\n",
}  # fmt: skip

LEFT = {
    "a comment after a value": "tags:\n  - name: one # two\n",
    "text cut short": "tags:\n  - name: one\n    description: case #12\n",
    "unknown field": "tags:\n  - nam: one\n",
    "unknown section": "tag:\n  - name: one\n",
    "removed": "removed:\n  - {tag: a, as: retire}\n",
    "generate": "generate: []\n",
    "previously": "tags:\n  - name: one\n    previously: [two]\n",
    "duplicate key": "tags:\n  - name: one\n    name: two\n",
    "duplicate section": "tags: []\ntags: []\n",
    "duplicate defaults": "defaults: {}\ndefaults: {}\n",
    "duplicate metadata": "tags:\n  - name: one\n    metadata: {A: b, 'A': c}\n",
    "duplicate metadata in a block": "tags:\n  - name: one\n    metadata:\n      A: b\n      \"A\": c\n",
    "null": "tags:\n  - name: one\n    managedBy: null\n",
    "tilde": "tags:\n  - name: one\n    managedBy: ~\n",
    "null in a list": "tags:\n  - name: one\n    keywords: [Null]\n",
    "null in a map": "tags:\n  - name: one\n    metadata: {A: NULL}\n",
    "no value": "tags:\n  - name: one\n    managedBy:\n",
    "no value in a map": "tags:\n  - name: one\n    metadata: {A: , B: c}\n",
    "no items": "tags:\n",
    "empty item": "tags:\n  -\n  - name: one\n",
    "item on the next line": "tags:\n  -\n    name: one\n",
    "quoted keys": dumped(default_flow_style=False, default_style="'"),
    "blank before a comma": "tags:\n  - name: one\n    keywords: [a , b]\n",
    "item in braces": "tags:\n  - {name: one}\n",
    "document start": "---\ntags: []\n",
    "document end": "tags: []\n...\n",
    "directive": "%YAML 1.2\n---\ntags: []\n",
    "two documents": "tags: []\n---\ntagCategories: []\n",
    "anchor": "tags:\n  - name: &a one\n",
    "alias": "tags:\n  - name: *a\n",
    "tag": "tags:\n  - name: !!str one\n",
    "block scalar": "tags:\n  - name: one\n    description: |\n      two\n",
    "folded block scalar": "tags:\n  - name: one\n    description: >-\n      two\n",
    "escape": 'tags:\n  - name: "a\\"b"\n',
    "tab": "tags:\n  - name: one\t\n",
    "carriage return": "tags:\r\n  - name: one\r\n",
    "JSON": '{"tags": [{"name": "one"}]}',
    "merge key": "tags:\n  - name: one\n    metadata:\n      <<: x\n",
    "empty name": 'tags:\n  - name: ""\n',
    "blanks around a name": "tags:\n  - name: ' one'\n",
    "blank keyword": "tags:\n  - name: one\n    keywords: [' ']\n",
    "blank metadata name": "tags:\n  - name: one\n    metadata: {' ': x}\n",
    "quoted flag": "tags:\n  - name: one\n    protect: 'true'\n",
    "YAML 1.1 flag": "tags:\n  - name: one\n    protect: yes\n",
    "date without time": "tags:\n  - name: one\n    createdTimestamp: 2024-05-01\n",
    "unknown choice": "tags:\n  - name: one\n    visibility: public\n",
    "list for a text": "tags:\n  - name: [one]\n",
    "text for a list": "tags:\n  - name: one\n    keywords: two\n",
    "list of lists": "tags:\n  - name: one\n    keywords:\n      - - a\n",
    "map in a list": "tags:\n  - name: one\n    keywords:\n      - a: b\n",
    "list in a map": "tags:\n  - name: one\n    metadata: {a: [b]}\n",
    "long name in metadata": f"tags:\n  - name: one\n    metadata:\n      {'k' * 1100}: x\n",
    "wrong indentation": "tags:\n  - name: one\n   managedBy: x\n",
    "item in another indentation": "tags:\n  - name: one\n - name: two\n",
    "empty line in a scalar": "tags:\n  - name: one\n    managedBy: 'a\n\n      b'\n",
    "scalar at the margin": "tags:\n  - name: one\n    managedBy: 'a\nb'\n",
    "document start in a scalar": "tags:\n  - name: one\n    managedBy: 'a\n--- b'\n",
    "comment in a scalar": "tags:\n  - name: one\n    managedBy: a\n      # b\n      c\n",
    "no-break blanks": "tags:\n  - name: one\n    keywords: [\"\N{NO-BREAK SPACE}\"]\n",
}  # fmt: skip


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN.keys())
def test_what_is_boring_is_taken(text: str) -> None:
    """And means what the full reader says: values and their types and order, places, no errors, no warnings."""
    assert agrees(text)


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT.keys())
def test_what_is_not_boring_is_left_to_the_full_reader(text: str) -> None:
    """Nothing is guessed, and nothing is reported here."""
    assert plain(text) is None


@pytest.mark.parametrize("name", BAD)
def test_no_bad_manifest_is_taken_for_a_good_one(name: str) -> None:
    """Whatever is wrong is found by the full reader, or by those who see more than one item."""
    text = BAD[name].text
    agrees(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_the_shapes_of_the_specification_are_never_read_differently(text: str) -> None:
    """Most of them are left; those that are taken mean the same."""
    agrees(text)


def test_some_of_the_specification_is_boring() -> None:
    """So that the corpus shows something."""
    assert sum(plain(text) is not None for text in EXAMPLES.values()) > 10


def test_orders_of_keys_without_end_are_left() -> None:
    """Each costs a regular expression."""
    names = [name for name, field in PLAIN_SECTIONS["tags"].items() if field.convert is None]
    orders = list(permutations(names, 3))
    items = ["  - " + "\n    ".join(f"{name}: x" for name in order) + "\n" for order in orders]
    assert agrees("tags:\n" + "".join(items[:20]))
    assert plain("tags:\n" + "".join(items)) is None


def test_the_slice_of_defaults_stands_where_it_stood() -> None:
    """So that what is wrong in it is reported at its line and column."""
    found = plain(TAKEN["defaults"])
    assert found is not None
    assert found.defaults is not None
    ((root,), (again,)) = (
        read_fully(text.encode(), Collector("m")).roots for text in (TAKEN["defaults"], found.defaults)
    )
    assert isinstance(root, Mapping)
    assert isinstance(again, Mapping)
    assert [(node.text, place(node)) for node in scalars(again)] == [
        (node.text, place(node)) for node in scalars(Mapping(root.keys[:1], root.values[:1], root.mark))
    ]


LONG = {
    "blanks": f"tags:\n  - name: one\n    managedBy: a{' ' * 300_000}b\n{' ' * 300_000}",
    "quotes": "tags:\n  - name: one\n    managedBy: " + '"\n    x: ' * 50_000,
    "an open list": "tags:\n  - name: one\n    keywords: [" + '"a", ' * 50_000,
    "an open map": "tags:\n  - name: one\n    metadata: {" + "a: b, " * 50_000,
    "brackets": "tags:\n  - name: one\n    keywords: " + "[" * 100_000 + "\n",
    "colons": "tags:\n  - name: one\n    managedBy: a" + ":" * 100_000 + "\n",
    "a fold that ends badly": "tags:\n  - name: one\n    managedBy: a" + "\n      b" * 50_000 + "\n      c: d\n",
    "a list that ends badly": "tags:\n  - name: one\n    keywords:\n" + "      - a\n" * 50_000 + "      - b: c\n",
    "comments": "tags:\n  - name: one\n" + "# x\n" * 50_000 + "x",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_long_files_take_no_longer_than_they_are(text: str) -> None:
    """Any step that costs the square of the length would keep this test for minutes."""
    plain(text)


def test_every_field_without_a_place_can_be_read() -> None:
    """All but `previously`, which is judged item by item."""
    for section, kind in SECTIONS.items():
        assert RESOURCE_TABLES[kind].readers.keys() - PLAIN_SECTIONS[section].keys() <= {"previously"}


ODD = [
    "", " ", "  ", "a", "b", "x", "one", "a b", "a  b", ":", ": ", " :", "#", " #", "# ", "#x", " #x", "'", "\"",
    "''", "\"\"", "'it''s'", "\"x\"", "'x'", "\"a\" b", "'a' b", "-", "- ", "-a", "- - a", "?", "? ", "? a", ": x",
    "key : v", "a:b", "a: b", "a: b: c", "a:", "[", "]", "{", "}", ",", ", ", "[a, b", "[a, b]", "[ a , b ]",
    "[a,b,]", "[,]", "[a b]", "{a: [b]}", "{A: x}", "{A: x, 'B': \"y\"}", "{ A: x }", "{A: x,}", "{A : x}",
    "{A:x}", "{\"A\":x}", "{A}", "[{a: b}]", "[[a]]", "&", "*", "&a x", "*a", "!", "!!str a", "|", ">", "|-", "%",
    "@", "`", "~", "null", "Null", "nullx", "no", "true", "True", "yes", "1", "0123", "1.10", "2024-01-01",
    "2024-05-01T09:00:00Z", "<<", "<", "=", "---", "...", "--- a", "\\", "\\n", "\"\\\"", "\"\\n\"", "\"a\\\nb\"",
    "\n", "\n\n", "\n ", "\n    ", "\n      ", "\n        ", "\n- ", "\n  - ", "\n    - ", "\n      - ", "\n# c\n",
    "\n    # c\n", " \n", "\t", "\r", "\u0085", "\u2028", "\u2029", "\ufeff", "\u00a0", "\u3000", "́", "é", "特許",
    "😀", "�", "\U0001fffe", "/", "(", ")", ".", "a?b", "a? b", "what? x", "a,b", "http://x/y?z#a", "C:\\x",
    "12:30", "PRIVATE", "PUBLIC",
]  # fmt: skip
odd = st.lists(st.sampled_from(ODD), max_size=4).map("".join)
indents = st.sampled_from(["      "] * 6 + ["    ", "    ", "        ", "", "  ", "   "])
ends = ["\n\n", "\n# c\n", "\n  # c\n", "\n     # c\n", " \n"]
line_ends = st.sampled_from(["\n"] * 25 + ends + [" # c\n", "\n      ", "", "\r\n", "\n  \n"])
between = st.sampled_from(["\n"] * 20 + ends)


def mostly(good: st.SearchStrategy[str], bad: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The bad one time in eight."""
    return st.integers(0, 7).flatmap(lambda n: good if n else bad)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A scalar: mostly harmless, sometimes odd, sometimes quoted, sometimes on several lines."""
    text = draw(mostly(st.sampled_from(["one", "two words", "x-1", "a#b:c", "PRIVATE", "true"]), odd))
    quote = draw(st.sampled_from(["", "", "", "'", '"']))
    if draw(st.integers(0, 9)) == 0:
        deeper = mostly(st.just("\n         "), st.sampled_from(["\n     ", "\n       ", "\n    ", "\n", "\n\n      "]))
        text += draw(deeper) + draw(mostly(st.just("more of it"), odd))
    return quote + text + quote


@st.composite
def lists(draw: st.DrawFn) -> str:
    """In brackets or as a block."""
    items = draw(st.lists(texts(), min_size=1, max_size=3))
    if draw(st.booleans()):
        comma = draw(st.sampled_from([", ", ", ", ",", " , "]))
        return " [" + comma.join(items) + draw(st.sampled_from(["]", "]", " ]", ",]"]))
    indent = draw(indents)
    return "".join(draw(between) + indent + "- " + item for item in items)


@st.composite
def maps(draw: st.DrawFn) -> str:
    """In braces or as a block."""
    names = draw(st.lists(mostly(st.sampled_from(["A", "B b", "'C'", '"D"', "Ee", "F"]), odd), min_size=1, max_size=3))
    pairs = [name + draw(st.sampled_from([": ", ": ", ":  ", ":  ", ":"])) + draw(texts()) for name in names]
    if draw(st.booleans()):
        return " {" + ", ".join(pairs) + draw(st.sampled_from(["}", "}", " }", ",}"]))
    indent = draw(indents)
    return "".join(draw(between) + indent + pair for pair in pairs)


@st.composite
def items(draw: st.DrawFn, section: str, dash: str, indent: str) -> str:
    names = mostly(st.sampled_from(list(PLAIN_SECTIONS[section])), st.sampled_from(["previously", "nam"]))
    fields = draw(st.lists(names, min_size=1, max_size=4, unique=draw(st.integers(0, 9)) > 0))
    written = []
    for field in fields:
        known = PLAIN_SECTIONS[section].get(field)
        shape = "text" if known is None else known.shape.value
        spaces = draw(st.sampled_from([" ", " ", "  "]))
        good = _GOOD.get(field)
        text = texts() if good is None else mostly(st.just(good), texts())
        value = draw({"text": text.map(spaces.__add__), "list": lists(), "map": maps()}[shape])
        written.append(f"{field}:{value}{draw(line_ends)}")
    return dash + indent.join(written)


_GOOD = {
    "visibility": "PRIVATE",
    **dict.fromkeys(("protect", "excludeTagNameKeyword", "enableIfNew", "reenableIfArchived"), "true"),
    **dict.fromkeys(("createdTimestamp", "modifiedTimestamp", "closedTimestamp"), "2024-05-01T09:00:00Z"),
}


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """Files that are nearly boring: hostile fragments where values stand, odd lines between."""
    parts = []
    for section in draw(
        st.lists(st.sampled_from([*SECTIONS, "defaults"]), max_size=3, unique=draw(st.integers(0, 9)) > 0)
    ):
        if section == "defaults":
            parts.append(f"defaults:{draw(mostly(maps(), odd))}{draw(line_ends)}")
            continue
        dash, indent = draw(st.sampled_from([("  - ", "    "), ("- ", "  "), ("    -   ", "        ")]))
        written = draw(st.lists(items(section, dash, indent), min_size=1, max_size=3))
        parts.append(f"{section}:{draw(line_ends)}" + "".join(written))
    return draw(st.sampled_from(["", "", "# c\n", "\n", "---\n"])) + "".join(parts)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good file in which characters and lines are gone, doubled or new."""
    text = draw(st.sampled_from(list(TAKEN.values())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 5)))
        change = draw(st.sampled_from(["delete", "insert", "double", "delete line", "double line", "move line"]))
        lines = text.split("\n")
        at, to = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        if change == "delete":
            text = text[:start] + text[end:]
        elif change == "insert":
            text = text[:start] + draw(odd) + text[start:]
        elif change == "double":
            text = text[:end] + text[start:]
        elif change == "delete line":
            text = "\n".join(lines[:at] + lines[at + 1 :])
        elif change == "double line":
            text = "\n".join([*lines[: at + 1], *lines[at:]])
        else:
            text = "\n".join([*lines[:at], lines[to], *lines[at:]])
    return text


quick = settings(max_examples=tried(300), suppress_health_check=list(HealthCheck), deadline=None)


@quick
@given(manifests())
def test_nearly_boring_files_are_never_read_differently(text: str) -> None:
    """Whatever stands where values stand."""
    agrees(text)


@quick
@given(mutated())
def test_good_files_gone_wrong_are_never_read_differently(text: str) -> None:
    """Whatever is missing or doubled."""
    agrees(text)
