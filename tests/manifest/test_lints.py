"""Suspicions are few, right, and as loud as the project wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from syncengine.document.text import folded
from syncengine.errors import Diagnostic
from syncengine.manifest.lints import LINTS, is_broad, parts_of

from .loading import counted, loaded, problems

SUSPICIOUS = {
    "same-keyword": (
        "tags:\n  - {name: Alpha, keywords: [Shared Word]}\n  - {name: Beta, keywords: [shared word]}\n"
        "  - {name: Gamma, keywords: [SHARED WORD]}\n",
        (3, 29),
    ),
    "keyword-too-broad": ("tags:\n  - {name: Alpha, keywords: [ab]}\n", (2, 30)),
    "similar-name": ("tags:\n  - name: Straße\n  - name: STRASSE\n", (3, 11)),
    "keyword-contained": (
        "tags:\n  - {name: Alpha One, keywords: [Smith]}\n  - {name: Beta Two, keywords: [Smith & Co]}\n"
        "  - {name: Gamma Three, keywords: [John Smith]}\n",
        (2, 34),
    ),
    "public-by-silence": (
        "tags:\n  - {name: Alpha, visibility: PRIVATE}\n  - name: Beta\n  - {name: Gamma, visibility: PRIVATE}\n",
        (3, 5),
    ),
    "private-in-shared-category": (
        "tagCategories: [{externalId: c, label: C}]\ndefaults: {tags: {category: c}}\ntags:\n"
        "  - {name: Alpha, visibility: PUBLIC}\n  - {name: Beta, visibility: PRIVATE}\n",
        (5, 12),
    ),
    "closed-with-keywords": (
        "tags:\n  - name: Alpha\n    closedTimestamp: 2024-05-01T09:00:00Z\n",
        (3, 22),
    ),
    "deprecated": ("tags:\n  - name: Alpha\n    path: /\n", (3, 11)),
    "curly-quotes": ("tags:\n  - name: Alpha\n    description: “Opposition”\n", (3, 18)),
    "comment-in-text": ("tags:\n  - name: Alpha\n    description: case #12\n", (3, 18)),
}


def test_every_lint_has_a_case() -> None:
    """The table above is complete, but for a name without its value, an error, and for data and files beside."""
    assert SUSPICIOUS.keys() == LINTS.keys() - {"comma-in-text", "unread-file", "when-none"}


COMMAS = {
    "a name that is none": ("{name: X, description: Opposition, appeal}", "appeal", "Opposition, appeal"),
    "a field's name": ("{name: X, description: closed, url}", "url", "closed, url"),
    "two": ("{name: X, description: Opposition, appeal, again}", "appeal", "Opposition, appeal"),
    "metadata": ("{name: X, metadata: {Client: Smith, Jones & Co}}", "Jones", "Smith, Jones & Co"),
}


@pytest.mark.parametrize(("tag", "rest", "text"), COMMAS.values(), ids=COMMAS.keys())
def test_a_comma_may_cut_any_text_in_braces(tmp_path: Path, tag: str, rest: str, text: str) -> None:
    """Whichever field it belongs to, and whether the rest is the name of a field."""
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
def test_a_comment_may_cut_any_unquoted_text(tmp_path: Path, text: str, count: int) -> None:
    """However the text is written: what is quoted, or a block, has no comments."""
    found = loaded(tmp_path, {"manifests/m.yaml": f"tags:\n  - name: Alpha\n    description: {text}\n"}).diagnostics
    assert [(d.code, d.line, d.column) for d in found] == [("comment-in-text", 3, 18)] * count


def test_a_comment_that_opens_a_bracket_is_told_as_that(tmp_path: Path) -> None:
    """The bracket is not the mistake."""
    (found,) = problems(tmp_path, {"manifests/m.yaml": "tags:\n  - {name: Alpha, description: case #12}\n"})
    assert (found.code, found.line, "` #` begins a comment" in found.message) == ("yaml-syntax", 2, True)


def test_a_comma_that_cuts_a_text_is_told_as_that(tmp_path: Path) -> None:
    """`{Client: Smith, Jones & Co}` reads as two names, and the second is the place; it has no value."""
    text = "tags:\n  - name: Alpha\n    metadata: {Client: Smith, Jones & Co}\n"
    found = problems(tmp_path, {"manifests/m.yaml": text})
    assert [(d.code, d.severity, d.line, d.column) for d in found] == [
        ("comma-in-text", "warning", 3, 31),
        ("null-value", "error", 3, 41),
    ]
    assert '"Smith, Jones & Co"' in found[0].message


@pytest.mark.parametrize("year", [1999, 2999])
def test_an_end_is_told_of_in_words_that_are_true_before_and_after_it(tmp_path: Path, year: int) -> None:
    """What was read is remembered until the file changes, so that nothing is said of the day."""
    text = f"tags:\n  - name: Alpha\n    closedTimestamp: {year}-05-01T09:00:00Z\n"
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert found.message.startswith('time after `closedTimestamp` still matches "Alpha": if the matter is closed, set')


ASKED_FOR = {"syncengine.yaml": "version: 1\npolicy: {diagnostics: {keyword-contained: warning}}\n"}
"""For the lint that is not looked for unasked."""

LARGE = "".join(f"  - name: Matter {n:04}\n    description: number {n}\n" for n in range(400))


@pytest.mark.parametrize(
    "code",
    ["closed-with-keywords", "public-by-silence", "keyword-contained", "comment-in-text", "curly-quotes", "deprecated"],
)
def test_large_files_are_looked_at_as_closely(code: str, tmp_path: Path) -> None:
    """Whichever reader a file is read by."""
    more = {
        "closed-with-keywords": "tags:\n" + LARGE + "  - name: Alpha\n    closedTimestamp: 1714554000000\n",
        "comment-in-text": "tags:\n" + LARGE + "  - name: Alpha\n    description: cut here # gone\n",
        "curly-quotes": "tags:\n" + LARGE + "  - name: Alpha\n    description: “Opposition”\n",
        "deprecated": "tags:\n" + LARGE + "  - name: Alpha\n    path: /x\n",
        "public-by-silence": "defaults:\n  tags:\n    visibility: PRIVATE\ntags:\n" + LARGE,
        "keyword-contained": "tags:\n" + LARGE + '  - name: Alpha\n    keywords:\n      - "0007"\n',
    }[code]
    files = {"manifests/m.yaml": more, **ASKED_FOR}
    if code == "public-by-silence":
        lines = more.replace("defaults:\n  tags:\n    visibility: PRIVATE\n", "").splitlines()
        said = [f"{line}\n    visibility: PRIVATE" if "name: " in line else line for line in lines]
        files = {"manifests/m.yaml": "\n".join([*said, "  - name: Alpha", ""])}
    (found,) = loaded(tmp_path, files).diagnostics
    assert (found.code, found.line) in [(code, more.count("\n")), (code, more.count("\n") - 1), (code, 1202)]


@pytest.mark.parametrize(("tags", "words"), [(2, ""), (3, "; 3 tags have it"), (68, "; 68 tags have it")])
def test_a_keyword_of_many_tags_says_how_many(tmp_path: Path, tags: int, words: str) -> None:
    """In one finding, at the second of them; a tag's own spellings count once."""
    text = "tags:\n" + "".join(f"  - {{name: Tag {n:02}, keywords: [Shared Word, shared word]}}\n" for n in range(tags))
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert (found.code, found.address, found.line) == ("same-keyword", "tag/Tag 01", 3)
    assert found.message == f'tag/Tag 00 also has the keyword "Shared Word"{words}'


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_suspicion_is_said_once_and_at_its_place(code: str, tmp_path: Path) -> None:
    """As a warning, which does not keep the manifests from being used."""
    text, place = SUSPICIOUS[code]
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text, **ASKED_FOR}).diagnostics
    assert (found.code, found.severity, (found.line, found.column)) == (code, "warning", place)


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_suspicion_can_be_switched_off_or_made_an_error(code: str, tmp_path: Path) -> None:
    """By `policy.diagnostics` of the project file."""
    manifests = {"manifests/m.yaml": SUSPICIOUS[code][0]}
    project = "version: 1\npolicy: {{diagnostics: {{{0}: {1}}}}}\n"
    assert loaded(tmp_path, {**manifests, "syncengine.yaml": project.format(code, "off")}).diagnostics == ()
    (found,) = problems(tmp_path, {**manifests, "syncengine.yaml": project.format(code, "error")})
    assert (found.code, found.severity) == (code, "error")
    assert found.message.endswith(
        f"; to make it a warning, set `{code}: warning` under `policy.diagnostics` in the project file"
    )


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
        "tagCategories: [{externalId: c, label: C}, {externalId: d, label: D}]\n"
        "tags: [{name: Alpha, category: c, visibility: PRIVATE}, {name: Beta, category: d, visibility: PUBLIC}]\n",
        "tagCategories:\n  - {externalId: ab, keywords: [ab]}\n  - {externalId: cd, keywords: [ab]}\n",
    ],
)
def test_what_is_meant_is_not_suspected(text: str, tmp_path: Path) -> None:
    """Comments, quoted text, one tag's own spellings, and keywords of categories."""
    assert loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics == ()


@pytest.mark.parametrize(
    ("tag", "is_told"),
    [("{name: Draft}", True), ("{name: Draft, excludeTagNameKeyword: true, keywords: [Alpha]}", False)],
)
def test_a_name_is_a_keyword_unless_it_is_excluded(tag: str, is_told: bool, tmp_path: Path) -> None:
    """And as broad as any."""
    found = loaded(tmp_path, {"manifests/m.yaml": f"tags:\n  - {tag}\n"}).diagnostics
    assert [(d.code, d.line, d.column) for d in found] == [("keyword-too-broad", 2, 12)] * is_told


@pytest.mark.parametrize("word", ["ab", "x", "123", "2024", "The", "Outlook", "Project", "review", "Matter"])
def test_short_and_common_words_are_broad(word: str) -> None:
    """One or two letters, up to three digits, words of everyone's day."""
    assert is_broad(word)


@pytest.mark.parametrize("word", ["1234", "ABC", "特許", "A 1"])
def test_words_that_say_something_are_not_broad(word: str) -> None:
    """Two signs are a word where signs are words."""
    assert not is_broad(word)


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("ACME-4", "ACME-42"),
        ("EP 123", "EP 1234567"),
        ("acme", "ACME42"),
        ("ACME-4", "ACME-42 Merger"),
        ("Smith Jones", "The Smith Jones Company"),
        ("Smith & Jones", "The Smith & Jones Company of York"),
        ("The Smith", "The Smith Jones Company"),
    ],
)
def test_beginnings_of_numbers_and_runs_of_words_are_parts(tmp_path: Path, part: str, whole: str) -> None:
    """Of names as of keywords; within one tag they are meant."""
    text = f'tags:\n  - name: "{part}"\n  - {{name: Other Matter, keywords: ["{whole}"]}}\n'
    (found,) = loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": text}).diagnostics
    assert (found.code, found.address, found.line) == ("keyword-contained", f"tag/{part}", 2)
    assert f'"{whole}" of tag/Other Matter' in found.message
    text = f'tags:\n  - {{name: "{part}", keywords: ["{whole}"]}}\n'
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": text}).diagnostics == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [("ACME-04", "ACME-42"), ("ACME-4", "XACME-42"), ("Smith Jones", "Smith and Jones Company")],
)
def test_what_only_looks_alike_is_no_part(tmp_path: Path, one: str, other: str) -> None:
    """Another number, another word, another order."""
    text = f"tags: [{{name: {one}}}, {{name: {other}}}]\n"
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": text}).diagnostics == ()


def test_matters_that_are_counted_up_are_told_of_by_a_few(tmp_path: Path) -> None:
    """The first nine begin the others; a second series is told of by itself."""
    tags = "".join(f"  - name: {series}-{n}\n" for series in ("ACME", "BETA") for n in range(1, 100))
    found = loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": f"tags:\n{tags}"}).diagnostics
    assert [d.address for d in found] == [f"tag/{series}-{n}" for series in ("ACME", "BETA") for n in (1, 2, 3)]
    assert found[2].message.endswith("so it also matches that tag's time; the same applies to 6 more with other digits")
    padded = "".join(f"  - name: ACME-{n:02}\n" for n in range(1, 100))
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": f"tags:\n{padded}"}).diagnostics == ()


def test_a_keyword_longer_than_any_text_is_not_taken_apart(tmp_path: Path) -> None:
    """A name of 100,000 letters costs what it is long; a thousand are compared as ever."""
    assert parts_of("x" * 998 + " y\nacme") == {"x" * 998}
    assert parts_of("x" * 100_000 + " acme corp\nacme") == set()
    long = "Acme " + "x" * 100_000
    text = f"tags:\n  - name: Acme\n  - {{name: Other, keywords: [{long}]}}\n"
    assert loaded(tmp_path, {**ASKED_FOR, "manifests/m.yaml": text}).diagnostics == ()


def test_long_texts_are_alike_by_case_but_not_by_their_accents() -> None:
    """Accents in a row are sorted in the square of their number, so that only texts of bearable length are."""
    composed, apart = "é", "e\N{COMBINING ACUTE ACCENT}"
    assert folded(composed * 100) == folded((apart * 100).upper())
    assert folded(apart * 1000) == folded((apart * 1000).upper()) != folded(composed * 1000)


MANY_KEYWORDS: Mapping[str, tuple[Callable[[int], str], int]] = {
    "contained": (
        lambda n: (
            f"tags:\n  - {{name: Beta, keywords: [{_words(n, 'w{:05}')}]}}\n"
            f"  - {{name: Gamma, keywords: [{_words(n, 'w{:05} too')}]}}\n"
        ),
        1,
    ),
    "shared": (
        lambda n: (
            f"tags:\n  - {{name: Beta, keywords: [{_words(n, 'w{:05}')}]}}\n"
            f"  - {{name: Gamma, keywords: [{_words(n, 'W{:05}')}]}}\n"
        ),
        1,
    ),
    "former names": (
        lambda n: (
            f"tags:\n  - {{name: Beta, previously: [{_words(n, 'w{:05}')}]}}\n"
            + "".join(f"  - name: w{at:05}\n" for at in range(n))
        ),
        1,
    ),
}
"""Manifests of n words, and how many findings each word is worth."""


def _words(count: int, form: str) -> str:
    return ", ".join(map(form.format, range(count)))


@pytest.mark.parametrize("case", MANY_KEYWORDS)
def test_twice_as_many_words_are_twice_the_work(case: str, tmp_path: Path) -> None:
    """Each call of a function is counted, and each step of a generator."""
    make, each = MANY_KEYWORDS[case]
    work = []
    for n in (200, 400):
        calls, found = counted(lambda n=n: _found(tmp_path, make(n)))  # type: ignore[misc] # mypy knows no defaults here
        assert len(found) == each * n
        work.append(calls)
    assert work[1] < 2.5 * work[0]


def _found(folder: Path, text: str) -> tuple[Diagnostic, ...]:
    files = {**ASKED_FOR, "manifests/m.yaml": text}
    return problems(folder, files) or loaded(folder, files).diagnostics
