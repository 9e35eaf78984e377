"""Filters, tests, methods and statements keep their results, for manifests and for posted time.

`SYNCENGINE_GOLDEN=write pytest tests/templating` writes them anew; read the difference.
"""

from __future__ import annotations

import json
import os

from tests.templating.cases import RESULTS, Stored, results_of


def test_templates_keep_their_results() -> None:
    """An upgrade of the program changes no tag and no narrative."""
    stored: Stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = results_of(stored)
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        RESULTS.write_text(_lines(results), encoding="utf-8")
        return
    for kind, of in results.items():
        assert {text: result for text, result in of.items() if result != stored[kind][text]} == {}


def _lines(results: Stored) -> str:
    """JSON with a line for each template."""
    kinds = []
    for kind, of in results.items():
        rows = (f"{json.dumps(text)}: {json.dumps(result, ensure_ascii=False)}" for text, result in of.items())
        kinds.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"
