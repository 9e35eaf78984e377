"""The console with a real `syncengine serve`: a person posts time, and the console shows what the connector does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def serving(console: Console, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `serve` in a process of its own, with a file as its sink."""
    (folder / "syncengine.yaml").write_text(PROJECT.format(url=str(console.connector.base_url)), encoding="utf-8")
    (folder / "manifests").mkdir()
    command = [sys.executable, "-m", "syncengine", "-C", str(folder), "serve"]
    environment = {**os.environ, "SYNCENGINE_API_KEY": "sandbox"}
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_the_console_shows_what_serve_does(console: Console, tmp_path: Path) -> None:
    """`serve` registers, delivers the group with a tag, refuses the one without, and stops on SIGTERM."""
    console.open()
    with serving(console, tmp_path) as process:
        console.until(lambda: "A fetch client is registered" in console.text("#mechanism"))
        console.fill("tag", "ACME-0042")
        console.press("Post time")
        console.until(lambda: console.text("tr[data-group] .state") == "success")
        console.press("Post time")
        console.until(lambda: "Assign a tag before posting." in console.text("tr[data-group]"))
        assert console.text("tr[data-group] .state") == "failed"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert (tmp_path / "out" / "time.jsonl").read_text(encoding="utf-8").count("ACME-0042") == 1


def test_the_page_of_a_serve_can_be_read(console: Console, tmp_path: Path) -> None:
    """On a screen and on a phone, in both colour schemes, under a policy that allows only its own style."""
    with serving(console, tmp_path):
        log = tmp_path / "serve.log"
        address = console.until(lambda: re.search(r"/metrics at (http://[\d.:]+)", log.read_text(encoding="utf-8")))
        for width, scheme in LOOKS:
            with emulated(console.browser, width, scheme):
                console.browser.get(address[1])
                assert console.text("h1") in ("Ready", "Not ready")
                assert_fits(console.browser)
