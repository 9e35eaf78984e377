"""New resources have a line each, with what there is room for; deleted categories fold, and name the tags in them.

The head of a plan says `Abridged` whenever the rendering below it omits a value that changes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.render.escape import cells
from syncengine.render.style import Look
from syncengine.resource import Body, Row, Source, Value

from .samples import (
    SHORT,
    at,
    category,
    changing,
    field,
    in_short,
    plan_html,
    plan_markdown,
    plan_of,
    plan_text,
    tag,
    updating,
)

TITLES = ("Opposition against EP 1 234 567", "Licence", "Trade mark ACME", "Appeal", "Lease", "Audit", "M&A")


def matter(number: int, **others: Value | None) -> Change:
    values: dict[str, Value | None] = {
        "description": TITLES[number % len(TITLES)],
        "category": ("acme", "bolt")[number % 2],
        "visibility": "PRIVATE",
        **others,
    }
    fields = [field(name, None, value) for name, value in values.items() if value is not None]
    source = Source("manifests/matters.yaml", 9, Row("data/matters.csv", number + 1))
    return changing(tag(f"H-{number:04}"), Action.CREATE, source, *fields, keywords_added=(f"REF {number}",))


MATTERS = [matter(number) for number in range(1, 13)]


def text_of(changes: Sequence[Change], width: int = 80) -> str:
    text = plan_text(plan_of(*changes), Look(width=width))
    assert [line for line in text.splitlines() if cells(line) > width] == []
    return text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_each_new_tag_is_one_line_with_its_values_and_the_place_of_its_row(width: int) -> None:
    """The heading has the template and what all share; the page is abridged where a line is cut."""
    text = text_of(MATTERS, width)
    lines = text.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  + ")] == [each.key.name for each in MATTERS]
    assert "Create 12 tags with visibility: PRIVATE (manifests/matters.yaml:9)" in lines
    assert [n for n in range(1, 13) if not lines[-13 + n].endswith(f"  data/matters.csv:{n + 1}")] == []
    assert '  + H-0007  keywords: "REF 7"; category: bolt;' in text  # keywords, which tag time, come before the rest
    assert ("Abridged" in text, "description: " in text) == (width == 80, width > 80)


@pytest.mark.parametrize("width", [80, 200])
def test_what_makes_a_tag_dangerous_is_never_cut(width: int) -> None:
    """The visibility of a tag unlike the others, and letters that deceive, are said whole."""
    odd = [
        matter(13, visibility="PUBLIC", category="c" * 90),
        matter(14, description="Opp\u043esition " + "long " * 40),
    ]
    text = " ".join(text_of([*MATTERS, *odd], width).split())
    assert text.index("H-0013") < text.index("visibility: PUBLIC") < text.index("H-0001")
    assert re.search(r"H-0014 .*contains U\+043E CYRILLIC SMALL LETTER O.* visibility: PRIVATE", text)


@pytest.mark.parametrize("count", [300, 1_000, 3_000])
def test_a_first_plan_of_many_matters_is_a_line_for_each_below_the_odd_one(count: int) -> None:
    """Rare clients, dates and mixes of them are no oddities in a list of matters; what is rare elsewhere is."""
    matters = [
        replace(
            matter(n, category=f"client-{chr(97 + n * n % 24)}"),
            metadata_set={"Opened": f"{n * 7 % 28 + 1:02}.{n % 12 + 1:02}.{2015 + n % 11}", "By": "ABC"[n * n % 3]},
        )
        for n in range(1, count)
    ]
    text = text_of(matters, 120)
    assert f"Create {count - 1:,} tags with visibility: PRIVATE (manifests/matters.yaml:9)\n  + H-0001 " in text
    assert len(text.splitlines()) < 215
    matters[count // 2] = replace(matter(9_999, visibility="PUBLIC"), metadata_set=matters[0].metadata_set)
    text = text_of(matters, 120)
    assert 0 < text.index("visibility: PUBLIC") < text.index("H-0001")
    assert len(text.splitlines()) < 225


def test_tags_that_others_can_see_come_first_where_much_else_is_rare() -> None:
    """Without a visibility, the service makes a tag public."""
    seen = {n: "PUBLIC" if n % 2 else None for n in range(300, 308)}
    matters = [
        replace(
            matter(n, visibility=seen.get(n, "PRIVATE")),
            metadata_set={f"M{each}": "odd" if n % 125 == each else "usual" for each in range(40)},
        )
        for n in range(1_000)
    ]
    names = re.findall(r"^  \+ H-0?(\d+)", text_of(matters, 120), re.MULTILINE)
    assert {int(each) for each in names[: len(seen)]} == seen.keys()


def test_a_long_line_of_keywords_does_not_cut_the_visibility() -> None:
    """Half of the tags are public, so that no heading says it, and each has more keywords than a line has room for."""
    words = tuple(f"keyword number {n}" for n in range(20))
    both = [replace(matter(n, visibility=("PUBLIC", "PRIVATE")[n % 2]), keywords_added=words) for n in range(30)]
    lines = [line for line in text_of(both).splitlines() if line.startswith("  + ")]
    assert len(lines) == 30
    assert [line for line in lines if not re.search("visibility: (PUBLIC|PRIVATE); keywords: ", line)] == []


def test_resources_of_several_templates_have_their_own_places() -> None:
    other = [replace(matter(n), source=Source("manifests/more.yaml", 3)) for n in range(13, 16)]
    text = text_of([*MATTERS, *other], 200)
    assert text.count("manifests/matters.yaml:9 (data/matters.csv:") == 12
    assert text.count("  manifests/more.yaml:3\n") == 3


NOT_DECLARED = "no manifest declares it"


def gone(number: int) -> Change:
    fields = {"label": f"Client {number}", "description": f"Since {1900 + number}", "keywords": ("client",)}
    key, removed = category(f"cat-{number:02}"), Body(fields=fields)
    return changing(key, Action.DELETE, at(number), reason=NOT_DECLARED, removed=removed)


def along(name: str, number: int, removed: Body | None = None) -> Change:
    """A tag that is deleted with its category."""
    place = f"cat-{number:02}"
    removed = removed or Body(fields={"category": place, "description": f"Matter of {number}"})
    reason = f"deleted with category/{place}"
    return changing(tag(name), Action.DELETE, at(number), reason=reason, cascade=category(place), removed=removed)


SIXTY = [gone(number) for number in range(60)]


def at_first(shown: str, name: str) -> int:
    found = re.search(rf"{name}(?![0-9])", shown)
    assert found, name
    return found.start()


@in_short
def test_sixty_deleted_categories_are_one_row_with_an_example(render: Callable[[Plan], str]) -> None:
    shown = render(plan_of(*SIXTY))
    assert "Delete 60 categories" in shown
    assert "60 ×" in shown
    assert "also deletes any tags in them that were created outside this project" in shown
    assert shown.count(NOT_DECLARED) == (1 if render is not SHORT["html"] else 61)
    assert 'e.g. cat-00: label: "Client 0"; description: "Since 1900"; keywords: "client"' in shown


@in_short
def test_a_category_deleted_with_its_tags_comes_first_and_names_each_tag(render: Callable[[Plan], str]) -> None:
    """The more tags, the earlier: also where each of the others has one."""
    shown = render(plan_of(*SIXTY, along("T-1", 37), along("T-2", 37)))
    assert at_first(shown, "cat-37") < at_first(shown, "T-1") < at_first(shown, "T-2") < at_first(shown, "cat-00")
    assert "also deletes 2 tags in it, and any that were created outside this project" in shown
    assert ("59 ×" in shown, "Matter of 37" in shown) == (True, True)
    tags = [along(f"T-{n:02}", n) for n in range(60)] + [along(f"MORE-{n}", 41) for n in range(30)]
    shown = render(plan_of(*SIXTY, *tags))
    assert at_first(shown, "cat-41") < at_first(shown, "cat-00")
    assert [each.key.name for each in tags if each.key.name not in shown] == []
    assert "also deletes 31 tags in it" in shown
    assert "also deletes 59 tags in them" in shown


ODD = {
    "visibility": Body(fields={"visibility": "PRIVATE"}),
    "keywords": Body(keywords=tuple(f"word {n}" for n in range(20))),
    "metadata": Body(metadata={"Client": "Acme"}),
}


@in_short
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_removal_unlike_the_others_comes_first(odd: Body, render: Callable[[Plan], str]) -> None:
    tags = [along(f"T-{n:02}", 7, Body(fields={"visibility": "PUBLIC"})) for n in range(60)]
    tags.insert(30, along("ODD", 7, odd))
    shown = [render(plan_of(gone(7), *tags))]
    for action in (Action.DELETE, Action.RETIRE, Action.FORGET):
        alone = [replace(each, action=action, cascade=None, reason=NOT_DECLARED) for each in tags]
        shown.append(render(plan_of(*alone)))
    assert [page for page in shown if at_first(page, "ODD") > at_first(page, "T-00")] == []


@in_short
def test_a_few_deleted_categories_are_listed_one_by_one(render: Callable[[Plan], str]) -> None:
    shown = render(plan_of(*SIXTY[:12], along("T-1", 5)))
    assert "×" not in shown
    assert at_first(shown, "cat-05") < at_first(shown, "T-1") < at_first(shown, "cat-06")


@in_short
def test_tags_of_categories_that_an_earlier_run_deleted_are_named(render: Callable[[Plan], str]) -> None:
    shown = render(plan_of(*(along(f"T-{n:02}", n) for n in range(30))))
    assert "Delete 30 tags of deleted categories" in shown
    assert [n for n in range(30) if f"T-{n:02}" not in shown] == []


# --- what a plan leaves out


MATTER = (
    "Opposition proceedings about the description of a matter that the client filed in Munich last year after an"
    " infringement of the patent, with costs to date"
)
RENDERINGS = {
    "text": lambda plan: plan_text(plan),
    "wide text": lambda plan: plan_text(plan, Look(width=200)),
    "Markdown": lambda plan: plan_markdown(plan),
    "short Markdown": lambda plan: plan_markdown(plan, limit=2_500),
}


def values_of(change: Change) -> Iterator[str]:
    """Yield every text that a change sets, replaces or removes, and the name of its resource."""
    yield change.key.name
    bodies = [change.removed] if change.removed else []
    yield from (word for body in bodies for word in (*map(str, body.fields.values()), *body.metadata.values()))
    yield from (word for body in bodies for word in body.keywords if change.action is not Action.RETIRE)
    yield from (str(value) for each in change.fields for value in (each.before, each.after) if value is not None)
    yield from (*change.keywords_added, *change.keywords_deleted)
    yield from (*change.metadata_set.values(), *change.metadata_set, *change.metadata_deleted)
    yield from change.metadata_before.values()


def lacks(rendered: str, plan: Plan) -> list[str]:
    """Return the values of a plan that its rendering omits, without regard to line breaks."""
    shown = "".join(rendered.split())
    return [value for change in plan.changes for value in values_of(change) if "".join(value.split()) not in shown]


SMALL, LARGE = st.integers(0, 3), st.integers(0, 60)
SIZES = st.one_of(SMALL, LARGE)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw plans of one to four groups of similar changes, whose words are all different or equal within a group."""
    numbers = count(1)

    def words(size: int) -> tuple[str, ...]:
        return tuple(f"w{next(numbers)}z" for _ in range(size))

    changes: list[Change] = []
    for _ in range(draw(st.integers(1, 4))):
        action = draw(st.sampled_from([Action.CREATE, Action.UPDATE, Action.DELETE, Action.RETIRE, Action.FORGET]))
        length, added, deleted, entries, edits = (draw(SIZES) for _ in range(5))
        is_same, own = draw(st.booleans()), (words(length), words(added), words(deleted), words(entries))
        for _ in range(draw(st.one_of(st.integers(1, 3), st.integers(1, 30)))):
            text, gained, lost, metadata = own if is_same else map(words, map(len, own))
            new = {f"m{n}y": value for n, value in enumerate(metadata)}
            after = [f"e{n}x" if n < edits and n % 5 == 0 else word for n, word in enumerate(text)] + ["end"]
            name = f"N{next(numbers)}-"
            if action in (Action.CREATE, Action.UPDATE):
                is_new = action is Action.CREATE
                before = None if is_new else " ".join(text) or None
                said = field("description", before, " ".join(text) or "x" if is_new else " ".join(after))
                parts = {"keywords_added": gained, "keywords_deleted": () if is_new else lost, "metadata_set": new}
                changes.append(changing(tag(name), action, at(1), said, **parts))
            else:
                body = Body({"description": " ".join(text)} if text else {}, gained, new)
                retired = lost if action is Action.RETIRE else ()
                changes.append(changing(tag(name), action, at(1), removed=body, keywords_deleted=retired))
    return plan_of(*changes)


@pytest.mark.parametrize("name", RENDERINGS)
@given(plan=plans())
def test_a_plan_that_lacks_a_value_says_so_in_its_head(name: str, plan: Plan) -> None:
    rendered = RENDERINGS[name](plan)
    if missing := lacks(rendered, plan):
        assert "Abridged: " in rendered, missing[:5]


@given(plan=plans())
def test_verbose_and_the_page_lack_nothing(plan: Plan) -> None:
    verbose = plan_text(plan, Look(verbose=True))
    assert lacks(verbose, plan) == lacks(plan_html(plan), plan) == []
    assert "Abridged" not in verbose


def update(name: str, before: str, after: str) -> Change:
    return updating(name, field("description", before, after))


@pytest.mark.parametrize("name", ["text", "wide text", "Markdown"])
def test_each_edit_of_a_long_text_is_shown_with_what_is_around_it(name: str) -> None:
    rendered = RENDERINGS[name](plan_of(update("A", MATTER, MATTER.replace("matter", "case").replace("costs", "fees"))))
    shown = " ".join(rendered.split())
    assert '"…iption of a matter that the cli…atent, with costs to date"' in shown
    assert '"…iption of a case that the cli…atent, with fees to date"' in shown
    assert "Abridged: " in shown


def test_edits_of_a_text_without_blanks_are_shown_too() -> None:
    """Texts without spaces, such as Japanese, are compared letter by letter."""
    before = "東京" + "特許" * 40 + "弁理士" + "出願" * 40
    text = plan_text(plan_of(update("A", before, before.replace("東京", "大阪").replace("弁理士", "弁護士"))))
    assert [each for each in ("東京", "大阪", "弁理士", "弁護士") if each not in "".join(text.split())] == []


def test_very_many_edits_are_shown_as_far_as_there_is_room() -> None:
    before = " ".join(f"some words that stay as they are {n}a" for n in range(200))
    text = plan_text(plan_of(update("A", before, before.replace("a ", "b "))))
    assert "Abridged: " in text
    assert len(text) < 1_500


@pytest.mark.parametrize("name", ["text", "Markdown"])
def test_an_update_names_all_its_keywords_and_metadata(name: str) -> None:
    entries = {f"m{n}y": f"v{n}y" for n in range(40)}
    words = [f"k{n}y" for n in range(40)]
    change = updating(
        "A",
        keywords_added=tuple(words),
        keywords_deleted=tuple(f"old {word}" for word in words),
        metadata_set=entries,
        metadata_before=dict.fromkeys(list(entries)[:20], "before"),
    )
    rendered = RENDERINGS[name](plan_of(change))
    assert lacks(rendered, plan_of(change)) == []
    assert "Abridged" not in rendered


def test_unnamed_tags_deleted_with_their_category_make_the_plan_abridged() -> None:
    tags = [changing(tag(f"N{n}-"), Action.DELETE, at(n), cascade=category("acme")) for n in range(1, 300)]
    plan = plan_of(changing(category("acme"), Action.DELETE, at(1)), *tags)
    assert lacks(plan_text(plan), plan)
    assert "Abridged: " in plan_text(plan)
