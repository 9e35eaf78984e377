"""The examples of docs/posted-time-settings.md do what the page says."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.support import warm
from tests.support.pages import ROOT, blocks
from tests.support.ports import unused_port

PAGE = ROOT / "docs/posted-time-settings.md"


SHIMS = {
    "syncengine": f'#!/bin/sh\nexec "{sys.executable}" -m syncengine "$@"\n',
    "curl": f"""#!{sys.executable}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], data=sys.argv[-2].encode(), timeout=20).read().decode())
""",
}
"""The programs that the commands of the page call; a machine may lack curl, whose POST the page sends."""


def test_the_ten_lines_deliver_what_is_printed(tmp_path: Path) -> None:
    """The commands of the page run unchanged, except for the port."""
    settings, commands = blocks(PAGE, "yaml")[0], blocks(PAGE, "sh")[0]
    assert len(settings.splitlines()) == 1 + 10
    port = str(unused_port())
    (tmp_path / "syncengine.yaml").write_text(settings.replace("8765", port))
    (tmp_path / "bin").mkdir()
    for name, text in SHIMS.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    script = commands.replace("syncengine sandbox", f"syncengine sandbox --port {port}").replace("8765", port)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = re.search(r"cat \S+ +# (.*)", commands)
    assert printed is not None
    assert (tmp_path / "out/time.jsonl").read_text() == printed[1] + "\n"
    assert printed[1] in done.stdout
    assert "SUCCESS" in done.stdout


def test_the_example_of_all_settings_can_be_previewed(tmp_path: Path) -> None:
    """Its names, templates and sources are consistent."""
    ledger = sqlite3.connect(tmp_path / "ledger.db")
    ledger.executescript("CREATE TABLE matter (id, no); CREATE TABLE time (id, matter, secs)")
    ledger.close()
    settings = blocks(PAGE, "yaml")[1].replace("data/ledger.db", "ledger.db")
    (tmp_path / "syncengine.yaml").write_text(settings)
    done = warm.run(
        ["time", "preview", "--sample"], folder=tmp_path, environ={"HOME": str(tmp_path), "CALLER_KEY": "k"}
    )
    assert (done.code, "params.matter = '<matter.id>'" in done.out) == (0, True), done.err
