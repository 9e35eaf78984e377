"""Plans, reports and diagnostics as text."""

from __future__ import annotations

import json
import re
import time

import pytest
from msgspec.structs import replace

from syncengine.apply.report import CallError, Outcome
from syncengine.errors import Severity
from syncengine.plan.diff import Action, FieldChange, FieldEffect
from syncengine.render.ci import github
from syncengine.render.diagnostics import diagnostics_text
from syncengine.render.documents import diagnostics_json, plan_document
from syncengine.render.escape import cells, cut, visible, wrapped
from syncengine.render.report import report_text
from syncengine.render.state import rows_text
from syncengine.render.style import Look
from syncengine.render.view import headline
from syncengine.resource import Body, Key, Recorded

from .samples import (
    FOUND,
    LONG,
    PLANS,
    REPORTS,
    at,
    changing,
    creating,
    everything,
    field,
    hostile,
    plan_limit,
    plan_of,
    plan_text,
    report_of,
    result,
    said,
    sweep_of,
    tag,
    updating,
)

DIAGNOSTIC = re.compile(r"(error|warning)\[")


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("sample", ["empty", "everything", "uniform"])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_of_a_plan_is_wider_than_the_terminal(sample: str, width: int, verbose: bool) -> None:
    text = plan_text(PLANS[sample](), Look(width=width, verbose=verbose))
    assert [line for line in text.splitlines() if cells(line) > width and not DIAGNOSTIC.search(line)] == []


def test_a_name_is_never_cut() -> None:
    name, url = "N" * 100, field("url", None, "b")
    text = plan_text(plan_of(updating(name, url), creating(name, url)))
    assert re.findall(rf"  ([~+]) {name}\n", text) == ["+", "~"]
    assert text.endswith("\n      manifests/acme.yaml:1\n")


def test_letters_have_a_width_by_which_words_are_cut_and_wrapped() -> None:
    """East Asian letters take two columns, combining marks none; a word without spaces is broken."""
    assert (cells("日本"), cells("e\N{COMBINING ACUTE ACCENT}"), cells("abc")) == (4, 1, 3)
    assert cut("日本語", 5) == "日本…"
    lines = wrapped("a " + "b" * 25, 10)
    assert max(map(len, lines)) <= 10
    assert "".join(lines).replace(" ", "") == "a" + "b" * 25


def test_a_sweep_without_recorded_types_is_shown() -> None:
    text = plan_text(plan_of(sweep=sweep_of()), Look(width=200))
    assert "Sweep: delete 0 activity types and all unknown ones" in text
    assert "0 recorded in this state, and any that this project does not know." in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (field("description", "old", "new"), 'description: "old" → "new"'),
        (field("url", None, "new"), 'url: (none) → "new"'),
        (field("visibility", "PUBLIC", "PRIVATE"), "visibility: PUBLIC → PRIVATE"),
        (field("excludeTagNameKeyword", False, True), "excludeTagNameKeyword: false → true"),
        (field("closedTimestamp", None, 0), "closedTimestamp: (none) → 1970-01-01T00:00:00Z"),
        (field("closedTimestamp", 1, 10**18), f"closedTimestamp: 1970-01-01T00:00:00.001Z → {10**18}"),
        (field("assigneeExternalIds", ("a", "b"), ("b", "c")), 'assigneeExternalIds: added "c"; removed "a"'),
        (field("assigneeExternalIds", ("a", "b"), ("b", "a")), "assigneeExternalIds: only order or duplicates differ"),
        (field("description", "old", None, FieldEffect.IGNORED), 'description: "old" → (none) (cannot be cleared)'),
        (field("label", "a", "b", FieldEffect.CREATE_ONLY), 'label: "a" → "b" (no effect on existing activity types)'),
        (field("description", "a" * 80, "a" * 90), f'"…{"a" * 12}" → "…{"a" * 22}"'),
        (
            field("description", LONG, LONG.replace("European", "Canadian")),
            'description: "…against the European patent EP…" → "…against the Canadian patent EP…"',
        ),
    ],
)
def test_a_difference_shows_only_what_differs(change: FieldChange, said: str) -> None:
    assert said in plan_text(plan_of(updating("A", change)), Look(width=200))


def test_a_long_plan_stays_short() -> None:
    changes = [changing(tag(f"T-{n}"), Action.FORGET, at(1, f"manifests/{n}.yaml")) for n in range(5_000)]
    text = plan_text(plan_of(*changes))
    assert "Forget 5,000 tags" in text
    assert re.search(r"o 4,800 more tags +4,800 files", text)
    assert len(text.splitlines()) < 220


@pytest.mark.parametrize("look", [Look(), Look(verbose=True), Look(width=200), Look(unicode=False)])
def test_nothing_from_outside_reaches_the_terminal_raw(look: Look) -> None:
    assert set("\x1b\x07\u202e") & set(plan_text(hostile(), look)) == set()
    assert set("\x1b\x07\u202e") & set(report_text(REPORTS["bitten"](), look)) == set()
    assert "\n::" not in plan_text(hostile(), look)
    assert visible("a\ud800b\x9bc\u2028d") == "a\\ud800b\\x9bc\\u2028d"


def test_colour_is_only_colour() -> None:
    coloured = plan_text(everything(), Look(colour=True))
    assert "\x1b[31m-\x1b[0m A999" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plan_text(everything())


@pytest.mark.parametrize("sample", PLANS)
def test_a_terminal_without_unicode_gets_ascii(sample: str) -> None:
    assert plan_text(PLANS[sample](), Look(unicode=False)).isascii()


def test_an_apply_that_sends_nothing_says_so() -> None:
    report = report_of(result("A", Outcome.APPLIED), result("B", Outcome.APPLIED))
    silent = replace(report, summary=replace(report.summary, requests=0, retries=0))
    assert report_text(silent) == "Applied 2 changes, recorded here only: nothing was sent.\n"


def test_equal_errors_are_shown_once_and_thousands_of_different_ones_are_cut_and_counted() -> None:
    assert report_text(plan_limit()).count("the plan's tag limit is reached") == 1
    assert report_text(plan_limit(), Look(verbose=True)).count("tag/ACME-") == 812
    results = [result(f"A-{n}", Outcome.FAILED, CallError(f"no {n}", "upsertTags", n)) for n in range(1_000)]
    text = report_text(report_of(*results))
    assert "… and 900 more changes not applied; the JSON report lists them all." in text


def test_a_diagnostic_names_its_place_with_a_caret_below_or_else_its_resource() -> None:
    """Several are counted."""
    lines = {"manifests/acme.yaml": ["tags:", "  - descripton: Opposition"]}
    heading = "manifests/acme.yaml:2:5: error[unknown-field]: unknown field `descripton`; did you mean `description`?"
    text = diagnostics_text(FOUND, Look(lines=lines.get))
    assert f"{heading}\n      - descripton: Opposition\n        ^\n" in text
    assert "error[unreachable]: tag/ACME-0043: no route\n" in text
    assert text.endswith("\n\n2 errors, 1 warning.\n")
    assert diagnostics_text(FOUND[1:2]) == "manifests/a.yaml: warning[source-slow]: the source took 40 s\n"
    assert diagnostics_text(()) == "No problems found.\n"


@pytest.mark.parametrize("line", ["x" * 500, "\t" * 500, "日" * 500, "\x1b[2J" * 100, "short"])
def test_a_caret_never_leaves_the_page(line: str) -> None:
    found = [said(Severity.ERROR, "c", "m", file="f", line=1, column=300)]
    text = diagnostics_text(found, Look(lines=lambda _: [line]))
    _, shown, caret, *_ = text.splitlines()
    assert max(cells(shown), cells(caret)) <= 80
    assert caret.strip() == "^"
    assert "\x1b" not in text


def test_equal_diagnostics_are_shown_once() -> None:
    made = replace(FOUND[0], severity=Severity.ERROR, code="unknown-field", message="no field `descripton`")
    same = [replace(made, line=n) for n in range(1, 301)]
    other = [replace(made, code="unknown-category", message=f"no c{n}", line=n) for n in range(1, 301)]
    warning = replace(made, severity=Severity.WARNING, code="same-keyword", message="shared")
    text = diagnostics_text([*same, *other, warning])
    lines = text.splitlines()
    assert "warning[same-keyword]" in lines[0]
    assert lines[1].endswith("error[unknown-field]: no field `descripton` (and 299 more)")
    assert lines[26].endswith("error[unknown-category]: no c25 (and 275 more)")
    assert lines[27:] == ["", "600 errors, 1 warning. -v lists each."]
    assert len(diagnostics_text([*same, *other, warning], Look(verbose=True)).splitlines()) == 603
    assert diagnostics_text(same[:3]).count("no field") == 3
    assert github(same).count("::error") == 1
    assert len(json.loads(diagnostics_json(same))["diagnostics"]) == 300


def test_a_blocked_plan_without_changes_says_no_changes() -> None:
    asked = said(Severity.ERROR, "undone", "run r-1 was undone")
    first = headline(plan_document(plan_of(diagnostics=(asked,))))
    assert first.startswith("No changes. ")
    assert first.endswith("Blocked: the manifests still ask for changes that were undone.")


def test_a_long_list_of_rows_takes_as_long_as_its_lines() -> None:
    """20,000 rows of a state are rendered in seconds: the work for a row does not grow with their number."""
    rows = [Recorded(Key.parse(f"tag/MAT-{number:05}"), Body({}, (), {})) for number in range(20_000)]
    began = time.process_time()
    text = rows_text(rows, 120)
    assert time.process_time() - began < 5
    assert text.count("\n") == 20_000
