"""A change that is unlike many similar ones is shown whole and above them, in text, Markdown and HTML."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Severity
from syncengine.plan.diff import Action, Change, FieldChange
from syncengine.plan.model import Plan
from syncengine.render.escape import unusual_letters
from syncengine.render.fold import WAYS, Edit, arranged
from syncengine.render.markdown import LIMIT
from syncengine.render.style import Look
from syncengine.render.values import ChangeValue, ValuePart
from syncengine.resource import Source, Value

from .samples import (
    SHORT,
    TRIPPED,
    at,
    changing,
    creating,
    field,
    in_short,
    plan_markdown,
    plan_of,
    plan_text,
    said,
    tag,
    updating,
)

SECRET = "Strictly confidential merger of A and B"


def change(number: int, before: Value | None, after: Value | None, name: str = "description", **more: Any) -> Change:
    return updating(f"ACME-{number:04}", field(name, before, after), line=number, **more)


def reviewed(number: int, *others: FieldChange, **more: Any) -> Change:
    edit = field("description", f"Matter {number} of ACME", f"Matter {number} of ACME (reviewed)")
    return updating(f"ACME-{number:04}", edit, *others, line=number, **more)


def mass(count: int = 299) -> list[Change]:
    return [reviewed(number) for number in range(1, count + 1)]


wide_text = SHORT["text"]
"""The rendering in which tables of cases are tried, since all renderings show one view, in its order."""

RENDERINGS = [*SHORT.values(), lambda plan: plan_text(plan, Look(width=400, verbose=True))]


def is_first(shown: str, odd: str, others: str = "ACME-") -> bool:
    """Return whether the page names this resource, and above all other ones with such a name."""
    return bool(re.findall(rf"{others}\d+", shown)[0] == odd)


ODD = {
    "something else": change(900, "Patent", SECRET),
    "the common end": change(900, "Matter 900 of ACME", f"{SECRET} (reviewed)"),
    "the common end within": change(900, "Matter 900 of ACME", f"Matter 900 of ACME (reviewed) {SECRET}"),
    "the same length": change(900, "Matter 1 of ACME", "Merger 1 of BOLT (reviewed)"),
    "a letter of another script": change(900, "Matter 900 of ACME", "Matter 900 of ACME (r\u0435viewed)"),
    "an invisible letter": change(900, "Matter 900 of ACME", "Matter 900 of ACME\u200b (reviewed)"),
    "a joiner": change(900, "Matter 900 of ACME", "Matter 900 of ACME (re\u200dviewed)"),
    "a blank that does not break": change(900, "Matter 900 of ACME", "Matter 900 of ACME\u00a0(reviewed)"),
    "a mark for an accent": change(900, "Matter 900 of ACME", "Matter 900 of ACME (reviewe\u0301d)"),
    "written out as others are escaped": change(900, "Matter 900 of ACME", "Matter 900 of ACME\\u200b (reviewed)"),
    "a category as well": reviewed(900, field("category", "acme", "bolt")),
    "metadata as well": reviewed(900, metadata_set={"Client": "Bolt"}),
    "a keyword as well": reviewed(900, keywords_added=("everything",)),
    "another name before": reviewed(900, previously="OLD-1"),
    "another field": change(900, "https://a.example", "https://b.example", "url"),
    "nothing before": change(900, None, "(reviewed)"),
    "the end of a long text": change(900, "Matter 900 of ACME", f"Matter 900 of ACME (reviewed){' ' * 90}{SECRET}"),
}

POINTS = {
    "a letter of another script": "contains U+0435 CYRILLIC SMALL LETTER IE",
    "a joiner": "contains U+200D",
    "a blank that does not break": "contains U+00A0",
    "a mark for an accent": "contains U+0301",
}
"""Letters that look like others are named."""


@in_short
def test_odd_ones_in_several_files_are_all_shown(render: Callable[[Plan], str]) -> None:
    changes = [replace(reviewed(n), source=Source(f"manifests/{n % 7}.yaml", n)) for n in range(1, 1000)]
    for n in (100, 300, 500, 700, 900):
        changes[n] = replace(change(n, f"Matter {n} of ACME", f"Secret {n} of BOLT"), source=changes[n].source)
    shown = render(plan_of(*changes))
    mass_at = shown.index("994 ×")
    assert [n for n in (100, 300, 500, 700, 900) if not 0 < shown.find(f"Secret {n} of BOLT") < mass_at] == []


@in_short
def test_a_mix_of_two_large_groups_is_odd(render: Callable[[Plan], str]) -> None:
    def mixed(number: int, word: str, before: str, after: str) -> Change:
        edits = field("description", f"M {number}", f"M {number} ({word})"), field("category", before, after)
        return updating(f"ACME-{number:04}", *edits)

    half = [mixed(n, "new", "a", "b") for n in range(1, 151)]
    other = [mixed(n, "old", "c", "d") for n in range(151, 301)]
    shown = render(plan_of(*half, mixed(900, "new", "c", "d"), *other))
    assert is_first(shown, "ACME-0900")
    assert shown.count("150 ×") == 2


@in_short
def test_a_small_group_among_thousands_comes_first(render: Callable[[Plan], str]) -> None:
    few = [change(n, f"Matter {n}", f"Matter {n} (secret)") for n in range(5001, 5011)]
    shown = render(plan_of(*mass(2_000), *few))
    assert shown.index('+ " (secret)"') < shown.index('+ " (reviewed)"')
    assert "10 ×" in shown


@in_short
def test_thousands_of_different_changes_are_listed_and_counted(render: Callable[[Plan], str]) -> None:
    changes = [change(n, f"Matter {n} of ACME", f"Matter {n * 7919 % 2003} of ACME") for n in range(2_000)]
    changes[1_333] = change(1_333, "Matter 1333 of ACME", SECRET)
    plan = plan_of(*changes, gate=TRIPPED)
    shown = render(plan)
    assert re.findall(r"ACME-\d+", shown)[0] == "ACME-1333"
    assert SECRET in shown
    assert re.search(r"1,[4789]\d\d more tags, all different", shown)
    assert "e.g." not in shown


def rewritten(count: int) -> list[Change]:
    return [change(n, f"Matter {n} of ACME", f"Matter {n * 7919 % 5003} of ACME") for n in range(count)]


def shown_and_counted(page: str) -> tuple[int, int]:
    counted = re.findall(r"… and ([\d,]+) more tags", page)
    return len(set(re.findall(r"\*\*`(ACME-\d+)`", page))), sum(int(n.replace(",", "")) for n in counted)


def test_warnings_come_after_the_changes_and_are_folded() -> None:
    warnings = tuple(
        said(Severity.WARNING, code, f"tag {n} {'and its words ' * 8}", file="manifests/acme.yaml", line=n + 1)
        for n in range(400)
        for code in ("closed-with-keywords", "same-keyword")
    )
    changes = rewritten(400)
    changes[100] = change(100, "Matter 100 of ACME", SECRET)
    page = plan_markdown(plan_of(*changes, diagnostics=warnings))
    assert SECRET in page
    assert shown_and_counted(page) == (400, 0)
    assert page.count("**400 ×** **warning**") == 2
    assert page.index("ACME-0399") < page.index("**400 ×** **warning** `same-keyword`, e.g. `manifests/acme.yaml:1`")


def forgotten(count: int) -> list[Change]:
    return [changing(tag(f"LOST-{n:04}"), Action.FORGET, at(n)) for n in range(count)]


@pytest.mark.parametrize("limit", [LIMIT, 1_000_000])
def test_every_removal_and_odd_one_is_named_before_the_mass_which_is_counted(limit: int) -> None:
    changes = [*forgotten(1_400), *rewritten(3_600), change(9_000, "Patent", SECRET)]
    page = plan_markdown(plan_of(*changes, gate=TRIPPED), limit=limit)
    assert len(page) <= limit
    assert [n for n in range(1_400) if f"`LOST-{n:04}`" not in page] == []
    assert SECRET in page
    assert page.count("<details>") == page.count("</details>")
    named, counted = shown_and_counted(page)
    assert named > 200
    assert named + counted == 3_601
    assert ("**Shortened" in page, counted > 0) == ((True, True) if limit == LIMIT else (False, False))


def test_removals_that_do_not_fit_are_counted() -> None:
    page = plan_markdown(plan_of(*forgotten(9_000)), limit=65_536)
    named = len(set(re.findall(r"`LOST-(\d+)`", page)))
    assert named > 4_000
    assert f"and {9_000 - named:,} more" in page
    assert "**Shortened" in page


def retired(number: int, *keywords: str) -> Change:
    gone = "no manifest declares it"
    return changing(tag(f"ACME-{number:04}"), Action.RETIRE, at(number), keywords_deleted=keywords, reason=gone)


LOSSES: dict[str, Callable[[int], tuple[str, ...]]] = {
    "the same": lambda n: ("kw",),
    "the same but for one that others lose in part": lambda n: ("kw 1",) if n % 2 else ("kw 1", "kw 2"),
    "the name": lambda n: (f"ACME-{n:04}",),
    "the name in words": lambda n: (f"matter ACME-{n:04} of 2026", f"ACME-{n:04}"),
    "numbers": lambda n: (f"EP {n * 7919 % 5003}", f"ACME-{n:04}"),
    "numbers that some share": lambda n: (f"EP {n // 3}",),
    "numbers in another order": lambda n: (f"EP {n}", "kw") if n % 2 else ("kw", f"EP {n}"),
    "one of two": lambda n: ("kw 1",) if n % 3 else ("kw 2",),
    "one of many kinds": lambda n: (f"kind {chr(97 + n % 20)}",),
}


def test_many_retired_tags_that_each_lose_another_keyword_stand_alone() -> None:
    """Where most lose the same, eight other keywords come first, each shown, though eight tags lose one each."""
    odd = ["law firm", "client", "court", "opponent", "notary", "expert", "witness", "insurer"]
    changes = [retired(n, odd[n // 50 - 1] if n % 50 == 0 and n <= 400 else "kw") for n in range(1, 501)]
    shown = wide_text(plan_of(*changes))
    assert max(shown.find(f'removed "{word}"') for word in odd) < shown.index("ACME-0001")
    assert all(f'removed "{word}"' in shown for word in odd)


@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES)
def test_the_other_retired_tags_are_few_rows(losses: Callable[[int], tuple[str, ...]]) -> None:
    shown = wide_text(plan_of(*(retired(n, *losses(n)) for n in range(1, 501))))
    rows = re.findall(r"(\d+) ×\s?`? ?[\d,]+ keywords deleted(?:: |, e.g. )", shown)
    assert sum(map(int, rows)) == 500
    assert len(rows) <= 20


@in_short
def test_retired_tags_that_lose_words_of_their_own_each_are_one_row(render: Callable[[Plan], str]) -> None:
    """Where each tag loses a different word, none is odd, except one that loses more keywords."""
    words = [f"{a}{b}{c} AG" for a in "bdfghk" for b in "aeiou" for c in "lmnrst"]
    changes = [retired(n, word) for n, word in enumerate(words)]
    changes[77] = retired(77, words[77], "law firm")
    shown = render(plan_of(*changes))
    assert re.search(r'179 ×\s?`? ?179 keywords deleted, e.g. "bal AG"', shown)
    assert shown.index('"law firm"') < shown.index("179 ×")


def test_removals_come_before_tags_made_public_and_odd_updates() -> None:
    created = [creating(f"NEW-{n}", field("category", None, "acme"), line=n) for n in range(50)]
    odd = [change(900, "Patent", SECRET), change(901, "PRIVATE", "PUBLIC", "visibility")]
    text = plan_text(plan_of(*created, *mass(), *odd, *forgotten(1)), Look(width=200))
    headings = re.findall(r"^(?:Forget|Make|Update|Create) \d+ tags?(?: public|, unlike)?", text, re.MULTILINE)
    assert headings == [
        "Forget 1 tag",
        "Make 1 tag public",
        "Update 1 tag, unlike",
        "Create 50 tags",
        "Update 299 tags",
    ]


def new(number: int, **others: Value) -> Change:
    values: dict[str, Value] = {"description": f"Opposition {number}", "category": "acme", "visibility": "PRIVATE"}
    values |= {"url": f"https://pms.example.com/T-{number}"} | others
    fields = [field(name, None, value) for name, value in values.items()]
    more = {"keywords_added": (f"T-{number}", f"EP {number}"), "metadata_set": {"Office": "Berlin"}}
    return changing(tag(f"T-{number}"), Action.CREATE, Source("manifests/g.yaml", 4), *fields, **more)


UNLIKE_NEW = {
    "visibility": new(5_000, visibility="PUBLIC"),
    "category": new(5_000, category="bolt"),
    "another address": new(5_000, url="https://elsewhere.example.com/T-5000"),
    "a field more": new(5_000, path="/secret/"),
    "a description unlike the others": new(5_000, description=SECRET),
    "a letter of another script": new(5_000, description="Opp\u043esition 5000"),
}


def closed(number: int, *keywords: str) -> Change:
    fields = (field("description", None, "A matter"), field("excludeTagNameKeyword", None, True))
    return creating(f"T-{number}", *fields, keywords_added=keywords)


def a_rename(number: int, *formers: str) -> Change:
    merges = formers if len(formers) > 1 else UNSET
    words = field("description", None, "A matter")
    return creating(f"ACME-{number:04}", words, line=number, previously=formers[0], merges=merges)


def assert_comes_first(odd: Change, words: str, other: Callable[[int], Change]) -> None:
    """Among 300 others, wherever it stands, and its row has these words."""
    for place in (0, 150, 299):
        changes = [other(number) for number in range(1, 301)]
        changes.insert(place, odd)
        shown = wide_text(plan_of(*changes))
        assert words in shown
        assert is_first(shown, odd.key.name, odd.key.name.partition("-")[0] + "-")


CASES: dict[str, tuple[Change, str, Callable[[int], Change]]] = {
    **{f"an update: {name}": (odd, POINTS.get(name, ""), reviewed) for name, odd in ODD.items()},
    "another value before": (change(900, "b", "c", "url"), '"b" → "c"', lambda n: change(n, "a", "c", "url")),
    **{f"a new tag: {name}": (odd, "", new) for name, odd in UNLIKE_NEW.items()},
    "an excluded name that is a keyword": (closed(900, "T-900"), 'keywords: "T-900"', closed),
    "more keywords lost": (retired(900, "kw", "law firm", "client", "court"), "law firm", lambda n: retired(n, "kw")),
}


@pytest.mark.parametrize(("odd", "words", "other"), CASES.values(), ids=CASES)
def test_the_odd_one_comes_first_wherever_it_stands(odd: Change, words: str, other: Callable[[int], Change]) -> None:
    assert_comes_first(odd, words, other)


@pytest.mark.parametrize("word", ["law firm", "ACME-0900 of BOLT"])
@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES)
def test_a_keyword_that_no_other_loses_comes_first(losses: Callable[[int], tuple[str, ...]], word: str) -> None:
    assert_comes_first(retired(900, word), f'removed "{word}"', lambda n: retired(n, *losses(n)))


FORMERS = {
    "renumbered": lambda number: f"ACME-{number}",
    "another beginning": lambda number: f"OLD-{number:04}",
    "nothing in common": lambda number: f"{number * 7919 % 5003}",
}


@pytest.mark.parametrize("former", FORMERS.values(), ids=FORMERS)
def test_another_former_name_or_many_come_first(former: Callable[[int], str]) -> None:
    many = (former(900), *(f"PARTLY-{number}" for number in range(12)))
    for names, words in (("SECRET-MERGER",), "SECRET-MERGER"), (many, ", ".join(f'"{each}"' for each in many)):
        assert_comes_first(a_rename(900, *names), f"renamed from: {words}", lambda n: a_rename(n, former(n)))


@in_short
def test_renames_that_are_alike_have_an_example_with_both_names(render: Callable[[Plan], str]) -> None:
    shown = render(plan_of(*(a_rename(number, f"OLD-{number:04}") for number in range(1, 301))))
    assert 'name: "OLD" → "ACME" (in the text)' in shown
    assert 'e.g. ACME-0001: name: "OLD-0001" → "ACME-0001"' in shown


@pytest.mark.parametrize("render", RENDERINGS, ids=[*SHORT, "verbose"])
def test_all_names_that_a_rename_opens_are_compared(render: Callable[[Plan], str]) -> None:
    """Among renames that make tags public, one that opens two tags and one that opens an unrelated tag come first."""
    names = {number: (f"OLD-{number:04}",) for number in range(1, 301)} | {100: ("OLD-0100", "B"), 177: ("SECRET",)}
    opening = (field("visibility", "PRIVATE", "PUBLIC"),)
    changes = [replace(a_rename(number, *own), fields=opening, opens=own) for number, own in names.items()]
    shown = render(plan_of(changes[99], *changes[:99], *changes[100:]))
    shown = shown[shown.index("under a new name") :]
    assert 'makes public: "OLD-0100", "B"' in shown
    assert max(shown.index("ACME-0100"), shown.index("ACME-0177")) < shown.index("ACME-0001")


@in_short
def test_a_short_row_counts_the_fields_that_it_leaves_out(render: Callable[[Plan], str]) -> None:
    shown_first = field("description", None, "A matter"), field("excludeTagNameKeyword", None, False)
    more = field("url", None, "https://pms.example.com/T-1"), field("externalId", None, "4711")
    shown = render(plan_of(creating("T-1", *shown_first, *more, keywords_added=("T-1",))))
    is_whole = "https://pms.example.com/T-1" in shown
    assert ("… 2 more fields" in shown) is not is_whole
    assert ("--verbose shows every line and value" in shown) is not is_whole


DATE = 1_735_689_600_000

SHAPES = {
    '+ " (reviewed)"': [(f"M {n}", f"M {n} (reviewed)") for n in range(9)],
    '+ "Draft: " (at the start)': [(f"M {n}", f"Draft: M {n}") for n in range(9)],
    '- " (draft)" (at the end)': [(f"M {n} (draft)", f"M {n}") for n in range(9)],
    '- "Draft: " (at the start)': [(f"Draft: M {n}", f"M {n}") for n in range(9)],
    '"GmbH" → "AG" (in the text)': [(f"M GmbH {n}", f"M AG {n}") for n in range(8)] + [("GmbH of GmbH", "AG of AG")],
    "upper case": [(f"{chr(97 + n)}cme matter", f"{chr(65 + n)}CME MATTER") for n in range(9)],
    '"same" → "other"': [("same", "other")] * 9,
    '(none) → "new"': [(None, "new")] * 9,
    'various values → "one"': [(f"M {n}", "one") for n in range(9)],
    '"https://x/" + its name': [(None, f"https://x/ACME-{n:04}") for n in range(9)],
    'added "x"; removed "y"': [((str(n), "y"), (str(n), "x")) for n in range(9)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_kind_of_edit_has_its_description(shape: str) -> None:
    changes = [change(n, before, after, "url") for n, (before, after) in enumerate(SHAPES[shape])]
    assert f"9 × url: {shape}" in plan_text(plan_of(*changes), Look(width=200))


def test_dates_that_move_within_a_year_show_their_range() -> None:
    day = 86_400_000
    changes = [change(n, DATE, DATE + n * day, "modifiedTimestamp") for n in range(1, 200)]
    changes[50] = change(900, DATE, DATE + 80 * 365 * day, "modifiedTimestamp")
    text = plan_text(plan_of(*changes), Look(width=200))
    assert "198 × modifiedTimestamp: later, 2025-01-02T00:00:00Z to 2025-07-19T00:00:00Z" in text
    assert text.index("2104-") < text.index("198 ×")


def test_metadata_and_keywords_are_folded_by_what_is_done_to_them() -> None:
    changes = [
        updating(
            f"T-{n}",
            keywords_added=(f"EP-{n}",) if n != 50 else ("everything",),
            keywords_deleted=(f"EP {n}",),
            metadata_set={"Client": f"Acme {n} AG" if n != 70 else SECRET},
            metadata_before={"Client": f"Acme {n}"},
        )
        for n in range(100)
    ]
    text = plan_text(plan_of(*changes), Look(width=200))
    assert text.index('added "everything"; removed "EP 50"') < text.index('99 × keyword: " " → "-" (in the text)')
    assert text.index(f'"Acme 70" → "{SECRET}"') < text.index('99 × metadata Client: + " AG"')


SPELLINGS = (
    ("Trademark", "Trade mark"),
    ("Trade mark", "Trademark"),
    ("Trade mark", "Trade-mark"),
    ("Trade-mark", "Trade mark"),
    ("Trade mark", "Trade Mark"),
    ("TRADE MARK", "Trade mark"),
    ("Trade  mark", "Trade mark"),
    ("Trade mark", "Trade\u00a0mark"),
    ("mark", "trade mark"),
    ("trade mark", "mark"),
    ("Trade mark", "Trade mark, Union"),
)
CLIENTS = ("Acme", "Bolt & Co", "Elm-Tree", "Fox 7", "Hart of Elm", "Iris", "Jade", "Kite GmbH", "Lime", "Moss")
TEXTS_WITH = {"at the start": "{0} {1} {2}", "within": "{1} {0} {2}", "at the end": "{2} {1} {0}."}


@pytest.mark.parametrize("text", TEXTS_WITH.values(), ids=TEXTS_WITH)
@pytest.mark.parametrize(("old", "new"), SPELLINGS)
def test_another_spelling_is_one_edit_wherever_the_words_stand(old: str, new: str, text: str) -> None:
    spelt = [change(n, text.format(old, each, n), text.format(new, each, n)) for n, each in enumerate(CLIENTS)]
    odd = change(99, text.format(old, "Acme", 99), text.format(new, "Acme Inc.", 99))
    shown = wide_text(plan_of(*spelt, odd))
    assert "10 × description: " in shown
    assert is_first(shown, "ACME-0099")


def test_text_of_one_script_has_no_unusual_letters() -> None:
    """Accented letters and whole words in another script are not unusual; mixed scripts and invisible letters are."""
    assert unusual_letters("Müller & Söhne, Łódź: Привет, 東京 (reviewed)") == ()
    assert unusual_letters("p\u0430y\u00adpal") == ("U+00AD SOFT HYPHEN", "U+0430 CYRILLIC SMALL LETTER A")


WORDS = st.sampled_from(["GmbH", "AG", "of", "", " ", "(new)", "-", "T-1", "ä", "\u0435", "\u200b", "1", "12"])
TEXTS = st.lists(WORDS, max_size=5).map("".join)
ITEMS = st.lists(WORDS, max_size=4, unique=True).map(tuple)
VALUES = st.one_of(st.none(), TEXTS, ITEMS, st.booleans())
NAMES = st.sampled_from(["T-1", "T-2", "1", "AG"])


@given(NAMES, VALUES, st.lists(VALUES, min_size=2, max_size=12))
@example("T-1", "GmbHAG GmbH", ["GmbHAG AG", "AGAG AG"])
@example("T-1", ("a", "b"), [("b", "a"), ("a", "b")])
def test_one_edit_makes_one_value_of_another(name: str, before: Value | None, afters: list[Value | None]) -> None:
    """An edit of a value has one result, so that a group's row describes each member; rough edits may have more."""
    made: dict[Edit, Value | None] = {}
    for after in afters:
        for ways in WAYS:
            for edit in ways(name, before, after):
                if not (edit.is_rough or edit.kind == "date"):
                    assert made.setdefault(edit, after) == after


@given(st.lists(st.tuples(NAMES, st.lists(st.tuples(st.sampled_from("abc"), TEXTS, TEXTS), max_size=3)), max_size=40))
def test_each_entry_has_one_place(rows: list[tuple[str, list[tuple[str, str, str]]]]) -> None:
    values = [
        tuple({label: ChangeValue(ValuePart.FIELD, label, *both) for label, *both in changes}.values())
        for _, changes in rows
    ]
    for folding in (False, True):
        found = arranged([name for name, _ in rows], values, folding=folding)
        members = [number for group in (*found.odd_groups, *found.groups) for number in group.members]
        assert sorted([*found.odd, *found.singles, *members]) == list(range(len(rows)))
        assert folding or not members
