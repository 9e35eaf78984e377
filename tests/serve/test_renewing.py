"""`serve` with short waits: it renews a registration, repeats one that failed, and survives a failing reload."""

from __future__ import annotations

import io
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncengine.project.load import load_project
from syncengine.project.model import Project
from tests.cli.service import KEY

from .in_process import work
from .world import LEDGER, World, eventually

SINK = LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK }}")


def answer(desk: str, seconds: float) -> dict[str, Any]:
    expiry = datetime.now(UTC) + timedelta(seconds=seconds)
    return {"serviceId": "s", "serviceIdExpiry": expiry.isoformat(), "connectorConfiguration": {"DESK": desk}}


def test_a_registration_is_renewed_before_it_expires_and_its_settings_hold_from_then_on(estate: World) -> None:
    """After the renewal, templates use the settings of the newer answer."""
    estate.settings(sinks=SINK)
    estate.service.fault("registerConnector", status=200, body=answer("first", 2))
    estate.service.fault("registerConnector", status=200, body=answer("second", 3600))

    def watch() -> None:
        eventually(lambda: estate.told("registerConnector") == 2)
        estate.deliver("a")

    log = work(estate, watch)
    assert log.count('"event":"registered"') == 2
    assert estate.told("registerConnector") == 2
    assert estate.matters() == ["second"]


@pytest.mark.parametrize("status", [500, 400])
def test_a_registration_that_failed_is_repeated(estate: World, status: int) -> None:
    """The failure is logged once, without the answer's text, and the registration is repeated."""
    estate.service.fault("registerConnector", times=2, status=status, body="somebody's words")
    log = work(estate, lambda: eventually(lambda: estate.told("registerConnector") == 3))
    assert log.count("could not be registered") == 1
    assert "somebody" not in log


def test_an_exception_in_a_reload_is_logged_and_the_old_configuration_stays(estate: World) -> None:
    """An exception during a reload is logged as a bug without its text, and delivery goes on."""
    stream, loads = io.StringIO(), itertools.count()

    def load(**given: Any) -> Project:
        if next(loads):
            raise RuntimeError("somebody's words")
        return load_project(**given)

    def watch() -> None:
        estate.settings(posted="  unmatched: accept")
        eventually(lambda: "the old one stays in use" in stream.getvalue())
        estate.deliver("a")

    log = work(estate, watch, load, stream)
    assert "RuntimeError in syncengine, which is a bug" in log
    assert "somebody" not in log


def test_the_key_at_work_stays_masked_through_reloads_that_fail(estate: World) -> None:
    """Every failed reload brings another key; neither it nor the current key appears in the log."""
    stream, loads = io.StringIO(), itertools.count()

    def load(**given: Any) -> Project:
        number = next(loads)
        return load_project(**{**given, "environ": {"SYNCENGINE_API_KEY": f"other-key-{number}" if number else KEY}})

    def watch() -> None:
        eventually(lambda: '"event":"leading"' in stream.getvalue())
        for number in range(1, 6):
            estate.settings(sinks=LEDGER.replace("INTO time", f"INTO none{number}"))
            eventually(lambda count=number: stream.getvalue().count("the old one stays in use") == count)
        estate.settings(posted=f"  {KEY}: 1\n  other-key-1: 1")
        eventually(lambda: "unknown-field" in stream.getvalue())
        estate.settings()

    log = work(estate, watch, load, stream)
    assert "has no field `***`" in log
    assert KEY not in log
    assert "other-key" not in log
