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

from .samples import at, category, changing, plan_html, plan_markdown, plan_of, plan_text, tag
from .test_odd_ones import page_words

SHORT: dict[str, Callable[[Plan], str]] = {
    "text": lambda plan: plan_text(plan, Look(width=120)),
    "markdown": lambda plan: plan_markdown(plan).replace("`", ""),
    "html": page_words,
}
in_short = pytest.mark.parametrize("render", SHORT.values(), ids=SHORT)

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


@pytest.mark.parametrize(
    "render", [plan_html, lambda plan: plan_text(plan, Look(verbose=True))], ids=["html", "verbose"]
)
def test_the_page_and_verbose_show_the_values_of_each_deletion(render: Callable[[Plan], str]) -> None:
    """The HTML page and --verbose show every value of each deleted category and of each tag deleted with it."""
    shown = render(plan_of(*SIXTY, *(along(f"T-{n:02}", n) for n in range(60))))
    assert [n for n in range(60) if f"Since {1900 + n}" not in shown or f"Matter of {n}" not in shown] == []


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
    """A removed tag with another field, more keywords or metadata comes first, in every kind of removal."""
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
