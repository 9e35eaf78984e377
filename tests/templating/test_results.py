"""Filters, tests, methods and statements come to what they came to before, for manifests and for posted time."""

from __future__ import annotations

import json

import pytest

from tests.templating.cases import RESULTS, Stored, results_of

STORED: Stored = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", STORED)
def test_templates_come_to_what_they_came_to(kind: str) -> None:
    """A project that is upgraded has the same tags and the same narratives."""
    results = results_of({kind: STORED[kind]})[kind]
    assert {text: result for text, result in results.items() if result != STORED[kind][text]} == {}
