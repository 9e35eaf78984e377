"""When a process is not ready: posted time cannot be served or, in a project without it, nothing is reconciled."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from syncengine import __version__
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.serve.probes import DOWN_SECONDS, NOT_RECONCILED, Readiness, Server, probes
from syncengine.serve.reconcile import OUTCOMES

DOWN = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")


def working(**given: object) -> Readiness:
    return Readiness(phase=None, **given)  # type: ignore[arg-type] # as a test calls it


def test_a_sink_that_is_down_counts_after_a_minute() -> None:
    """A sink's restart takes less than that, and until then another process would not do better."""
    readiness = working(has_posted_time=True)
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []
    readiness.down_since["pms"] -= DOWN_SECONDS
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == ["sink pms: pms cannot be reached."]
    readiness.note_sinks(())
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []


def test_the_page_shows_what_the_probes_answer() -> None:
    """The page shows the same facts as the probes, with quoted names escaped."""

    async def play() -> str:
        readiness = working(configuration="line 3: <b> is no setting", reconciled="complete")
        readiness.note_sinks((DOWN,))
        readiness.counts = lambda: {"received": 7}
        server = Server(probes(readiness), ("127.0.0.1", 0), setting="`--listen`", patience=1)
        url = await server.start()
        try:
            async with httpx.AsyncClient(trust_env=False) as http:
                return (await http.get(url)).text
        finally:
            await server.stop()

    page = asyncio.run(play())
    for words in ("<h1>Ready</h1>", "line 3: &lt;b&gt; is no setting", "complete", "<td>7", DOWN.message, __version__):
        assert words in page


@pytest.mark.parametrize("outcome", OUTCOMES.values())
def test_invalid_manifests_count_where_there_is_nothing_but_manifests(outcome: str) -> None:
    """With posted time, the process stays ready: an invalid manifest must not keep webhook calls from it."""
    assert bool(working(reconciled=outcome).reasons()) == (outcome in NOT_RECONCILED)
    assert working(reconciled=outcome, has_posted_time=True).reasons() == []
