"""The console with a real `syncengine serve`: a person posts time, and the console shows what the connector does."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from tests.support.warm import Started

from .conftest import LOOKS, Console, assert_fits, emulated

PROJECT = """\
version: 1
service: {{baseUrl: "{url}", apiKey: {{env: SYNCENGINE_API_KEY}}}}
serve: {{every: 1h, listen: "127.0.0.1:0"}}
postedTime:
  mode: fetch
  refuse:
    - {{when: not tag, message: Assign a tag before posting.}}
  deliver:
    - {{name: archive, jsonl: {{path: out/time.jsonl}}}}
"""


def test_the_console_shows_what_serve_does(console: Console, tmp_path: Path) -> None:
    """`serve` registers, delivers the group with a tag, refuses the one without, and stops on SIGTERM. Its own page can
    be read on a screen and on a phone, in both colour schemes, under a policy that allows only its own style."""
    url = str(console.connector.base_url)
    (tmp_path / "syncengine.yaml").write_text(PROJECT.format(url=url), encoding="utf-8")
    (tmp_path / "manifests").mkdir()
    log = tmp_path / "serve.log"
    console.open()
    served = Started(["serve"], folder=tmp_path, environ={**os.environ, "SYNCENGINE_API_KEY": "sandbox"}, log=log)
    try:
        console.until(lambda: "A fetch client is registered" in console.text("#mechanism"))
        console.fill("tag", "ACME-0042")
        console.press("Post time")
        console.until(lambda: console.text("tr[data-group] .state") == "success")
        console.press("Post time")
        console.until(lambda: "Assign a tag before posting." in console.text("tr[data-group]"))
        assert console.text("tr[data-group] .state") == "failed"
        address = console.until(lambda: re.search(r"/metrics at (http://[\d.:]+)", log.read_text(encoding="utf-8")))
        for width, scheme in LOOKS:
            with emulated(console.browser, width, scheme):
                console.browser.get(address[1])
                assert console.text("h1") in ("Ready", "Not ready")
                assert_fits(console.browser)
        served.send_signal(signal.SIGTERM)
        assert served.wait(60) == 0
    finally:
        served.kill()
    assert (tmp_path / "out" / "time.jsonl").read_text(encoding="utf-8").count("ACME-0042") == 1
