"""New resources in text: one line for each, shared values once, and deviating values always shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from syncengine.plan.diff import Action, Change
from syncengine.render.escape import cells
from syncengine.render.style import Look
from syncengine.render.text import plan_text
from syncengine.resource import Row, Source, Value

from .samples import category, field, plan_of, tag

TITLES = ("Opposition against EP 1 234 567", "Licence", "Trade mark ACME", "Appeal", "Employment agreement", "Lease")
TITLES += (
    "Recall of lot 4711",
    "Franchise",
    "Merger",
    "Supply contract with the port",
    "Audit",
    "Valve importer",
    "M&A",
)


def matter(number: int, *keywords: str, **others: Value | None) -> Change:
    """Return the creation of a tag that a template generates from a row of a table."""
    values: dict[str, Value | None] = {
        "description": TITLES[number % len(TITLES)],
        "category": ("acme", "bolt")[number % 2],
        "visibility": "PRIVATE",
        "managedBy": "syncengine",
        **others,
    }
    return Change(
        key=tag(f"H-{number:04}"),
        action=Action.CREATE,
        source=Source("manifests/matters.yaml", 9, Row("data/matters.csv", number + 1)),
        fields=tuple(field(name, None, value) for name, value in values.items() if value is not None),
        keywords_added=keywords or (f"REF {number}",),
    )


MATTERS = [matter(number) for number in range(1, 13)]


def text_of(changes: Sequence[Change], width: int = 80) -> str:
    text = plan_text(plan_of(*changes), Look(width=width))
    assert [line for line in text.splitlines() if cells(line) > width] == []
    return text


def lines_of(text: str) -> list[str]:
    """Return the lines below the last heading, without the blanks before places."""
    return [" ".join(line.split()) for line in text.rpartition("\nCreate ")[2].splitlines()[1:]]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_each_new_tag_is_one_line_with_its_description_and_the_place_of_its_row(width: int) -> None:
    """Values that all new tags share are shown once, with the place of their template."""
    text = text_of(MATTERS, width)
    lines = text.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  + ")] == [each.key.name for each in MATTERS]
    assert text.count("visibility: PRIVATE") == text.count("manifests/matters.yaml:9") == 1
    assert [n for n in range(1, 13) if not lines[-13 + n].endswith(f"  data/matters.csv:{n + 1}")] == []
    assert "  + H-0009  Supply contract with the port  " in text


def test_a_wide_terminal_shows_every_value_and_a_narrow_one_says_abridged() -> None:
    wide, narrow = text_of(MATTERS, 200), text_of(MATTERS, 80)
    assert 'H-0009  Supply contract with the port  category: bolt; keywords: "REF 9"' in wide
    assert ("Abridged" in wide, "Abridged" in narrow) == (False, True)
    assert "REF" not in narrow


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize(("visibility", "said"), [("PUBLIC", "PUBLIC"), (None, "PUBLIC by default")])
def test_a_public_tag_among_private_ones_shows_its_visibility(visibility: str | None, said: str, width: int) -> None:
    text = text_of([*MATTERS, matter(13, visibility=visibility)], width)
    assert "with visibility: PRIVATE; managedBy:" in text
    assert ", unless said otherwise" in " ".join(text.split())
    (line,) = (line for line in lines_of(text) if "H-0013" in line)
    shown = lines_of(text)[lines_of(text).index(line) :]
    assert f"visibility: {said}" in " ".join(shown[:2])
    assert text.count("visibility") == 2


@pytest.mark.parametrize("width", [80, 200])
def test_each_tag_shows_its_visibility_where_there_is_no_common_one(width: int) -> None:
    changes = [matter(n, visibility=("PRIVATE", "PUBLIC")[n % 2]) for n in range(1, 13)]
    text = text_of(changes, width)
    assert (text.count("visibility: PRIVATE"), text.count("visibility: PUBLIC")) == (6, 6)
    assert "with visibility" not in text


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (matter(13, url="https://pms.example.com/13"), 'url: "https://pms.example.com/13"'),
        (replace(matter(13), previously="OLD-13"), "renamed from: OLD-13"),
        (matter(13, managedBy="somebody"), 'managedBy: "somebody"'),
        (matter(13, managedBy=None), "no managedBy"),
        (matter(13, description="Opp\u043esition"), "contains U+043E CYRILLIC SMALL LETTER O"),
    ],
)
def test_a_value_that_only_one_tag_has_is_shown_at_any_width(odd: Change, said: str, width: int) -> None:
    assert said in " ".join(text_of([*MATTERS, odd], width).split())


def test_a_title_that_could_pass_for_something_else_keeps_its_quotes() -> None:
    """A description that looks like a field or a place is quoted, so that it cannot forge one."""
    titles = ("x; visibility: PUBLIC", "see manifests/other.yaml:1", "a  b", 'a "b"', "visibility: PUBLIC")
    text = text_of([matter(n, description=title) for n, title in enumerate(titles)], 200)
    for title in titles:
        escaped = title.replace('"', '\\"')
        assert f'  "{escaped}"  ' in text


def test_resources_of_several_templates_have_their_own_places() -> None:
    other = [replace(matter(n), source=Source("manifests/more.yaml", 3)) for n in range(13, 16)]
    text = text_of([*MATTERS, *other], 200)
    assert text.count("manifests/matters.yaml:9 (data/matters.csv:") == 12
    assert text.count("  manifests/more.yaml:3\n") == 3


def test_a_long_title_is_cut_for_the_place_and_a_long_name_is_never_cut() -> None:
    text = text_of([matter(1, description="A very " + "long " * 40 + "title"), matter(2)])
    assert "…  data/matters.csv:2\n" in text
    name = "N" * 100
    text = plan_text(plan_of(replace(matter(1), key=tag(name)), matter(2)), Look(width=80))
    assert f"  + {name}\n" in text
    assert "      Licence\n      data/matters.csv:2\n" in text


def test_an_odd_tag_among_a_few_comes_first() -> None:
    """A few new tags are listed one by one; the odd one is first in their list, without a section of its own."""
    odd = matter(40, description=None, category=None, url="https://pms.example.com/40")
    text = text_of([replace(each, key=category(each.key.name)) for each in MATTERS] + [*MATTERS, odd], 200)
    assert "unlike the other" not in text
    assert lines_of(text)[0].startswith("+ H-0040")


def test_shared_values_in_the_heading_are_those_of_tags_listed_one_by_one() -> None:
    """The heading states the shared values of the tags listed one by one, not those of a folded row."""
    alike = [matter(n, "same", description="A matter", category="acme", visibility="PUBLIC") for n in range(100, 140)]
    text = text_of([*(matter(n, description=f"{'abcdef'[n % 6] * 3} {n * 7919}") for n in range(1, 80)), *alike], 120)
    assert "Listed one by one, with visibility: PRIVATE" in text
    assert "+ 40 × " in text
    assert "visibility: PUBLIC" in text


def test_verbose_shows_every_value_of_each() -> None:
    text = plan_text(plan_of(*MATTERS), Look(width=80, verbose=True))
    assert text.count("visibility: PRIVATE") == text.count('managedBy: "syncengine"') == 12
    assert [n for n in range(1, 13) if f'"REF {n}"' not in text] == []
