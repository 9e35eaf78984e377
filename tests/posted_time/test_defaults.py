"""Defaults for settings that the project file omits, and settings that take effect where they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.posted_time.desk import at_work
from tests.posted_time.projects import LOOKUPS, delivering, rows
from tests.posted_time.samples import raw
from tests.serve.in_process import work
from tests.serve.world import CALLER_KEY, World, eventually, world
from tests.support import loopback
from tests.support.ports import unused_port


def test_a_template_file_is_read_only_at_the_start(tmp_path: Path) -> None:
    """A template that changes or disappears later does not affect groups until the project is loaded again."""
    narrative = tmp_path / "narrative.j2"
    narrative.write_text("As it was: {{ tag.name }}.")
    with at_work(delivering(tmp_path, more=LOOKUPS + "narrative: {template: narrative.j2}\n")) as desk:
        desk.take(raw("g1"))
        narrative.write_text("{{ broken")
        desk.take(raw("g2"))
        narrative.unlink()
        desk.take(raw("g3"))
    assert rows(tmp_path, "SELECT note FROM time") == [("As it was: ACME-0042.",)] * 3


@pytest.mark.parametrize(("setting", "limit"), [("", 1 << 20), (", maxBody: 4096", 4096)], ids=["default", "set"])
def test_a_webhook_call_larger_than_maxbody_is_refused(setting: str, limit: int, tmp_path: Path) -> None:
    """A call of one byte more than the limit gets 413, and nothing of it is stored."""
    port = unused_port()
    url = f"http://127.0.0.1:{port}/hook"
    answers: list[int] = []

    def call(id: str, size: int) -> None:
        body = (
            f'{{"groupId": "{id}", "callerKey": "{CALLER_KEY}", "tags": [], "totalDurationSecs": 60, "description": "'
        )
        content = body + "x" * (size - len(body) - 2) + '"}'
        answers.append(loopback.post(url, content=content).status_code)

    def watch(estate: World) -> None:
        eventually(lambda: estate.connection()["mechanism"] == "webhook")
        call("fits", limit)
        call("too-large", limit + 1)

    with world(tmp_path) as estate:
        hook = f'callbackUrl: "{url}", callerKey: {{env: CALLER_KEY}}, bind: "127.0.0.1:{port}"{setting}'
        estate.settings(posted=f"  mode: webhook\n  webhook: {{{hook}}}")
        work(estate, lambda: watch(estate))
        assert answers == [200, 413]
        assert estate.ledger() == ["fits"]
