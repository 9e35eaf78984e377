"""The log has one JSON object on each line, and no secret in any line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.posted_time.events import Taken, Verdict
from syncengine.serve.log import Log, QueuedStream, telling
from syncengine.serve.probes import Readiness
from syncengine.state.inbox_model import PostedTimeStatus

KEY = "k3y-never-to-be-seen"


def logged(write: Any, **given: Any) -> list[str]:
    stream = io.StringIO()
    write(Log(stream, lambda: 1_700_000_000.5, secrets=[lambda: [KEY]], **given))
    return stream.getvalue().splitlines()


def test_a_line_is_a_json_object_with_time_level_event_and_facts() -> None:
    """A fact that is None is left out."""
    (line,) = logged(lambda log: log.warning("taken", "group a", group="a", externalId=None, count=2))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "event": "taken",
        "message": "group a",
        "group": "a",
        "count": 2,
    }


def test_no_line_holds_a_secret() -> None:
    """Secrets are masked in messages and in facts; very short ones are not. When a secret's file is missing, the line
    is written all the same."""
    lines = logged(lambda log: log.error("x", f"they said {KEY}!", words=f"{KEY}{KEY}"))
    assert KEY not in "".join(lines)
    assert json.loads(lines[0])["message"] == "they said ***!"

    def gone() -> list[str]:
        raise SyncengineError("the file is away")

    stream = io.StringIO()
    Log(stream, lambda: 0.0, secrets=[gone, lambda: [""], lambda: ["ab"]]).info("x", "about")
    assert json.loads(stream.getvalue())["message"] == "about"


def test_each_problem_has_a_line_of_its_own_with_its_place() -> None:
    """Problems are logged as `validate` shows them."""
    place = {"severity": Severity.ERROR, "file": "syncengine.yaml", "column": 3}
    found = [Diagnostic(code=code, message=f"bad {code}", line=n, **place) for n, code in ((1, "one"), (2, "two"))]
    lines = [json.loads(line) for line in logged(lambda log: log.refusal("ended", Problems(found)))]
    assert [line["message"] for line in lines] == ["syncengine.yaml:1:3: bad one", "syncengine.yaml:2:3: bad two"]
    assert [line["code"] for line in lines] == ["one", "two"]


def test_text_for_people_shows_no_control_characters() -> None:
    (line,) = logged(lambda log: log.info("x", "a\x1b[2Jb\nc"), json=False)
    assert line == "2023-11-14T22:13:20.500Z info: a\\x1b[2Jb\\nc"


def test_a_reader_that_went_away_ends_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream, lambda: 0.0).error("x", "nobody hears it")


def test_a_reader_that_stopped_reading_does_not_block_the_log() -> None:
    """When nobody reads the log, lines over a limit are dropped, and their number is logged later."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w") as written:
        stream = QueuedStream(written, most=20)
        log = Log(stream, lambda: 0.0)
        for number in range(200):
            log.info("x", f"{number} " + "x" * 10_000)
        assert log.dropped > 0
        dropped = log.dropped
        lines = [json.loads(read.readline())["message"] for _ in range(200 - dropped)]
        assert [line.split()[0] for line in lines] == [str(number) for number in range(200 - dropped)]
        log.info("y", "again")
        stream.close()
        assert [json.loads(read.readline())["message"] for _ in range(2)] == [
            "again",
            f"{dropped} lines before this were dropped: nobody read the log",
        ]


@pytest.mark.parametrize("is_blocking", [True, False], ids=["blocking", "non-blocking"])
def test_a_reader_that_is_slow_gets_every_line_whole(is_blocking: bool) -> None:
    """Also through a pipe that another process has made non-blocking, with lines longer than the pipe takes at once."""
    reader, writer = os.pipe()
    os.set_blocking(writer, is_blocking)
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w") as written:
        stream = QueuedStream(written)
        for number in range(20):
            Log(stream, lambda: 0.0).info("x", f"{number} " + "x" * 100_000)
        time.sleep(0.1)  # until the pipe is full
        lines = [json.loads(read.readline())["message"] for _ in range(20)]
        stream.close()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(20)]


def test_quiet_keeps_warnings_and_errors() -> None:
    lines = logged(lambda log: (log.info("x", "a"), log.warning("x", "b"), log.error("x", "c")), quiet=True)
    assert [json.loads(line)["level"] for line in lines] == ["warning", "error"]


def test_libraries_write_nothing_between_the_lines() -> None:
    text = (
        "import logging; from syncengine.serve import log; log.quiet_libraries(); logging.getLogger('x').warning('w')"
    )
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stderr == b""


def test_the_log_says_that_a_group_in_trouble_is_offered_again() -> None:
    """Nobody has to act."""
    trouble = Taken("a", Verdict(PostedTimeStatus.TROUBLE, "ledger cannot be reached.", detail="refused"))
    (line,) = logged(lambda log: telling(log, Readiness(), lambda outcome: None)(trouble))
    message = "group a: RETRIABLE_FAILURE: ledger cannot be reached. [refused] The service will offer it again."
    assert json.loads(line)["message"] == message
