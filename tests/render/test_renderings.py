"""What text, Markdown and HTML show: nothing from outside becomes markup or a terminal's command, and all fits.

Every rendering of the samples equals its golden file exactly. `SYNCENGINE_GOLDEN=write pytest tests/render` rewrites
these files; review the difference before committing it.
"""

import json
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import structs
from msgspec.structs import replace

from syncengine.apply.report import CallError, Outcome
from syncengine.errors import GateTripped, Severity
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.plan.model import Base, Plan, Undo, Wait
from syncengine.render import PLAN_FORMATS, REPORT_FORMATS, formats
from syncengine.render.ci import github
from syncengine.render.diagnostics import diagnostics_text
from syncengine.render.documents import diagnostics_json, dumped, part_of, plan_document, report_document
from syncengine.render.escape import cells, cut, visible, wrapped
from syncengine.render.html import trouble_html
from syncengine.render.markdown import LIMIT, code, prose, report_markdown
from syncengine.render.plan_files import document_in
from syncengine.render.report import report_of as report_of_error
from syncengine.render.report import report_text
from syncengine.render.state import rows_text
from syncengine.render.style import PLAIN, Links, Look, links_of
from syncengine.render.view import headline
from syncengine.resource import Body, Key, Recorded

from .samples import (
    FOUND,
    HOSTILE,
    LONG,
    PLANS,
    REPORTS,
    Page,
    at,
    changing,
    creating,
    everything,
    field,
    hostile,
    page_words,
    plan_html,
    plan_limit,
    plan_markdown,
    plan_of,
    plan_text,
    report_of,
    result,
    said,
    sweep_of,
    tag,
    updating,
    without_files,
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


@pytest.mark.parametrize("sample", PLANS)
def test_a_page_is_whole_and_loads_nothing(sample: str) -> None:
    page = plan_html(PLANS[sample]())
    read = Page(page)
    assert read.seen & {"img", "link", "iframe", "a"} == set()
    assert page.count("<script>") == 1
    assert set("\x1b\x07\u202e") & set(read.text) == set()
    assert ('<script>alert("x")</script>' in read.text) is (sample == "hostile")


def test_the_rows_of_a_page_are_written_one_by_one() -> None:
    """At no time has a page more than three copies of its text; joined section by section it had more."""
    long = tuple(f"word {n}" for n in range(150))
    fields = (field("description", None, "Matter → 1"),)
    plan = plan_of(*(creating(f"T-{n}", *fields, line=n, keywords_added=(f"{n}", *long)) for n in range(1, 300)))
    size = sys.getsizeof(plan_html(plan))
    tracemalloc.start()
    plan_html(plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * size


def test_a_flag_that_is_false_is_shown_where_it_is_odd() -> None:
    def created(number: int, *, flag: bool) -> Change:
        fields = (field("excludeTagNameKeyword", None, flag), field("description", None, f"Matter {number}"))
        return creating(f"T-{number:03}", *fields)

    assert "excludeTagNameKeyword" not in page_words(plan_of(created(1, flag=False), created(2, flag=False)))
    odd = page_words(plan_of(created(0, flag=False), *(created(number, flag=True) for number in range(1, 200))))
    assert 'T-000 description: "Matter 0"' in odd.replace("excludeTagNameKeyword: false ", "")
    assert odd.count("excludeTagNameKeyword: false") == 1


def test_a_place_leads_to_its_line_at_the_commit() -> None:
    """A link to a line has the path from the root of the repository, with special characters escaped."""
    links = Links("https://git.example.com/acme/tags/blob/{commit}/{file}#L{line}")
    plan = plan_of(changing(tag("A"), Action.CREATE, at(7, "manifests/a b#1.yaml")))
    address = "https://git.example.com/acme/tags/blob/2ee3b2c/rules/manifests/a%20b%231.yaml#L7"
    look = Look(links=links, prefix="rules")
    assert f'href="{address}"' in plan_html(plan, look)
    assert f"[`manifests/a b#1.yaml:7`](<{address}>)" in plan_markdown(plan, look)
    assert "href" not in plan_html(plan)


def test_a_removal_links_to_the_base_commit() -> None:
    """A removal links to the base commit; without a base, or if it was removed earlier, it has no link."""
    look = Look(links=Links("https://h/{commit}/{file}#L{line}"))
    plan = plan_of(changing(tag("A"), Action.DELETE, at(7, "a.yaml")), base_url="sandbox")
    own = replace(plan, compared=Base("origin/main", "ba5e"))
    earlier = replace(plan, compared=Base("origin/main", "ba5e", {"tag/A": Wait("merged", "merged")}))
    for render in (plan_html, plan_markdown):
        assert "https://h/ba5e/a.yaml#L7" in render(own, look)
        pages = [render(other, look) for other in (plan, earlier)]
        assert [("https://" in page, "a.yaml:7" in page) for page in pages] == [(False, True)] * 2


def test_code_in_a_sentence_is_code_on_a_page() -> None:
    texts = {"write `a: <b>` or `c`": "write <code>a: &lt;b&gt;</code> or <code>c</code>", "`<b>": "`&lt;b&gt;"}
    for text, shown in texts.items():
        found = said(Severity.ERROR, "x", text)
        for page in (plan_html(plan_of(diagnostics=(found,))), trouble_html((found,))):
            assert f"{shown}</div>" in page
            assert '<section class="error"><h2>1 error</h2>' in page


def test_every_tag_that_becomes_public_is_counted() -> None:
    known, unknown = field("visibility", "PRIVATE", "PUBLIC"), field("visibility", None, "PUBLIC")
    changes = updating("A", known), updating("B", known, opens=("C", "D")), updating("E", unknown, opens=("E",))
    assert '<li class="public"><b>4</b> made public</li>' in plan_html(plan_of(*changes))


def test_a_page_shows_a_plan_whose_url_is_none() -> None:
    """A plan is read from a file, which may have been edited by hand."""
    plan = plan_of()
    page = plan_html(replace(plan, basis=replace(plan.basis, base_url="http://[x/api")))
    assert "<title>" in page
    assert "http://[x/api" in page


@pytest.mark.parametrize("text", ["a`b", "```", "`", "a``b`", " ", "", HOSTILE])
def test_a_code_span_holds_any_text(text: str) -> None:
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    inner = span[len(fence) : len(span) - len(fence)]
    assert not fence or fence not in re.findall("`+", inner)
    assert "\n" not in span


INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]|&#8203;|&ZeroWidth")


def test_an_approval_in_a_sentence_is_copied_as_it_stands() -> None:
    refused = GateTripped(
        "removals need an approval: 2 of 3 tags (--approve-deletes 2@0123456789ab); ask @someone for COUNT@HASH"
    )
    page = report_markdown(report_document(report_of_error(refused)))
    assert "(`--approve-deletes 2@0123456789ab`)" in page
    assert "`COUNT@HASH`" in page
    assert INVISIBLE.search(page.replace("@&#8203;someone", "")) is None
    assert prose("see 12@abcdef.org, 3@0123456789abcdef0123 and a@0123456789ab") == (
        "see 12@&#8203;abcdef.org, `3@0123456789abcdef0123` and a@&#8203;0123456789ab"
    )


def test_the_first_line_names_what_blocks_the_plan() -> None:
    opened = updating("T", field("visibility", "PRIVATE", "PUBLIC"))
    denial = said(Severity.ERROR, "policy-denied", "No.", rule="r")
    plan = plan_of(opened, gate=everything().gate, diagnostics=(denial,))
    obstacles = "Denied by a rule. Blocked: approval needed."
    line = f"1 to update; 41 unchanged; 7 requests. Makes 1 PRIVATE tag public. {obstacles}"
    assert plan_text(plan, Look(width=200)).startswith(f"Plan: {line}\n")
    assert plan_markdown(plan).startswith(f"### Plan: {line}\n")
    assert f'<p class="lead">Plan: {line}</p>' in plan_html(plan)


def test_diagnostics_come_last_in_a_comment() -> None:
    doubt, note = (said(Severity.WARNING, code, "A message.") for code in ("no-state", "a-note"))
    text = plan_markdown(plan_of(changing(tag("T"), Action.DELETE, at(1)), diagnostics=(note, doubt)))
    positions = [text.index(part) for part in ("no-state", "### Plan:", "Delete 1 tag", "a-note")]
    assert positions == sorted(positions)


@pytest.mark.parametrize("sample", ["everything", "approved"])
def test_no_page_has_an_invisible_letter(sample: str) -> None:
    assert INVISIBLE.findall(plan_markdown(PLANS[sample]()) + plan_html(PLANS[sample]())) == []


@pytest.mark.parametrize("render", [lambda: plan_markdown(hostile()), lambda: report_markdown(REPORTS["bitten"]())])
def test_hostile_text_stays_in_its_line(render: Callable[[], str]) -> None:
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", render())
    assert re.findall(r"</?\w+", text) == []
    assert "@someone" not in text


def test_a_comment_is_never_too_long_and_says_what_was_cut() -> None:
    changes = (updating(f"T-{n}", field("url", "a" * 50, f"{n}"), line=n) for n in range(5_000))
    text = plan_markdown(plan_of(*changes, gate=everything().gate), Look(verbose=True))
    assert LIMIT - 1_000 < len(text) <= LIMIT
    assert re.search(r"… and [\d,]+ more tags, all different\n\n\*\*Shortened\.\*\*", text)
    assert "--approve-deletes 12@0123456789ab" in text
    assert text.count("<details>") == text.count("</details>") == 1
    failed = [result(f"A-{n}", Outcome.FAILED, CallError(f"no {n}" * 20)) for n in range(2_000)]
    report = report_markdown(report_of(*failed))
    assert (len(report) <= LIMIT, "Shortened" in report) == (True, True)


GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/tags", "GITHUB_SHA": "c0ffee"}
GITLAB = {"CI_PROJECT_URL": "https://gitlab.com/acme/tags", "CI_COMMIT_SHA": "c0ffee"}
OWN = "https://git.example.com/{commit}/{file}?line={line}"


@pytest.mark.parametrize(
    ("blob", "environ", "commit", "address"),
    [
        (None, GITHUB, "2ee3b2c", "https://github.com/acme/tags/blob/2ee3b2c/a.yaml#L7"),
        (None, GITLAB, "2ee3b2c", "https://gitlab.com/acme/tags/-/blob/2ee3b2c/a.yaml#L7"),
        (OWN, GITHUB, "2ee3b2c", "https://git.example.com/2ee3b2c/a.yaml?line=7"),
        (None, {}, "2ee3b2c", ""),
        (None, {"GITHUB_SERVER_URL": "https://github.com"}, "2ee3b2c", ""),
        (None, GITHUB | {"GITHUB_SERVER_URL": "javascript:alert(1)//"}, "2ee3b2c", ""),
        (None, GITHUB, None, "https://github.com/acme/tags/blob/c0ffee/a.yaml#L7"),
        (OWN, {}, None, ""),
    ],
)
def test_a_line_has_an_address(blob: str | None, environ: dict[str, str], commit: str | None, address: str) -> None:
    """From the project file's template, or else from the variables of the CI service, whose commit comes last."""
    assert links_of(blob, environ).at(commit).line("a.yaml", 7) == address


@pytest.mark.parametrize("file", ['"><script>', "{line}", "a b#?.yaml", "ä\n::error::"])
def test_a_file_cannot_leave_its_place_in_the_address(file: str) -> None:
    address = Links("https://h/{commit}/{file}#L{line}", "c").line(file, 7)
    assert address.startswith("https://h/c/")
    assert address.endswith("#L7")
    assert not set('"<> {}\n?') & set(address)


GOLDEN = Path(__file__).parent / "golden"

PLAN_CASES = [(sample, name) for sample in PLANS for name in ("text", "markdown")]
PLAN_CASES += [("partly", "json"), ("everything", "html"), ("hostile", "html")]
"""JSON and HTML fold nothing, so that few samples suffice for them. Most of a plan's JSON is held in tests/contract."""

REPORT_CASES = [(sample, name) for sample in REPORTS for name in ("text", "markdown")]
REPORT_CASES += [
    (sample, name)
    for sample in ("mixed", "bitten")
    for name in REPORT_FORMATS
    if name not in ("text", "markdown") and (sample, name) != ("bitten", "json")
]


def agree(name: str, rendered: str) -> None:
    file = GOLDEN / name
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        file.write_text(rendered, encoding="utf-8", newline="")
    assert file.read_bytes().decode() == rendered


@pytest.mark.parametrize(("sample", "name"), PLAN_CASES)
def test_a_plan_equals_its_golden_file(sample: str, name: str) -> None:
    agree(f"plan-{sample}.{name}", without_files(PLAN_FORMATS[name](plan_document(PLANS[sample]()), PLAIN)))


@pytest.mark.parametrize(("sample", "name"), REPORT_CASES)
def test_a_report_equals_its_golden_file(sample: str, name: str) -> None:
    agree(f"report-{sample}.{name}", REPORT_FORMATS[name](REPORTS[sample](), PLAIN))


def test_no_golden_file_is_left_over() -> None:
    expected = {f"plan-{sample}.{name}" for sample, name in PLAN_CASES}
    expected |= {f"report-{sample}.{name}" for sample, name in REPORT_CASES}
    assert {file.name for file in GOLDEN.iterdir()} == expected


DOCUMENTS = Path(__file__).parents[1] / "contract" / "documents"
WRITTEN = {"plan": formats.PlanFormat, "plan-settled": formats.PlanFormat, "report": formats.ReportFormat}


@pytest.mark.parametrize(("name", "type"), WRITTEN.items())
def test_a_document_is_read_as_it_was_written(name: str, type: type) -> None:
    text = (DOCUMENTS / f"{name}.json").read_text(encoding="utf-8").replace('"TIME"', '"2026-01-01T00:00:00+00:00"')
    document: object = msgspec.json.decode(text, type=type)
    assert msgspec.json.decode(dumped(document)) == msgspec.json.decode(text)
    if isinstance(document, formats.PlanFormat):
        assert part_of(document, lambda change: True) == document


@pytest.mark.parametrize("sample", PLANS.values(), ids=PLANS)
def test_a_document_that_is_read_is_the_one_that_was_made(sample: Callable[[], Plan]) -> None:
    """Nothing that a view shows is lost in a file, so that a comment shows what the terminal showed."""
    plan = sample()
    replaced = (FieldChange("category", "a", None, replaced=True), FieldChange("tagCategoryId", None, "7"))
    moved = Change(key=tag("MOVED"), action=Action.UPDATE, source=None, fields=replaced)
    waiting = {str(change.key): Wait("merged", "merged") for change in plan.changes[:1]}
    base = Base("main", "c0ffee", waiting, sweeps=True)
    undone = Undo("r-1", "apply", "2026-01-01T00:00:00+00:00")
    plan = structs.replace(plan, changes=(*plan.changes, moved), compared=base, undo=undone, redoes=(moved.key,))
    document = plan_document(plan)
    assert document_in(dumped(document).encode(), "plan.json") == document
    assert [field.clears for field in document.changes[-1].fields] == [False, False]
