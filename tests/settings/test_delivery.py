"""The sections `postedTime`, `sources` and `serve` of the project file, and what environments override in them."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from syncengine.project.delivery_schema import Mode, Unmatched, Weighting
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.project.references import Reference
from syncengine.project.types import Written
from tests.manifest.loading import problems

WHOLE = """\
version: 1
sources:
  ledger: {sql: {env: LEDGER}}
  crm: {http: {url: https://crm.example.com/api/, headers: {X-Key: {env: CRM}, Accept: text/plain}, timeout: 5s}}
  plain: {http: https://plain.example.com}
postedTime:
  mode: webhook
  webhook:
    callbackUrl: https://me.example.com/hook
    callerKey: {file: key.txt}
    bind: "[::1]:8081"
    maxBody: 2048
  fetchLimit: 5000
  timezone: Europe/Vienna
  unmatched: accept
  refuse: [{when: not tag, message: Assign a tag.}]
  narrative: {template: n.j2, maxLength: 255, newline: "\\r\\n"}
  duration: {from: rows, weighting: always, roundUpTo: 6m}
  deliver:
    - name: ledger
      when: tag
      sql: {source: ledger, statement: "CALL x(:a, :b, :c, :d)", params: {a: "{{ x }}", b: 1, c: 007, d: null}}
      refuseOn: [409, 503]
    - {name: file, jsonl: {path: out.jsonl, json: {a: [true, 1.5, yes, "2"]}}}
  keep: 30d
serve: {every: 90s, listen: "0.0.0.0:80"}
environments:
  test: {postedTime: {mode: fetch, webhook: {bind: "127.0.0.1:1"}}, serve: {every: 1s}, sources: {ledger: {sql: x.db}}}
"""


def project(folder: Path, env: str | None = None) -> Project:
    (folder / "syncengine.yaml").write_text(WHOLE, encoding="utf-8")
    return load_project(folder=folder, environment=env, environ={})


CONVERTED: dict[str, object] = {
    "mode": Mode.WEBHOOK,
    "webhook.callback_url": "https://me.example.com/hook",
    "webhook.bind": ("::1", 8081),
    "webhook.max_body": 2048,
    "webhook.caller_key": Reference(file="key.txt"),
    "fetch_limit": 5000,
    "timezone": "Europe/Vienna",
    "unmatched": Unmatched.ACCEPT,
    "duration.weighting": Weighting.ALWAYS,
    "duration.round_up_to": 360.0,
    "narrative.template": Written("n.j2", 17, 25),
    "narrative.max_length": 255,
    "narrative.newline": "\r\n",
    "keep": 30 * 86400.0,
}


def test_settings_are_converted(tmp_path: Path) -> None:
    """Durations become seconds, choices become enum members, and templates keep their line and column.

    Numbers, flags and null of parameters and bodies are those of JSON; `007` and `yes` are text. A URL alone is short
    for a source with only a URL.
    """
    found: Any = project(tmp_path)
    assert {name: attrgetter(name)(found.posted_time) for name in CONVERTED} == CONVERTED
    assert found.posted_time.refuse[0].when == Written("not tag", 16, 19)
    ledger, file = found.posted_time.deliver
    params, body = ledger.sql.params, file.jsonl.body["a"]
    assert (params["a"].text, params["b"], params["c"].text, params["d"]) == ("{{ x }}", 1, "007", None)
    assert (body[:2], body[2].text, body[3].text, ledger.refuse_on) == ((True, 1.5), "yes", "2", (409, 503))
    crm, plain = found.sources["crm"].http, found.sources["plain"].http
    assert (crm.url, crm.timeout, found.sources["ledger"].sql) == (
        "https://crm.example.com/api", 5.0, Reference(env="LEDGER"),
    )  # fmt: skip
    assert crm.headers == {"X-Key": Reference(env="CRM"), "Accept": Written("text/plain", 4, 88)}
    assert (plain.url, plain.headers) == ("https://plain.example.com", None)


def test_an_environment_overrides_the_sections(tmp_path: Path) -> None:
    """Mappings are merged deeply, but the reference of a source is replaced."""
    there: Any = project(tmp_path, "test")
    webhook = there.posted_time.webhook
    assert (there.posted_time.mode, webhook.bind, webhook.max_body) == (Mode.FETCH, ("127.0.0.1", 1), 2048)
    assert (there.serve.every, there.serve.listen, there.sources["ledger"].sql) == (1.0, ("0.0.0.0", 80), "x.db")


@pytest.mark.parametrize(
    ("bind", "listen", "is_refused"),
    [
        ("127.0.0.1:9001", "127.0.0.1:9001", True),
        ("127.0.0.1:8766", None, True),
        (None, "127.0.0.1:8080", True),
        ("0.0.0.0:9001", "127.0.0.1:9001", True),
        ("[::]:9001", "[::1]:9001", True),
        ("localhost:9001", "127.0.0.1:9001", True),
        ("127.0.0.1:9001", "127.0.0.1:9002", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
        ("127.0.0.1:9001", "127.0.0.2:9001", False),
    ],
)
def test_a_webhook_has_an_address_of_its_own(
    bind: str | None, listen: str | None, is_refused: bool, tmp_path: Path
) -> None:
    """It must differ from the address of `serve`, even if that is the default. This is checked only in webhook mode."""
    hook = "webhook: {callbackUrl: 'https://h', callerKey: {env: K}" + (f", bind: '{bind}'" if bind else "") + "}"
    serve = f"serve: {{listen: '{listen}'}}\n" if listen else ""
    for mode, wrong in (("webhook", is_refused), ("fetch", False)):
        settings = f"version: 1\npostedTime:\n  mode: {mode}\n  {hook}\n{serve}"
        found = problems(tmp_path, {"syncengine.yaml": settings, "manifests/m.yaml": ""})
        assert [(d.code, d.line, "serve.listen" in d.message) for d in found] == [("bad-value", 4, True)] * wrong
