"""Lints on manifests: what they report, where, and at which level."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from syncengine.document.diagnostics import Collector
from syncengine.document.text import folded
from syncengine.errors import Diagnostic
from syncengine.manifest.lints import (
    LINTS,
    LONGEST_WHOLE,
    MOST_DIGITS,
    contained,
    is_broad,
    mixed_categories,
    parts_of,
    public_by_silence,
    report_silence,
)
from syncengine.resource import Body, Key, Kind, Resource, Source

from .loading import counted, loaded, problems

SUSPICIOUS = {
    "same-keyword": (
        "tags:\n  - {name: Alpha, keywords: [Shared Word]}\n  - {name: Beta, keywords: [shared word]}\n"
        "  - {name: Gamma, keywords: [SHARED WORD]}\n", (3, 29),
    ),
    "keyword-too-broad": ("tags:\n  - {name: Alpha, keywords: [ab]}\n", (2, 30)),
    "similar-name": ("tags:\n  - name: Straße\n  - name: STRASSE\n", (3, 11)),
    "keyword-contained": (
        "tags:\n  - {name: Alpha One, keywords: [Smith]}\n  - {name: Beta Two, keywords: [Smith & Co]}\n"
        "  - {name: Gamma Three, keywords: [John Smith]}\n", (2, 34),
    ),
    "public-by-silence": (
        "tags:\n  - {name: Alpha, visibility: PRIVATE}\n  - name: Beta\n  - {name: Gamma, visibility: PRIVATE}\n",
        (3, 5),
    ),
    "private-in-shared-category": (
        "tagCategories: [{externalId: c, label: C}]\ndefaults: {tags: {category: c}}\ntags:\n"
        "  - {name: Alpha, visibility: PUBLIC}\n  - {name: Beta, visibility: PRIVATE}\n", (5, 12),
    ),
    "closed-with-keywords": ("tags:\n  - name: Alpha\n    closedTimestamp: 2024-05-01T09:00:00Z\n", (3, 22)),
    "deprecated": ("tags:\n  - name: Alpha\n    path: /\n", (3, 11)),
    "curly-quotes": ("tags:\n  - name: Alpha\n    description: “Opposition”\n", (3, 18)),
    "comment-in-text": ("tags:\n  - name: Alpha\n    description: case #12\n", (3, 18)),
}  # fmt: skip


def test_every_lint_has_a_case() -> None:
    """The table has all lints except for those about braces, unread files and `when`, which have tests of their own."""
    assert SUSPICIOUS.keys() == LINTS.keys() - {"comma-in-text", "unread-file", "when-none"}


COMMAS = {
    "a name that is none": ("{name: X, description: Opposition, appeal}", "appeal", "Opposition, appeal"),
    "a field's name": ("{name: X, description: closed, url}", "url", "closed, url"),
    "two": ("{name: X, description: Opposition, appeal, again}", "appeal", "Opposition, appeal"),
    "metadata": ("{name: X, metadata: {Client: Smith, Jones & Co}}", "Jones", "Smith, Jones & Co"),
}


@pytest.mark.parametrize(("tag", "rest", "text"), COMMAS.values(), ids=COMMAS.keys())
def test_a_comma_that_cuts_a_text_in_braces_is_reported(tmp_path: Path, tag: str, rest: str, text: str) -> None:
    """This holds for any field, even if the rest of the text is the name of a field."""
    line = f"  - {tag}"
    found = problems(tmp_path, {"manifests/m.yaml": f"tags:\n{line}\n"})
    first = next(d for d in found if d.code == "comma-in-text")
    assert (first.column, f'"{text}"' in first.message) == (line.index(rest) + 1, True)
    assert {d.severity for d in found if d.code != "comma-in-text"} == {"error"}


CUTS = {
    "anchor": ("&d cut here # gone", 1),
    "several lines": ("first line\n      second line # gone", 1),
    "several lines with a comment": ("first line\n      second line  # remark", 0),
    "no blank behind": ("cut here  #12", 1),
    "quotes": ('"cut here # gone"', 0),
    "quotes and a comment": ("'cut here' # gone", 0),
    "block": ("|\n      cut here # gone", 0),
    "block with a comment": (">- # comment\n      cut here", 0),
    "no blank before": ("C#12", 0),
}


@pytest.mark.parametrize(("text", "count"), CUTS.values(), ids=CUTS.keys())
def test_a_comment_that_cuts_an_unquoted_text_is_reported(tmp_path: Path, text: str, count: int) -> None:
    """Quoted text and block scalars contain no comments."""
    found = loaded(tmp_path, {"manifests/m.yaml": f"tags:\n  - name: Alpha\n    description: {text}\n"}).diagnostics
    assert [(d.code, d.line, d.column) for d in found] == [("comment-in-text", 3, 18)] * count


@pytest.mark.parametrize("year", [1999, 2999])
def test_the_message_about_an_end_is_true_before_and_after_it(tmp_path: Path, year: int) -> None:
    """Diagnostics are cached until the file changes, so their messages must not depend on the day."""
    text = f"tags:\n  - name: Alpha\n    closedTimestamp: {year}-05-01T09:00:00Z\n"
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert found.message.startswith('time after `closedTimestamp` still matches "Alpha": if the matter is closed, set')


ASKED_FOR = {"syncengine.yaml": "version: 1\npolicy: {diagnostics: {keyword-contained: warning}}\n"}
"""Switches on the lint that is off by default."""


@pytest.mark.parametrize(("tags", "words"), [(2, ""), (3, "; 3 tags have it"), (68, "; 68 tags have it")])
def test_a_keyword_of_many_tags_is_reported_with_their_number(tmp_path: Path, tags: int, words: str) -> None:
    """It is reported once, at the second tag. Several spellings in one tag count once."""
    text = "tags:\n" + "".join(f"  - {{name: Tag {n:02}, keywords: [Shared Word, shared word]}}\n" for n in range(tags))
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert (found.code, found.address, found.line) == ("same-keyword", "tag/Tag 01", 3)
    assert found.message == f'tag/Tag 00 also has the keyword "Shared Word"{words}'


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_lint_warns_once_at_its_place(code: str, tmp_path: Path) -> None:
    """The manifests are still used. Where the project makes it an error, the message says how to undo that."""
    text, place = SUSPICIOUS[code]
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text, **ASKED_FOR}).diagnostics
    assert (found.code, found.severity, (found.line, found.column)) == (code, "warning", place)
    strict = f"version: 1\npolicy: {{diagnostics: {{{code}: error}}}}\n"
    (found,) = problems(tmp_path, {"syncengine.yaml": strict})
    cure = f"; to make it a warning, set `{code}: warning` under `policy.diagnostics` in the project file"
    assert (found.code, found.severity, found.message.endswith(cure)) == (code, "error", True)


@pytest.mark.parametrize(
    "text",
    [
        "tags:\n  - {name: Alpha, keywords: [Handle, handle]}\n",
        "tags:\n  - name: Alpha  # the first\n    protect: true #why\n",
        'tags:\n  - name: "Alpha #12"\n',
        "tags:\n  - {name: Apache Kafka, keywords: [kafka]}\n  - {name: Kafkaesque, keywords: [on Kafkas time]}\n",
        "tags:\n  - {name: Alpha, visibility: PUBLIC}\n  - name: Beta\n",
        "tags:\n  - name: Alpha  # the first\n    visibility: PUBLIC # why\n    createdTimestamp: 17 # ms\n"
        "    excludeTagNameKeyword: true # no\n    description: two words  # and a comment\n",
        "tags:\n  - name: Alpha\n    description: “Smith” v. “Jones”, a ‘case’\n    url: ''\n",
        "tags:\n  - {name: Alpha, closedTimestamp: 1, excludeTagNameKeyword: true}\n",
        "tags:\n  - {name: Draft, excludeTagNameKeyword: true, keywords: [Alpha]}\n",
        "tagCategories: [{externalId: c, label: C}, {externalId: d, label: D}]\n"
        "tags: [{name: Alpha, category: c, visibility: PRIVATE}, {name: Beta, category: d, visibility: PUBLIC}]\n",
        "tagCategories:\n  - {externalId: ab, keywords: [ab]}\n  - {externalId: cd, keywords: [ab]}\n",
    ],
)
def test_a_correct_manifest_has_no_warnings(text: str, tmp_path: Path) -> None:
    """Examples are comments, quoted text, several spellings in one tag, and keywords of categories."""
    assert loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics == ()


def test_a_name_is_a_keyword_that_can_be_too_broad(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, {"manifests/m.yaml": "tags:\n  - {name: Draft}\n"}).diagnostics
    assert (found.code, found.line, found.column) == ("keyword-too-broad", 2, 12)


def test_a_value_that_several_tags_use_is_told_of_once(tmp_path: Path) -> None:
    text = "tags:\n  - {name: Alpha, path: &p /}\n  - {name: Beta, path: *p}\n  - {name: Gamma, path: *p}\n"
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert (found.code, found.line, found.address) == ("deprecated", 2, "tag/Alpha")
    assert found.message.endswith("(used again in lines 3, 4)")


def test_a_series_of_numbered_tags_is_reported_by_its_first_three(tmp_path: Path) -> None:
    """The third message counts the others. Each series is reported by itself."""
    tags = "".join(f"  - name: {series}-{n}\n" for series in ("ACME", "BETA") for n in range(1, 100))
    found = loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": f"tags:\n{tags}"}).diagnostics
    assert [d.address for d in found] == [f"tag/{series}-{n}" for series in ("ACME", "BETA") for n in (1, 2, 3)]
    assert found[2].message.endswith("so it also matches that tag's time; the same applies to 6 more with other digits")
    padded = "".join(f"  - name: ACME-{n:02}\n" for n in range(1, 100))
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": f"tags:\n{padded}"}).diagnostics == ()


def test_a_very_long_keyword_is_not_compared(tmp_path: Path) -> None:
    """A keyword of up to about a thousand letters is compared; one of 100,000 would take too long."""
    assert parts_of("x" * 998 + " y\nacme") == {"x" * 998}
    assert parts_of("x" * 100_000 + " acme corp\nacme") == set()
    long = "Acme " + "x" * 100_000
    text = f"tags:\n  - name: Acme\n  - {{name: Other, keywords: [{long}]}}\n"
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": text}).diagnostics == ()


def test_long_texts_are_folded_by_case_but_not_normalized() -> None:
    """Sorting combining accents takes quadratic time, so only short texts are normalized."""
    composed, apart = "é", "e\N{COMBINING ACUTE ACCENT}"
    assert folded(composed * 100) == folded((apart * 100).upper())
    assert folded(apart * 1000) == folded((apart * 1000).upper()) != folded(composed * 1000)


def words(count: int, form: str) -> str:
    return ", ".join(map(form.format, range(count)))


MANY_KEYWORDS: Mapping[str, Callable[[int], str]] = {
    "contained": lambda n: (
        f"  - {{name: Beta, keywords: [{words(n, 'w{:05}')}]}}\n"
        f"  - {{name: Gamma, keywords: [{words(n, 'w{:05} too')}]}}"
    ),
    "shared": lambda n: (
        f"  - {{name: Beta, keywords: [{words(n, 'w{:05}')}]}}\n  - {{name: Gamma, keywords: [{words(n, 'W{:05}')}]}}"
    ),
    "former names": lambda n: (
        f"  - {{name: Beta, previously: [{words(n, 'w{:05}')}]}}\n"
        + "".join(f"  - name: w{at:05}\n" for at in range(n))
    ),
    "anchors": lambda n: "".join(
        f"  - {{name: A{i}, url: &u{i} x}}\n  - {{name: B{i}, url: *u{i}}}\n" for i in range(n)
    ),
}
"""The tags of manifests with n words, of which each has a diagnostic."""


@pytest.mark.parametrize("case", MANY_KEYWORDS)
def test_the_work_grows_linearly_with_the_number_of_words(case: str, tmp_path: Path) -> None:
    """It is measured in function calls and generator steps."""

    def found(n: int) -> tuple[Diagnostic, ...]:
        files = {**ASKED_FOR, "manifests/m.yaml": f"tags:\n{MANY_KEYWORDS[case](n)}\n"}
        return problems(tmp_path, files) or loaded(tmp_path, files).diagnostics

    few, many = counted(lambda: found(200)), counted(lambda: found(400))
    assert (len(few[1]), len(many[1])) == (200, 400)
    assert many[0] < 2.5 * few[0]


PARTS = {
    "": set(),
    "acme": set(),
    "of": set(),
    "john smith": {"john", "smith"},
    "smith & co": {"smith"},
    "the acme group": {"the", "acme", "group", "the acme", "acme group"},
    "one two three four": {"one", "two", "three", "four", "one two", "two three", "three four"}
    | {"one two three", "two three four"},
    "acme-42": {"acme", "acme-4"},
    "acme42": {"acme", "acme4"},
    "xacme-42": {"xacme", "xacme-4"},
    "ep 1234": {"1234", "ep 1", "ep 12", "ep 123"},
    "smith and jones": {"and", "and jones", "jones", "smith", "smith and"},
    "smith & jones co": {"jones", "jones co", "smith", "smith & jones"},
    "ep1234567": {"ep1", "ep12", "ep123", "ep1234", "ep12345", "ep123456"},
    "ab1": set(),
    "john\nsmith": set(),
    "x" * LONGEST_WHOLE + " acme": set(),
}


@pytest.mark.parametrize(("lines", "parts"), PARTS.items(), ids=[repr(lines[:20]) for lines in PARTS])
def test_parts_are_runs_of_words_and_beginnings_of_numbers(lines: str, parts: set[str]) -> None:
    """A part has three letters at least, does not cross the end of a line, and is not the whole keyword."""
    assert parts_of(lines) == parts
    assert len(parts_of("num" + "1" * 200)) == MOST_DIGITS


def test_short_and_common_words_are_too_broad() -> None:
    broad = ("ab", "x", "123", "2024", "The", "Outlook", "Project", "review", "Matter")
    assert tuple(word for word in (*broad, "1234", "ABC", "特許", "A 1") if is_broad(word)) == broad


def tag(name: str, *keywords: str) -> Resource:
    return Resource(Key(Kind.TAG, name), Body({}, keywords), Source("all.yaml", 1))


CONTAINED = {
    "in another's": ([tag("A", "smith"), tag("B", "smith & co")], "smith"),
    "whichever comes first": ([tag("B", "smith & co"), tag("A", "smith")], "smith"),
    "in its own only": ([tag("A", "smith", "smith & co")], ""),
    "of whatever case": ([tag("A", "SMITH"), tag("B", "Smith & Co")], "SMITH"),
    "with its first holder": ([tag("A", "smith"), tag("C", "Smith"), tag("B", "smith & co")], "smith"),
    "held by nobody": ([tag("B", "smith & co")], ""),
    "short and long of one": ([tag("A", "Smith", "Smith & Co"), tag("B", "John Smithers")], ""),
    "told once": ([tag("A", "smith"), tag("B", "smith & co"), tag("C", "john smith")], "smith"),
}


@pytest.mark.parametrize(("tags", "word"), CONTAINED.values(), ids=CONTAINED)
def test_a_keyword_that_is_part_of_another_tags_is_reported(tags: list[Resource], word: str) -> None:
    """It is reported once, with the first keyword of another tag that contains it: here of B."""
    wholes = {each.key.name: each.body.keywords[0] for each in tags}
    found = [(each.key.name, each.word, each.message) for each in contained(tags)]
    said = f'the keyword "{word}" is part of "{wholes.get("B")}" of tag/B, so it also matches that tag\'s time'
    assert found == ([("A", word, said)] if word else [])


PRIVATE, PUBLIC, SILENT = "PRIVATE", "PUBLIC", None


def tag_of(name: str, visibility: str | None, line: int = 1, *, sound: bool = True, **fields: str) -> Resource:
    said = {"visibility": visibility} if visibility else {}
    return Resource(Key(Kind.TAG, name), Body({**said, **fields}), Source("all.yaml", line), column=5, sound=sound)


@pytest.mark.parametrize(
    ("visibilities", "silent"),
    [
        ([], []),
        ([SILENT], []),
        ([PRIVATE], []),
        ([PRIVATE, SILENT], [1]),
        ([SILENT, PRIVATE, PRIVATE], [0]),
        ([PRIVATE, SILENT, SILENT, SILENT], [1, 2, 3]),
        ([PRIVATE, PUBLIC, PUBLIC, SILENT], [3]),
        ([PUBLIC, SILENT], []),
    ],
)
def test_a_tag_without_visibility_is_reported_beside_a_private_one(
    visibilities: list[str | None], silent: list[int]
) -> None:
    """One private tag is enough. A category has no visibility, and that of a tag with errors is unknown."""
    tags = [tag_of(f"T-{n}", visibility) for n, visibility in enumerate(visibilities)]
    others = [Resource(Key(Kind.CATEGORY, "c"), Body({}), Source("a", 1)), tag_of("B", SILENT, sound=False)]
    assert [found.key.name for found in public_by_silence([*tags, *others])] == [f"T-{n}" for n in silent]


def test_tags_of_one_template_without_visibility_are_reported_once() -> None:
    findings = Collector("all.yaml")
    private = [tag_of(f"P-{n}", PRIVATE) for n in range(3)]
    report_silence([*private, *(tag_of(f"S-{n}", SILENT, 9) for n in range(2))], findings)
    report_silence([*private, tag_of("other", SILENT, 12)], findings)
    assert [(d.code, d.line, d.column, d.address) for d in findings.found] == [
        ("public-by-silence", 9, 5, "tag/S-0"),
        ("public-by-silence", 12, 5, "tag/other"),
    ]


def in_category(name: str, visibility: str | None, category: str = "c") -> Resource:
    return tag_of(name, visibility, category=category)


MIXED = {
    "both": ([in_category("A", PRIVATE), in_category("B", PUBLIC)], ["A"]),
    "silence is public": ([in_category("B", SILENT), in_category("A", PRIVATE)], ["A"]),
    "by the service's id": ([tag_of("A", PRIVATE, tagCategoryId="7"), tag_of("B", PUBLIC, tagCategoryId="7")], ["A"]),
    "the first is told": ([*(in_category(name, PRIVATE) for name in "AB"), in_category("C", PUBLIC)], ["A"]),
    "private only": ([in_category("A", PRIVATE), in_category("B", PRIVATE)], []),
    "two categories": ([in_category("A", PRIVATE), in_category("B", PUBLIC, "d")], []),
    "no category": ([tag_of("A", PRIVATE), tag_of("B", PUBLIC)], []),
}


@pytest.mark.parametrize(("tags", "told"), MIXED.values(), ids=MIXED)
def test_a_private_tag_in_a_category_with_public_tags_is_reported(tags: list[Resource], told: list[str]) -> None:
    """It is reported once for each category, as users who see the category notice the private tag."""
    assert [shared.key.name for shared in mixed_categories(tags)] == told
