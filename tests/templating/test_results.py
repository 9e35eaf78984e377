"""Filters, tests, methods and statements keep their results, for manifests and for posted time."""

from __future__ import annotations

import json

import pytest

from tests.templating.cases import RESULTS, Stored, results_of

STORED: Stored = json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", STORED)
def test_templates_keep_their_results(kind: str) -> None:
    """An upgrade of the program changes no tag and no narrative."""
    results = results_of({kind: STORED[kind]})[kind]
    assert {text: result for text, result in results.items() if result != STORED[kind][text]} == {}
