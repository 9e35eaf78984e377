"""The page of a plan in a real browser, from a file and without a server: search, filters, links and its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Base, Plan
from syncengine.render.html import plan_html
from syncengine.render.links import Links
from syncengine.render.style import Look
from syncengine.resource import Source
from tests.render.samples import HOSTILE, at, everything, field, hostile, plan_of, tag

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROWS = "li[data-action]"
SECRET = "Strictly confidential merger of A and B"
LOOK = Look(links=Links("https://git.example.com/acme/tags/blob/{commit}/{file}#L{line}"))


def reviewed(number: int, file: str = "manifests/acme.yaml") -> Change:
    text = f"Matter {number} of ACME"
    changes = (field("description", text, f"{text} (reviewed)"),)
    return Change(key=tag(f"ACME-{number}"), action=Action.UPDATE, source=Source(file, number), fields=changes)


def many(count: int) -> Plan:
    """Updates that are alike, an odd one among them, and as many new tags of which each is its own."""
    odd = Change(key=tag("ODD"), action=Action.UPDATE, source=at(7), fields=(field("description", "Patent", SECRET),))
    created = [
        Change(
            key=tag(f"NEW-{n}"),
            action=Action.CREATE,
            source=Source("manifests/new.yaml", n + 1),
            fields=(field("description", None, f"Opposition {n * 7919} of client {n % 13}"),),
        )
        for n in range(count // 2)
    ]
    return plan_of(*map(reviewed, range(1, count // 2)), odd, *created, *everything().changes)


@dataclass
class Page:
    """The page as a person sees it."""

    browser: Chrome
    folder: Path

    def open(self, plan: Plan) -> None:
        file = self.folder / "plan.html"
        file.write_text(plan_html(plan, LOOK), encoding="utf-8")
        self.browser.get(file.as_uri())

    def run(self, script: str, *values: Any) -> Any:
        return self.browser.execute_script(script, *values)  # type: ignore[no-untyped-call]

    def search(self, text: str) -> None:
        box = self.browser.find_element("id", "search")
        box.clear()
        box.send_keys(text)

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        Select(self.browser.find_element("id", name)).select_by_value(value)

    def choices(self, name: str) -> list[str]:
        script = "return [...document.getElementById(arguments[0]).options].map(option => option.value)"
        return list(self.run(script, name))

    def rows(self) -> list[str]:
        """The names of all rows that can be seen, in order."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].filter(row => row.checkVisibility())"
            ".map(row => row.querySelector('.name').textContent)"
        )
        return list(self.run(script, ROWS))

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    @contextmanager
    def emulated(self, width: int, scheme: str, height: int = 900) -> Iterator[None]:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
        try:
            yield
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture
def page(chromium: Chrome, tmp_path: Path) -> Iterator[Page]:
    chromium.get_log("browser")  # type: ignore[no-untyped-call]
    yield Page(chromium, tmp_path)
    assert chromium.get_log("browser") == []  # type: ignore[no-untyped-call]
    chromium.get("about:blank")


def test_the_odd_one_is_seen_and_the_mass_is_behind_its_row(page: Page) -> None:
    page.open(plan_of(*map(reviewed, range(1, 300)), many(10).changes[4]))
    assert page.rows() == ["ODD"]
    assert '299 ×description: + " (reviewed)"' in page.text("li.group").replace("\n", "")
    page.browser.find_element("css selector", "summary").click()
    assert len(page.rows()) == 300


def test_search_finds_names_and_values_behind_folded_rows(page: Page) -> None:
    """All words, in any case; the folded row opens and says how many of it are shown."""
    page.open(many(1_000))
    page.search("MATTER 77 reviewed")
    assert page.rows() == ["ACME-77", "ACME-177", "ACME-277", "ACME-377", "ACME-477"]
    assert (page.text("#shown"), page.text("li.group:not([hidden]) .name")) == ("5 of 1,019 shown", "5 of 499 ×")
    page.search("confidential")
    assert page.rows() == ["ODD"]
    page.search("nowhere to be seen")
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
    page.search("old-2")
    assert page.rows() == ["OLD-2"]
    page.browser.find_element("id", "clear").click()
    assert page.text("#shown").endswith(" in all")
    assert len(page.rows()) > 50


def test_a_filter_with_one_choice_is_not_shown(page: Page) -> None:
    """Nor is one by origin, where a plan has none."""
    page.open(plan_of(reviewed(1), reviewed(2)))
    names = ("action", "kind", "file", "origin")
    assert not any(page.browser.find_element("id", name).is_displayed() for name in names)


def test_changes_that_wait_are_behind_one_line_and_have_a_filter(page: Page) -> None:
    """With two sides: searching opens the line, and a filter tells whose a change is."""
    plan = plan_of(reviewed(1), reviewed(2), reviewed(3))
    page.open(replace(plan, compared=Base("origin/main", "c0ffee", {"tag/ACME-2": "merged", "tag/ACME-3": "merged"})))
    assert page.rows() == ["ACME-1"]
    assert page.choices("origin") == ["", "pull-request", "waiting"]
    page.choose("origin", "waiting")
    assert page.rows() == ["ACME-2", "ACME-3"]
    page.choose("origin", "")
    page.search("ACME-3")
    assert page.rows() == ["ACME-3"]


def test_a_place_is_a_link_to_its_line(page: Page) -> None:
    page.open(plan_of(reviewed(31)))
    link = page.browser.find_element("css selector", "a.place")
    address = "https://git.example.com/acme/tags/blob/2ee3b2c/manifests/acme.yaml#L31"
    assert (link.text, link.get_attribute("href")) == ("manifests/acme.yaml:31", address)


def test_a_narrow_page_is_not_wider_than_its_screen(page: Page) -> None:
    """Long words break."""
    plan = plan_of(reviewed(1))
    page.open(replace(plan, basis=replace(plan.basis, id="p-" + "0" * 80, commit="c0ffee" * 7)))
    screen = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        assert page.run("return document.documentElement.scrollWidth") == 390
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_text_runs_nothing_and_is_found(page: Page) -> None:
    """Neither on the page nor in the choices of a filter."""
    page.open(hostile())
    page.search('<script>alert("x")</script>')
    assert len(page.rows()) >= 4
    assert HOSTILE.split("\x1b")[0] in page.rows()[0]


def test_a_page_runs_no_script_and_no_style_but_its_own(page: Page) -> None:
    """As its policy says."""
    page.open(plan_of(reviewed(1)))
    page.run(
        "const script = document.createElement('script'); script.textContent = 'document.title = \"owned\"';"
        "document.body.append(script); document.body.setAttribute('style', 'display: none');"
    )
    title, display = page.run("return [document.title, getComputedStyle(document.body).display]")
    assert (title == "owned", display) == (False, "block")
    complaints = [entry["message"] for entry in page.browser.get_log("browser")]  # type: ignore[no-untyped-call]
    assert len(complaints) == 2
    assert all("Content Security Policy" in message for message in complaints)


def test_without_scripts_everything_is_there_but_the_filters(page: Page) -> None:
    page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.open(many(100))
        root = page.browser.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]
        html = page.browser.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": root})["outerHTML"]
    finally:
        page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert '<div id="filters" role="search" hidden' in html
    assert (SECRET in html, "Matter 17 of ACME (reviewed)" in html) == (True, True)


PLANS: dict[str, Callable[[], Plan]] = {
    "10": lambda: many(10),
    "1000": lambda: many(1_000),
    "10000": lambda: many(10_000),
    "hostile": hostile,
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_nothing_stands_out_of_the_page(page: Page, plan: str, width: int, scheme: str) -> None:
    """At the width of a screen and of a telephone; ink and page differ in both schemes."""
    with page.emulated(width, scheme):
        page.open(PLANS[plan]())
        room, ink, paper = page.run(
            "const style = getComputedStyle(document.body);"
            "return [document.documentElement.scrollWidth - document.documentElement.clientWidth,"
            " style.color, style.backgroundColor]"
        )
        assert (room, ink == paper) == (0, False)
        page.search("a")
        assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
