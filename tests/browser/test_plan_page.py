"""The page of a plan in a real browser, opened from a file: search, filters, links and its Content-Security-Policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_look
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Base, Plan, Wait
from syncengine.render.style import Links, Look
from syncengine.resource import Body
from tests.render.samples import (
    HOSTILE,
    at,
    category,
    changing,
    creating,
    everything,
    field,
    hostile,
    plan_html,
    plan_of,
    tag,
    updating,
)

from .conftest import LOOKS, Shown, assert_fits, emulated

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROWS = "li[data-action]"
SECRET = "Strictly confidential merger of A and B"
LOOK = Look(links=Links("https://git.example.com/acme/tags/blob/{commit}/{file}#L{line}"))

MERGED = Wait("merged", "merged")


def reviewed(number: int) -> Change:
    text = f"Matter {number} of ACME"
    return updating(f"ACME-{number}", field("description", text, f"{text} (reviewed)"), line=number)


def many(count: int) -> Plan:
    """Many similar updates with one different update among them, and as many new tags that all differ."""
    odd = updating("ODD", field("description", "Patent", SECRET), line=7)
    new = [field("description", None, f"Opposition {n * 7919} of client {n % 13}") for n in range(count // 2)]
    created = [creating(f"NEW-{n}", words, line=n + 1) for n, words in enumerate(new)]
    return plan_of(*map(reviewed, range(1, count // 2)), odd, *created, *everything().changes)


@dataclass
class Page(Shown):
    """The page of a plan in the browser."""

    folder: Path

    def open(self, plan: Plan, project: str = "acme/tags") -> None:
        file = self.folder / "plan.html"
        file.write_text(plan_html(plan, replace_look(LOOK, project=project)), encoding="utf-8")
        self.browser.get(file.as_uri())

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        Select(self.browser.find_element("id", name)).select_by_value(value)

    def choices(self, name: str) -> list[str]:
        script = "return [...document.getElementById(arguments[0]).options].map(option => option.value)"
        return list(self.run(script, name))

    def rows(self) -> list[str]:
        """The names of all visible rows, in order."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].filter(row => row.checkVisibility())"
            ".map(row => row.querySelector('.name').textContent)"
        )
        return list(self.run(script, ROWS))


@pytest.fixture
def page(chromium: Chrome, tmp_path: Path) -> Iterator[Page]:
    page = Page(chromium, tmp_path)
    page.complaints()
    yield page
    assert page.complaints() == []
    chromium.get("about:blank")


def test_the_odd_one_is_seen_and_the_mass_is_behind_its_row(page: Page) -> None:
    page.open(plan_of(*map(reviewed, range(1, 300)), many(10).changes[4]))
    assert page.rows() == ["ODD"]
    assert '299 × description: + " (reviewed)"' in page.text("li.group").replace("\n", "")
    page.browser.find_element("css selector", "summary").click()
    assert len(page.rows()) == 300


def test_search_finds_names_and_values_behind_folded_rows(page: Page) -> None:
    page.open(many(1_000))
    page.fill("search", "MATTER 77 reviewed")
    assert page.rows() == ["ACME-77", "ACME-177", "ACME-277", "ACME-377", "ACME-477"]
    assert (page.text("#shown"), page.text("li.group:not([hidden]) .name")) == ("5 of 1,019 shown", "5 of 499 ×")
    page.fill("search", "confidential")
    assert page.rows() == ["ODD"]
    page.fill("search", "nowhere to be seen")
    assert (page.rows(), page.text("#shown")) == ([], "Nothing matches.")
    sections = page.browser.find_elements("css selector", "section.changes")
    assert not any(section.is_displayed() for section in sections)


def test_filters_by_action_kind_and_file_add_up(page: Page) -> None:
    page.open(many(100))
    assert page.choices("action") == ["", "create", "delete", "forget", "retire", "update"]
    assert page.choices("kind") == ["", "activity-type", "category", "tag"]
    page.choose("action", "delete")
    assert page.rows() == ["A999", "old-client", "OLD-1", "OLD-2", "ACME-0002"]
    page.choose("kind", "tag")
    assert page.rows() == ["OLD-1", "OLD-2", "ACME-0002"]
    page.choose("file", "manifests/old.yaml")
    assert page.rows() == ["OLD-1", "OLD-2"]
    page.fill("search", "old-2")
    assert page.rows() == ["OLD-2"]
    page.browser.find_element("id", "clear").click()
    assert page.text("#shown").endswith(" in all")
    assert len(page.rows()) > 50


def test_changes_that_wait_are_behind_one_line_and_have_a_filter(page: Page) -> None:
    plan = plan_of(reviewed(1), reviewed(2), reviewed(3))
    page.open(replace(plan, compared=Base("origin/main", "c0ffee", {"tag/ACME-2": MERGED, "tag/ACME-3": MERGED})))
    assert page.rows() == ["ACME-1"]
    assert page.choices("origin") == ["", "pull-request", "waiting"]
    page.choose("origin", "waiting")
    assert page.rows() == ["ACME-2", "ACME-3"]
    page.choose("origin", "")
    page.fill("search", "ACME-3")
    assert page.rows() == ["ACME-3"]


def test_hostile_text_runs_nothing_and_is_found(page: Page) -> None:
    page.open(hostile())
    page.fill("search", '<script>alert("x")</script>')
    assert len(page.rows()) >= 4
    assert HOSTILE.split("\x1b")[0] in page.rows()[0]


def test_a_page_runs_no_script_and_no_style_but_its_own(page: Page) -> None:
    page.open(plan_of(reviewed(1)))
    page.run(
        "const script = document.createElement('script'); script.textContent = 'document.title = \"owned\"';"
        "document.body.append(script); document.body.setAttribute('style', 'display: none');"
    )
    title, display = page.run("return [document.title, getComputedStyle(document.body).display]")
    assert (title == "owned", display) == (False, "block")
    complaints = page.complaints()
    assert len(complaints) == 2
    assert all("Content Security Policy" in message for message in complaints)


def test_without_scripts_everything_is_there_but_the_filters(page: Page) -> None:
    with page.without_scripts():
        page.open(many(100))
        html = page.document()
    assert '<div id="filters" role="search" hidden' in html
    assert (SECRET in html, "Matter 17 of ACME (reviewed)" in html) == (True, True)


def leaving(name: str, action: Action, number: int, **more: Any) -> Change:
    fields = {"description": f"Trade mark {number} of the old client", "visibility": "PRIVATE"}
    removed = Body(fields, (f"OLD-{number}", f"EP {number * 7919}"), {"Client": f"Client {number}"})
    return changing(tag(name), action, at(number), removed=removed, **more)


def removals() -> Plan:
    """A deleted category with 40 tags, 60 retired tags, two deleted tags, and long names."""
    gone = category("old-client")
    return plan_of(
        changing(gone, Action.DELETE, at(3), removed=Body({"label": "Old client"}, (), {})),
        *(leaving(f"OLD-{n}", Action.DELETE, n, cascade=gone) for n in range(40)),
        *(leaving(f"R-{n}", Action.RETIRE, n, keywords_deleted=(f"EP {n}",)) for n in range(100, 160)),
        *(leaving("N" * 200 + str(n), Action.DELETE, n) for n in range(200, 202)),
        gate=everything().gate,
    )


@pytest.mark.parametrize("setting", ["granted", "denied"])
def test_approvals_are_copied_by_a_button(page: Page, setting: str) -> None:
    """By mouse and by keyboard; when the page may not write to the clipboard, it selects the text as well."""
    from selenium.webdriver.common.keys import Keys

    page.open(everything())
    permission = {"permission": {"name": "clipboard-write"}, "setting": setting}
    page.browser.execute_cdp_cmd("Browser.setPermission", permission)
    approvals = [unit.approve for unit in everything().gate.units]
    block, command = page.browser.find_elements("css selector", "div.copy button")
    for button, text in (
        (block, "\n".join(("approvals:", *(f"  - {each}" for each in approvals)))),
        (command, "syncengine apply --approve-deletes 12@0123456789abcdef0123"),
        (page.browser.find_element("css selector", ".units button"), approvals[0]),
    ):
        page.run("arguments[0].focus()", button)
        button.send_keys(Keys.ENTER)
        page.until(lambda button=button: button.text == "Copied")
        if setting == "denied":
            assert page.run("return getSelection().toString()") == text
        search = page.browser.find_element("id", "search")
        search.clear()
        search.send_keys(Keys.CONTROL, "v")
        assert search.get_attribute("value") == text.replace("\n", " ").replace("\r", "")
    page.run("document.activeElement.blur()")
    command.click()
    page.until(lambda: command.text == "Copied")
    assert command.get_attribute("aria-label") == "Copy these lines"


def test_removals_that_are_folded_open_to_their_values(page: Page) -> None:
    """An opened row shows what the service cannot give back: description, keywords, metadata and visibility."""
    page.open(removals())
    assert "OLD-7" not in page.rows()
    assert "R-107" not in page.rows()
    for each in page.browser.find_elements("css selector", "section.remove summary"):
        each.click()
    assert {"OLD-7", "R-107"} <= set(page.rows())
    rows = "[...document.querySelectorAll('li.group li')].map(row => row.querySelector('div'))"
    texts = page.run(f"return {rows}.map(row => [row.querySelector('.name').textContent, row.textContent])")
    for number, name in ((7, "OLD-7"), (107, "R-107")):
        (text,) = [text for each, text in texts if each == name]
        for value in (f"Trade mark {number} of the old client", "EP ", f"Client {number}", "PRIVATE"):
            assert value in text


def wordy() -> Plan:
    """A plan whose basis is long words without a blank."""
    plan = plan_of(reviewed(1), team="T" * 90)
    return replace(plan, basis=replace(plan.basis, id="p-" + "0" * 80, commit="c0ffee" * 7, environment="E" * 90))


PLANS: dict[str, Callable[[], Plan]] = {
    "1000": lambda: many(1_000),
    "hostile": hostile,
    "removals": removals,
    "wordy": wordy,
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_fits_its_screen(page: Page, plan: str, width: int, scheme: str) -> None:
    with emulated(page.browser, width, scheme):
        page.open(PLANS[plan](), project="p" * 200)
        assert_fits(page.browser)
        page.fill("search", "a")
        assert_fits(page.browser)
