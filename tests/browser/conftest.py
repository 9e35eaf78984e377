"""A real browser with a running sandbox. Without Chromium and its driver, no test of this folder is collected."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest

from syncengine.sandbox.app import running_sandbox
from tests.support import loopback

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

collect_ignore_glob = [] if CHROMIUM and DRIVER else ["test_*.py"]

T = TypeVar("T")

FAINT = """
const parts = color => color.match(/[\\d.]+/g).map(Number);
const light = rgb => {
  const [r, g, b] = rgb.slice(0, 3).map(each => {
    const part = each / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = element => {
  for (let each = element; each; each = each.parentElement) {
    const color = parts(getComputedStyle(each).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const faint = new Set();
for (const element of document.querySelectorAll("body *")) {
  if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
  if (!element.checkVisibility() || element.closest(".unseen, script, option")) continue;
  const [low, high] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) faint.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
}
return [...faint];
"""
"""A script that returns each element whose text has less contrast than 4.5 to 1 with what is behind it (WCAG 1.4.3)."""

PATIENCE_SECONDS = 30.0
"""How long the page may take to show something that a test waits for."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """One browser for the whole run."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("headless", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,1600", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def emulated(browser: Chrome, width: int, scheme: str, height: int = 900) -> Iterator[None]:
    """Emulate a screen of this width in pixels, and a reader who prefers `light` or `dark` colours."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def assert_fits(browser: Chrome) -> None:
    """The page is not wider than its screen, and every text on it has enough contrast."""
    script = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    width, room = browser.execute_script(script)  # type: ignore[no-untyped-call] # selenium has no types
    assert width <= room
    assert browser.execute_script(FAINT) == []  # type: ignore[no-untyped-call] # selenium has no types


LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
"""The widths of a screen and of a phone in pixels, each with both colour schemes."""


@dataclass
class Shown:
    """What the browser shows, and what a person does there."""

    browser: Chrome

    def run(self, script: str, *values: Any) -> Any:
        return self.browser.execute_script(script, *values)  # type: ignore[no-untyped-call] # selenium has no types

    def text(self, selector: str) -> str:
        """The visible text of the first match, "" without one, by one script, since the page may replace elements."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def fill(self, name: str, text: str) -> None:
        field = self.browser.find_element("id", name)
        field.clear()
        field.send_keys(text)

    def press(self, words: str) -> None:
        self.browser.find_element("xpath", f"//button[normalize-space()='{words}']").click()

    def until(self, look: Callable[[], T]) -> T:
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.browser, PATIENCE_SECONDS, poll_frequency=0.05).until(lambda _: look())

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            yield
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def document(self) -> str:
        """The HTML of the page, read without a script in it."""
        from selenium.common.exceptions import WebDriverException

        for _ in range(10):
            root = self.browser.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]
            with suppress(WebDriverException):  # the page was reloaded between the two calls
                return str(self.browser.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": root})["outerHTML"])
        raise AssertionError("the page is loaded again and again")

    def complaints(self) -> list[str]:
        """The browser's log: errors of scripts, and violations of the page's Content-Security-Policy."""
        return [entry["message"] for entry in self.browser.get_log("browser")]  # type: ignore[no-untyped-call] # selenium has no types


@dataclass
class Console(Shown):
    """The console page in the browser, the sandbox's control API, and a connector."""

    url: str
    control: httpx.Client
    connector: httpx.Client

    def open(self) -> None:
        self.browser.get(self.url)

    def do(self, path: str, body: Any = None) -> None:
        response = self.control.post(path, json=body)
        assert response.status_code == 200, response.text

    def ask(self, path: str, body: Any = None) -> None:
        response = self.connector.post(path, json=body)
        assert response.is_success, response.text


@pytest.fixture
def console(chromium: Chrome) -> Iterator[Console]:
    with (
        running_sandbox() as running,
        loopback.client(base_url=running.control_url) as control,
        loopback.client(base_url=running.url, headers={"x-api-key": running.api_key}, timeout=90) as connector,
    ):
        console = Console(chromium, running.console_url, control, connector)
        console.complaints()
        yield console
        assert console.complaints() == []
        chromium.get("about:blank")
