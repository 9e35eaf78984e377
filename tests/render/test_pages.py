"""Markdown and HTML: nothing in a plan can break out of its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from syncengine.apply.report import CallError, Outcome
from syncengine.errors import GateTripped
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.render.html import plan_html
from syncengine.render.markdown import LIMIT, code, plan_markdown, prose
from syncengine.render.outcomes import report_of as report_of_error
from syncengine.render.report_markdown import report_markdown
from syncengine.render.style import Look

from .samples import (
    HOSTILE,
    PLANS,
    REPORTS,
    at,
    everything,
    field,
    hostile,
    plan_of,
    report_of,
    result,
    tag,
)

VOID = {"meta"}


class Tags(HTMLParser):
    """The tags of a page, which must open and close in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


# --- HTML -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", PLANS)
def test_a_page_is_whole_and_loads_nothing(sample: str) -> None:
    """Every element closes in order; there is no script, no image, no link."""
    assert parsed(plan_html(PLANS[sample]())).seen & {"script", "img", "link", "iframe", "a"} == set()


def test_hostile_text_is_text_on_a_page() -> None:
    shown = "".join(parsed(plan_html(hostile())).text)
    assert '<script>alert("x")</script>' in shown
    assert set("\x1b\x07\u202e") & set(shown) == set()


def test_a_folded_row_holds_all_its_names() -> None:
    page = plan_html(PLANS["uniform"]())
    assert [f"ACME-{n:04}" for n in range(1, 813) if f">ACME-{n:04} " not in page] == []


def test_a_huge_plan_makes_a_page_that_a_browser_can_show() -> None:
    changes = [Change(key=tag(f"T-{n}"), action=Action.FORGET, source=at(n)) for n in range(3_000)]
    page = plan_html(plan_of(*changes))
    assert "… and 2,000 more; the JSON plan lists all." in page
    assert page.count("<li>") < 1_100


# --- Markdown ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a`b", "```", "`", "a``b`", " ", "", HOSTILE])
def test_a_code_span_holds_any_text(text: str) -> None:
    """The fence is longer than every run of backticks inside, so that it ends where it should."""
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    inner = span[len(fence) : len(span) - len(fence)]
    assert not fence or fence not in re.findall("`+", inner)
    assert "\n" not in span


def test_prose_has_no_markup_and_pings_nobody() -> None:
    assert prose("*a* [b](c) <i> | @someone #1") == "\\*a\\* \\[b\\](c) &lt;i&gt; \\| @&#8203;someone #&#8203;1"


INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]|&#8203;|&ZeroWidth")


def test_an_approval_in_a_sentence_is_copied_as_it_stands() -> None:
    """In a code span, whatever stands around it; a mention beside it pings nobody."""
    refused = GateTripped(
        "removals need an approval: 2 of 3 tags (--approve-deletes 2@0123456789ab); ask @someone for COUNT@HASH"
    )
    page = report_markdown(report_of_error(refused))
    assert "(`--approve-deletes 2@0123456789ab`)" in page
    assert "`COUNT@HASH`" in page
    assert INVISIBLE.search(page.replace("@&#8203;someone", "")) is None
    assert prose("see 12@abcdef.org, 3@0123456789abcdef0123 and a@0123456789ab") == (
        "see 12@&#8203;abcdef.org, `3@0123456789abcdef0123` and a@&#8203;0123456789ab"
    )


@pytest.mark.parametrize("sample", ["everything", "approved"])
def test_no_page_has_an_invisible_letter(sample: str) -> None:
    """People copy from all of them."""
    assert INVISIBLE.findall(plan_markdown(PLANS[sample]()) + plan_html(PLANS[sample]())) == []


@pytest.mark.parametrize("render", [plan_markdown, plan_html])
def test_an_approved_gate_is_not_shown_as_closed(render: Callable[[Plan], str]) -> None:
    page = render(PLANS["approved"]())
    assert "Approved: syncengine.yaml:14 approves these removals." in page
    assert ("closed:" in page, "--approve-deletes" in page) == (False, False)


@pytest.mark.parametrize("render", [lambda: plan_markdown(hostile()), lambda: report_markdown(REPORTS["bitten"]())])
def test_hostile_text_stays_in_its_line(render: Callable[[], str]) -> None:
    """Outside code spans there is no HTML but our own and no mention that a host would act on."""
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", render())
    assert re.findall(r"</?\w+", text) == []
    assert "@someone" not in text


def test_a_comment_is_never_too_long_and_says_what_was_cut() -> None:
    """The gate and the counts are never what is cut, and every element that was opened is closed."""
    changes = [
        Change(key=tag(f"T-{n}"), action=Action.UPDATE, source=at(n), fields=(field("url", "a" * 50, f"{n}"),))
        for n in range(5_000)
    ]
    text = plan_markdown(plan_of(*changes, gate=everything().gate), Look(verbose=True))
    assert LIMIT - 1_000 < len(text) <= LIMIT
    assert re.search(r"\*\*Cut here: [\d,]+ more lines are left out\.\*\*", text)
    assert "--approve-deletes 12@0123456789ab" in text
    assert text.count("<details>") == text.count("</details>") == 1


def test_a_long_report_is_never_too_long() -> None:
    results = [result(f"A-{n}", Outcome.FAILED, CallError(f"no {n}" * 20)) for n in range(2_000)]
    text = report_markdown(report_of(*results))
    assert len(text) <= LIMIT
    assert "Cut here" in text


def test_many_rows_stand_behind_a_summary() -> None:
    changes = [
        Change(key=tag(f"T-{n}"), action=Action.UPDATE, source=at(n), fields=(field("url", "a", f"{n}"),))
        for n in range(15)
    ]
    assert "<details><summary><b>Update 15 tags</b></summary>" in plan_markdown(plan_of(*changes))
