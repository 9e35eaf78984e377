"""The console page in a real browser: what it shows, how it updates, and how a user posts time."""

import os
import re
from pathlib import Path

import pytest

from tests.support.warm import Started

from .conftest import LOOKS, Console, assert_fits, emulated

pytestmark = pytest.mark.slow

HOSTILE = '<img src=x onerror="document.title=\'owned\'"> & "T"'


def test_the_page_shows_what_the_service_holds(console: Console) -> None:
    category = {"externalId": "acme", "label": "ACME Corp."}
    made = console.connector.post("/tagcategory/batch", json={"tagCategories": [category]}).json()
    tag = {"name": "ACME-0042", "additionalKeywords": ["EP 1"], "metadata": {"Client": "ACME"}}
    tag |= {"tagCategoryId": made["tagCategories"][0]["id"], "url": "https://pms.example.com/42"}
    console.ask("/tag", tag)
    console.ask("/activitytype/batch", {"activityTypes": [{"code": "A101", "label": "Plan", "enableIfNew": True}]})
    console.open()

    def row(section: str) -> str:
        return console.text(f"section[aria-labelledby={section}] tbody tr")

    assert row("tags").split("\t") == ["ACME-0042", "", "acme", "ACME-0042, EP 1", "Client: ACME", "PUBLIC"]
    link = console.browser.find_element("link text", "ACME-0042")
    assert link.get_attribute("href") == "https://pms.example.com/42"
    assert row("categories").split("\t") == ["acme", "ACME Corp.", "", "", "1"]
    assert "offered to users" in row("activity-types")
    requests = console.text("section[aria-labelledby=requests] tbody")
    assert [words in requests for words in ("upsertTag", "POST /activitytype/batch")] == [True, True]


def test_a_user_posts_time_and_watches_it_arrive(console: Console) -> None:
    """The states posted, offered and success appear without a reload, with the connector's reference. The group has the
    offset and the time zone of the browser (docs/interface.md 2.5)."""
    console.ask("/tag", {"name": "ACME-0042", "externalId": "4711"})
    console.ask("/postedtime/registerfetchclient")
    console.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    console.open()
    typed = {"user": "Ann Bell", "tag": "ACME-0042", "minutes": "90", "description": "Opposition"}
    for name, text in {**typed, "activities": "Reading\nWriting"}.items():
        console.fill(name, text)
    console.press("Post time")
    row = console.until(lambda: console.text("tr[data-group]"))
    console.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    assert row.split("\t")[1:6] == ["Ann Bell", "ACME-0042", "1h 30m", "Opposition", "posted"]
    (group,) = console.connector.get("/postedtime").json()
    assert [each["activity"] for each in group["timeRows"]] == ["@_Reading_@", "@_Writing_@"]
    assert (group["totalDurationSecs"], group["tags"][0]["externalId"]) == (5400, "4711")
    (posted,) = console.control.get("/state").json()["postedTime"]
    part = posted["group"]["timeRows"][0]
    assert (posted["group"]["tzOffsetMins"], part["timezone_name"]) == (540, "Asia/Tokyo")
    console.until(lambda: "offered" in console.text("tr[data-group]"))
    update = {"timeGroupId": group["groupId"], "status": "SUCCESS", "externalId": "ledger-7"}
    console.ask("/postedtime/status", update)
    console.until(lambda: "ledger-7" in console.text("tr[data-group]"))
    assert console.text("tr[data-group] .state") == "success"


def test_time_without_a_connector_can_be_offered_and_its_refusal_shows(console: Console) -> None:
    """The page says that no connector is registered, `Offer now` offers an unrecorded group, and the message of a
    failure is shown to the user (docs/interface.md 7.2)."""
    console.open()
    assert "No connector receives posted time" in console.text("#mechanism")
    console.press("Post time")
    assert "pending, not recorded" in console.until(lambda: console.text("tr[data-group]"))
    console.press("Offer now")
    console.until(lambda: console.text("tr[data-group] .state") == "posted")
    console.ask("/postedtime/registerfetchclient")
    (group,) = console.connector.get("/postedtime").json()
    update = {"timeGroupId": group["groupId"], "status": "FAILURE", "message": "Assign a tag before posting."}
    console.ask("/postedtime/status", update)
    console.until(lambda: "Assign a tag before posting." in console.text("tr[data-group]"))
    assert console.text("tr[data-group] .state") == "failed"


def test_a_reported_failure_shows_while_it_lasts(console: Console) -> None:
    """docs/interface.md 2.7: team members see a reported failure until it is rescinded."""
    console.open()
    assert console.text("#health") == ""
    console.ask("/healthcheck/failure/notify", {"errorType": "TARGET_UNREACHABLE", "userErrorMessage": "Ask Ann."})
    console.until(lambda: "Ask Ann." in console.text("#health"))
    console.ask("/healthcheck/failure/rescind")
    console.until(lambda: not console.text("#health"))


def test_updates_keep_what_a_person_opened_or_typed(console: Console) -> None:
    console.ask("/tag", {"name": "first"})
    console.open()
    console.run("document.querySelector('details > summary').click()")  # between two redraws
    console.fill("description", "half a sent")
    console.ask("/tag", {"name": "second"})
    console.until(lambda: "second" in console.text("section[aria-labelledby=tags]"))
    assert '"first"' in console.text("details[open] pre")
    assert console.browser.find_element("id", "description").get_attribute("value") == "half a sent"


def test_names_are_text_wherever_they_come_from(console: Console) -> None:
    console.ask("/tag", {"name": HOSTILE, "url": "javascript:document.title='owned'", "description": HOSTILE})
    console.ask("/healthcheck/failure/notify", {"errorType": "UNKNOWN", "userErrorMessage": HOSTILE})
    console.ask("/team/managed/config", {"connectorType": HOSTILE})
    console.do("/settings", {"teamName": HOSTILE})
    console.do("/posted-time", {"tag": HOSTILE, "description": HOSTILE, "user": {"name": HOSTILE}, "groupId": HOSTILE})
    console.open()
    console.ask("/tag", {"name": "later"})
    console.until(lambda: "later" in console.text("section[aria-labelledby=tags]"))
    assert console.browser.title == f"{HOSTILE}: sandbox console"
    assert console.text("tr[data-group]").count(HOSTILE) == 3
    assert console.browser.find_elements("css selector", "img, a[href^=javascript]") == []


def test_the_page_says_when_the_sandbox_is_gone(console: Console) -> None:
    console.open()
    console.browser.execute_cdp_cmd("Network.enable", {})
    conditions = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    console.browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)
    console.until(lambda: console.text("#link") == "The sandbox is not responding.")
    back = {**conditions, "offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    console.browser.execute_cdp_cmd("Network.emulateNetworkConditions", back)
    console.until(lambda: console.text("#link") == "")
    assert all("ERR_INTERNET_DISCONNECTED" in complaint for complaint in console.complaints())


def test_without_scripts_the_page_shows_the_same(console: Console) -> None:
    """The server renders the page, and a browser without scripts reloads it at intervals."""
    console.ask("/tag", {"name": "first"})
    with console.without_scripts():
        console.open()
        assert "first" in console.document()
        console.ask("/tag", {"name": "second"})
        console.until(lambda: "second" in console.document())


@pytest.mark.parametrize(("width", "scheme"), [*LOOKS, (700, "light"), (1000, "light")])
def test_the_console_fits_its_screen(console: Console, width: int, scheme: str) -> None:
    """Long names, texts and addresses wrap, and on a phone the cells of a row stack."""
    long = "https://connector.example.com/" + "a-very-long-way-to-go/" * 8
    console.ask("/tag", {"name": "N" * 200, "description": "words " * 40, "url": long, "metadata": {"M" * 90: "V" * 9}})
    console.do("/tags", {"tags": [{"name": f"T{number:04}"} for number in range(100)]})
    console.do("/categories", {"tagCategories": [{"externalId": "E" * 200, "label": "L" * 200}]})
    console.ask("/activitytype/batch", {"activityTypes": [{"code": "A101", "label": "L" * 200, "enableIfNew": True}]})
    console.do("/posted-time", {"tag": "N" * 200, "groupId": "unrecorded"})
    console.ask("/postedtime/registerfetchclient")
    for group in ("succeeded", "failed", "offered"):
        console.do("/posted-time", {"groupId": group, "description": "words " * 40, "user": {"name": "U" * 90}})
    assert len(console.connector.get("/postedtime").json()) == 3
    console.ask("/postedtime/status", {"timeGroupId": "succeeded", "status": "SUCCESS", "externalId": "R" * 90})
    console.ask("/postedtime/status", {"timeGroupId": "failed", "status": "FAILURE", "message": "M" * 200})
    console.ask("/postedtime/unregisterfetchclient")
    console.ask("/postedtime/subscribe", {"callbackUrl": long, "callerKey": "k"})
    console.ask("/healthcheck/failure/notify", {"errorType": "UNKNOWN", "userErrorMessage": "F" * 200})
    with emulated(console.browser, width, scheme):
        console.open()
        shown = console.run("return [...document.querySelectorAll('.state')].map(each => each.innerText)")
        assert sorted(shown) == ["failed", "offered", "pending, not recorded", "success"]
        assert_fits(console.browser)
        console.fill("minutes", "soon")
        console.press("Post time")
        assert "from 1 to 1440" in console.until(lambda: console.text("#minutes-problem"))
        assert_fits(console.browser)
    assert all("400" in complaint for complaint in console.complaints())


def test_the_page_of_serve_fits_its_screen(console: Console, tmp_path: Path) -> None:
    """Under a policy that allows only its own style."""
    service = f"{{baseUrl: '{console.connector.base_url}', apiKey: {{env: SYNCENGINE_API_KEY}}}}"
    text = f"version: 1\nservice: {service}\nserve: {{every: 1h, listen: '127.0.0.1:0'}}\n"
    (tmp_path / "syncengine.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "manifests").mkdir()
    log = tmp_path / "serve.log"
    log.touch()
    served = Started(["serve"], folder=tmp_path, environ={**os.environ, "SYNCENGINE_API_KEY": "sandbox"}, log=log)
    try:
        address = console.until(lambda: re.search(r"/metrics at (http://[\d.:]+)", log.read_text(encoding="utf-8")))
        for width, scheme in LOOKS:
            with emulated(console.browser, width, scheme):
                console.browser.get(address[1])
                assert console.text("h1") in ("Ready", "Not ready")
                assert_fits(console.browser)
    finally:
        served.kill()
