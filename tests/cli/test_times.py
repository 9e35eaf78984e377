"""`--since`, `--before` and `--until`: all commands read times alike, in any time zone."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click
import pytest

from syncengine.cli import program
from syncengine.cli.option_types import FutureTime, PastTime

from .program import Project
from .test_help import own, walked

KINDS = {"since": PastTime, "before": PastTime, "until": FutureTime}
TIMES = {
    words: (option, command)
    for words, command in walked(program)
    for option in own(command)
    if option.name in KINDS and option.metavar != "FILE"
}
DAY = 86_400


def value_of(kind: type[PastTime], text: str) -> float:
    return kind().convert(text, None, None)


def test_every_command_takes_times_alike() -> None:
    """Their options have the same type and placeholder. Only `plan --since` takes a file instead."""
    time_commands = {f"time {name}" for name in ("list", "inbox", "retry", "audit", "export")}
    assert set(TIMES) == {"drift", "state prune", "state quarantine"} | time_commands
    for option, _ in TIMES.values():
        assert (type(option.type), option.metavar) == (KINDS[option.name or ""], "T")
        assert "7d or 36h" in (option.help or "")
        assert "UTC" in (option.help or "")


@pytest.mark.parametrize(("text", "seconds"), [("7d", 7 * DAY), ("36h", 1.5 * DAY), ("90m", 5400), ("1.5h", 5400)])
def test_a_duration_counts_from_now(text: str, seconds: float) -> None:
    """It counts back for a past time and forward for a future one."""
    now = time.time()
    assert value_of(PastTime, text) == pytest.approx(now - seconds, abs=5)
    assert value_of(FutureTime, text) == pytest.approx(now + seconds, abs=5)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29T09:00:00Z", "2024-02-29T09:00:00+00:00"),
        ("2024-02-29t09:00:00.5+01:30", "2024-02-29T07:30:00.5+00:00"),
        ("2024-02-29T09:00:00", "2024-02-29T09:00:00+00:00"),
        ("2024-02-29T09:00", "2024-02-29T09:00:00+00:00"),
    ],
)
def test_a_date_or_an_instant_is_in_utc_unless_it_says_otherwise(text: str, instant: str) -> None:
    """A date means the start of its day, and after `--until` and in the project file's `quarantine` its end."""
    assert value_of(PastTime, text) == datetime.fromisoformat(instant).timestamp()
    assert value_of(FutureTime, "2999-12-31") == datetime(3000, 1, 1, tzinfo=UTC).timestamp()
    assert value_of(FutureTime, "2999-12-31T09:00:00Z") == datetime(2999, 12, 31, 9, tzinfo=UTC).timestamp()


def test_the_zone_of_the_computer_does_not_matter(project: Project) -> None:
    """The same command has the same meaning in a CI job and on a user's computer."""
    project.settle()
    words = ("state", "prune", "--before", "2024-03-01", "--dry-run", "--format", "json")
    for zone in ({}, {"TZ": "America/New_York"}):
        assert project.run(*words, environ=zone).document["before"].startswith("2024-03-01T00:00:00")


WRONG = ("7", "-3d", "soon", "20240229", "2024-02-30", "2024-02-29T25:00:00Z", "2024-W05-1", "1709164800", "7d ")


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("kind", [PastTime, FutureTime])
def test_anything_else_is_refused_in_one_sentence(kind: type[PastTime], text: str) -> None:
    """A number without a unit is refused too, because seven seconds would find nothing and look like success."""
    with pytest.raises(click.BadParameter) as refused:
        value_of(kind, text)
    assert refused.value.message == (
        f"{text!r} is not a time: write a duration (7d, 36h), a date (2026-01-31) or an instant (2026-01-31T09:00:00Z)"
    )


MISPLACED: list[tuple[type[PastTime], str, str]] = [
    (PastTime, "2999-01-01", "2999-01-01 is in the future"),
    (FutureTime, "2024-02-29", "2024-02-29 is in the past"),
    (FutureTime, "99999999d", "is after the year 9999"),
    (PastTime, "0d", "'0d' must be longer than zero"),
    (FutureTime, "0d", "'0d' must be longer than zero"),
]


@pytest.mark.parametrize(("kind", "text", "says"), MISPLACED)
def test_a_time_on_the_wrong_side_of_now_is_refused(kind: type[PastTime], text: str, says: str) -> None:
    """With a wrong year a command would find no drift, prune everything or end a quarantine at once."""
    with pytest.raises(click.BadParameter, match=says):
        value_of(kind, text)


@pytest.mark.parametrize("words", TIMES)
def test_every_command_refuses_alike(project: Project, words: str) -> None:
    """The message is the same for each command; an empty value is reported as empty."""
    option, _ = TIMES[words]
    for text, says in (("7", "'7' is not a time: write a duration"), ("", " is empty, perhaps because a variable")):
        done = project.run(*words.split(), option.opts[0], text)
        assert (done.code, says in done.err, f"syncengine {words}" in done.err) == (64, True, True), done.err
        assert "reviewed plan" not in done.err
