"""Markdown and HTML: no text of a plan can become markup, and comments stay within their limit."""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from syncengine.apply.report import CallError, Outcome
from syncengine.errors import GateTripped, Severity
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Base, Wait
from syncengine.render.documents import report_document
from syncengine.render.html import trouble_html
from syncengine.render.markdown import LIMIT, code, prose, report_markdown
from syncengine.render.report import report_of as report_of_error
from syncengine.render.style import Links, Look, links_of

from .samples import (
    HOSTILE,
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
    plan_markdown,
    plan_of,
    plan_text,
    report_of,
    result,
    said,
    tag,
    updating,
)


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
    plan = plan_of(*(creating(f"T-{n}", *fields, line=n, keywords_added=(f"{n}", *long)) for n in range(1, 1_000)))
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
