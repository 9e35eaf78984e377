"""Deleted categories fold like other removals: odd ones come first, and each tag deleted with them is named."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.render.style import Look
from syncengine.resource import Body

from .samples import at, category, plan_html, plan_markdown, plan_of, plan_text, tag
from .test_odd_ones import page_words

SHORT: dict[str, Callable[[Plan], str]] = {
    "text": lambda plan: plan_text(plan, Look(width=120)),
    "markdown": lambda plan: plan_markdown(plan).replace("`", ""),
    "html": page_words,
}
in_short = pytest.mark.parametrize("render", SHORT.values(), ids=SHORT)

NOT_DECLARED = "no manifest declares it"


def gone(number: int, *keywords: str) -> Change:
    fields = {"label": f"Client {number}", "description": f"Since {1900 + number}", "keywords": keywords or ("client",)}
    return Change(
        key=category(f"cat-{number:02}"),
        action=Action.DELETE,
        source=at(number),
        reason=NOT_DECLARED,
        removed=Body(fields=fields),
    )


def along(name: str, number: int, **fields: str) -> Change:
    """A tag that is deleted with its category."""
    return Change(
        key=tag(name),
        action=Action.DELETE,
        source=at(number),
        reason=f"deleted with category/cat-{number:02}",
        cascade=category(f"cat-{number:02}"),
        removed=Body(fields={"category": f"cat-{number:02}", "description": f"Matter of {number}", **fields}),
    )


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


@pytest.mark.parametrize(
    "render", [plan_html, lambda plan: plan_text(plan, Look(verbose=True))], ids=["html", "verbose"]
)
def test_the_page_and_verbose_show_the_values_of_each_deletion(render: Callable[[Plan], str]) -> None:
    """The HTML page and --verbose show every value of each deleted category and of each tag deleted with it."""
    shown = render(plan_of(*SIXTY, *(along(f"T-{n:02}", n) for n in range(60))))
    assert [n for n in range(60) if f"Since {1900 + n}" not in shown or f"Matter of {n}" not in shown] == []


@in_short
def test_a_category_deleted_with_its_tags_comes_first_and_names_each_tag(render: Callable[[Plan], str]) -> None:
    shown = render(plan_of(*SIXTY, along("T-1", 37), along("T-2", 37)))
    assert at_first(shown, "cat-37") < at_first(shown, "T-1") < at_first(shown, "T-2") < at_first(shown, "cat-00")
    assert "also deletes 2 tags in it, and any that were created outside this project" in shown
    assert "59 ×" in shown
    assert "Matter of 37" in shown


@in_short
def test_a_category_deleted_with_many_more_tags_comes_first(render: Callable[[Plan], str]) -> None:
    tags = [along(f"T-{n:02}", n) for n in range(60)] + [along(f"MORE-{n}", 41) for n in range(30)]
    shown = render(plan_of(*SIXTY, *tags))
    assert at_first(shown, "cat-41") < at_first(shown, "cat-00")
    assert "also deletes 31 tags in it" in shown
    assert "also deletes 59 tags in them" in shown


@in_short
def test_each_tag_deleted_with_its_category_is_named(render: Callable[[Plan], str]) -> None:
    tags = [along(f"T-{n:02}-{each}", n) for n in range(60) for each in "ab"]
    shown = render(plan_of(*SIXTY, *tags))
    assert [each.key.name for each in tags if each.key.name not in shown] == []


@in_short
@pytest.mark.parametrize(
    "odd",
    [
        replace(along("ODD", 7), removed=Body(fields={"visibility": "PRIVATE"})),
        replace(along("ODD", 7), removed=Body(keywords=tuple(f"word {n}" for n in range(20)))),
        replace(along("ODD", 7), removed=Body(metadata={"Client": "Acme"})),
    ],
    ids=["visibility", "keywords", "metadata"],
)
def test_a_removal_unlike_the_others_comes_first(odd: Change, render: Callable[[Plan], str]) -> None:
    """A removed tag with another field, more keywords or metadata comes first, in every kind of removal."""
    tags = [along(f"T-{n:02}", 7, visibility="PUBLIC") for n in range(60)]
    shown = render(plan_of(gone(7), *tags[:30], odd, *tags[30:]))
    assert at_first(shown, "ODD") < at_first(shown, "T-00")
    for action in (Action.DELETE, Action.RETIRE, Action.FORGET):
        alone = [
            replace(each, action=action, cascade=None, reason=NOT_DECLARED) for each in (*tags[:30], odd, *tags[30:])
        ]
        shown = render(plan_of(*alone))
        assert at_first(shown, "ODD") < at_first(shown, "T-00")


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
