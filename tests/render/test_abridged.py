"""The head of a plan says `Abridged` whenever the rendering below it omits a value that changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.render.style import Look
from syncengine.resource import Body

from .samples import at, category, changing, field, plan_html, plan_markdown, plan_of, plan_text, tag, updating

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
