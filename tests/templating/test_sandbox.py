"""Limits that one kind of template had first hold for manifests and posted time alike."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pytest

from syncengine.posted_time.templates import Compiler, RenderTrouble
from syncengine.project.types import Written
from syncengine.templating.sandbox import TemplateSandbox
from tests.templating.cases import Case, of_manifests, of_posted_time

DOUBLED = "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
NESTED = "{% set x = [[[[1]*1000]*1000]*1000]*1000 %}{% set y = [[[[1]*1000]*1000]*1000]*1000 %}{{ x == y }}"
REPEATED = "{% set x = ['x' * 1000000] * 100 %}{{ x == x }}"
CAPTURED = "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set y %}{{ n.x }}{{ n.x }}{% endset %}"


@pytest.mark.parametrize("text", [DOUBLED, NESTED, REPEATED, CAPTURED + "{% set n.x = y %}{% endfor %}"])
def test_posted_time_has_the_limits_of_manifests(text: str) -> None:
    """Concatenated texts, comparisons and captures fail before they fill the memory."""
    compiled = Compiler(Path(), "syncengine.yaml").text(Written(text, 3, 5))
    assert compiled is not None
    with pytest.raises(RenderTrouble, match=r"a value would be larger|too many large values|writes more than"):
        compiled.value({})


@pytest.mark.parametrize("kind", [datetime, date])
def test_no_value_reads_a_clock(kind: type) -> None:
    """What is rendered depends on the row alone, so that the same row makes the same tag, today and from the cache."""
    assert TemplateSandbox.attributes[kind] & {"isoformat", "now", "today", "utcnow"} == {"isoformat"}


@pytest.mark.parametrize("results", [of_manifests, of_posted_time])
def test_texts_that_come_one_by_one_are_joined(results: object) -> None:
    """The method `join` accepts an iterator, as the filter does."""
    assert callable(results)
    assert results(Case("{{ '-'.join(x | map('upper')) }}", ("texts",))) == {"'B-A-A-B'": "texts"}
