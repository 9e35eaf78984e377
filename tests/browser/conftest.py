"""A real browser in front of a running sandbox. Without Chromium and its driver nothing here is collected."""

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

PATIENCE_SECONDS = 30.0
"""How long the page may take to show what must come."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """One browser for the whole run."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@dataclass
class Console:
    """The page as a person sees it, the sandbox's control API, and a connector."""

    browser: Chrome
    url: str
    control: httpx.Client
    connector: httpx.Client

    def open(self, find: str = "") -> None:
        self.browser.get(self.url + (f"?find={find}" if find else ""))

    def do(self, path: str, body: Any = None) -> None:
        response = self.control.post(path, json=body)
        assert response.status_code == 200, response.text

    def ask(self, path: str, body: Any = None) -> None:
        response = self.connector.post(path, json=body)
        assert response.is_success, response.text

    def text(self, selector: str) -> str:
        """What is visible in the first element, "" where there is none. The page may put in a new one meanwhile."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self.browser.execute_script(script, selector))  # type: ignore[no-untyped-call]

    def document(self) -> str:
        """The page as it is, asked for without a script."""
        from selenium.common.exceptions import WebDriverException

        for _ in range(10):
            root = self.browser.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]
            with suppress(WebDriverException):  # the page was loaded again between the two questions
                return str(self.browser.execute_cdp_cmd("DOM.getOuterHTML", {"nodeId": root})["outerHTML"])
        raise AssertionError("the page is loaded again and again")

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            yield
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def fill(self, name: str, text: str) -> None:
        field = self.browser.find_element("id", name)
        field.clear()
        field.send_keys(text)

    def press(self, words: str) -> None:
        self.browser.find_element("xpath", f"//button[normalize-space()='{words}']").click()

    def until(self, look: Callable[[], T]) -> T:
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.browser, PATIENCE_SECONDS, poll_frequency=0.05).until(lambda _: look())

    def complaints(self) -> list[str]:
        """What the browser itself has to say: errors of scripts, and what the page's policy forbids."""
        return [entry["message"] for entry in self.browser.get_log("browser")]  # type: ignore[no-untyped-call]


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
