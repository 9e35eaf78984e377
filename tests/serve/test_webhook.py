"""`serve` as a webhook receiver that the service calls, and the switch between fetch and webhook."""

import socket
import time

import httpx
import pytest

from tests.posted_time.receiver import Got, receiving
from tests.support import loopback
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

from .world import CALLER_KEY, LAST_ANSWERS, World

pytestmark = pytest.mark.slow

HOOK = """\
  mode: webhook
  webhook: {{callbackUrl: "http://127.0.0.1:{port}/hook", callerKey: {{env: CALLER_KEY}}, bind: "127.0.0.1:{port}"}}
"""


def hooked(estate: World, port: int = 0) -> int:
    port = port or unused_port()
    estate.settings(posted=HOOK.format(port=port))
    return port


def call(port: int, key: str) -> int | None:
    """The status that answers a call with this key and without posted time, if anybody listens."""
    try:
        return loopback.post(f"http://127.0.0.1:{port}/hook", json={"callerKey": key}).status_code
    except httpx.TransportError:
        return None


def test_posted_time_comes_by_webhook_and_its_answer_is_the_acknowledgement(estate: World) -> None:
    """Each group is delivered once, and no status update is sent. A restart keeps the webhook: without it even for a
    moment, what users post meanwhile would be lost. A call of which only a half has come delays no stop."""
    port = hooked(estate)
    head = f"POST / HTTP/1.1\r\nHost: here\r\nx-api-key: {CALLER_KEY}\r\nContent-Length: 1000\r\n\r\n"
    for ids in (("a", "b"), ("c",)):
        served = estate.serve_ready()
        estate.deliver(*ids)
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(head.encode() + b'{"groupId": "a", ')
            time.sleep(0.5)
            began = time.monotonic()
            assert served.stop() == 0
        assert time.monotonic() - began < 15.0
    assert estate.ledger() == ["a", "b", "c"]
    nothing = ("updatePostedTimeStatus", "fetchPostedTime", "unregisterWebhook")
    assert [estate.told(operation) for operation in nothing] == [0, 0, 0]


def test_a_caller_key_that_is_replaced_while_it_runs_loses_no_call(estate: World) -> None:
    """The old key is accepted until the service has the new one; a wrong key answers 401 throughout."""
    port = unused_port()
    key = estate.project.folder / "caller.key"
    key.write_text("first-key")
    estate.settings(posted=HOOK.format(port=port).replace("{env: CALLER_KEY}", "{file: caller.key}"))
    estate.serve_ready()
    estate.service.fault("unregisterWebhook", times=None, status=503, headers={"Retry-After": "0"})
    key.write_text("second-key")
    estate.deliver("a")
    eventually(lambda: estate.told("unregisterWebhook") > 1)
    estate.deliver("b")
    assert call(port, "neither") == 401
    estate.service.heal()
    eventually(lambda: estate.told("registerWebhook") == 2 and call(port, "first-key") == 401)
    assert call(port, "neither") == 401
    estate.deliver("c")
    assert estate.ledger() == ["a", "b", "c"]


def test_a_call_before_the_webhook_is_registered_is_put_off(estate: World) -> None:
    """While it is unknown which key the service has, calls answer 503, so that the service repeats them."""
    port = hooked(estate)
    estate.serve_ready()
    estate.started[0].stop()
    estate.service.fault("unregisterWebhook", times=None, status=503, headers={"Retry-After": "0"})
    estate.serve(environ={"CALLER_KEY": "another-caller-key"}).says("receiving")
    assert call(port, CALLER_KEY) == 503
    estate.service.heal()
    eventually(estate.ready)
    assert call(port, CALLER_KEY) == 401
    estate.deliver("a")


def test_switching_to_webhook_and_back_unregisters_the_other_first(estate: World) -> None:
    """Editing the project file switches a running process; posted time is delivered before, between and after."""
    estate.serve_ready()
    estate.deliver("a")
    hooked(estate)
    eventually(lambda: estate.connection()["mechanism"] == "webhook")
    estate.deliver("b")
    estate.settings()
    eventually(lambda: estate.connection()["mechanism"] == "fetch")
    estate.deliver("c")
    assert estate.ledger() == ["a", "b", "c"]
    asked = estate.service.asked()
    switches = [o for o in asked if o in ("unregisterFetchClient", "registerWebhook", "unregisterWebhook")]
    assert switches == ["unregisterFetchClient", "registerWebhook", "unregisterWebhook"]


def test_what_was_delivered_before_a_switch_to_webhook_is_acknowledged_first(estate: World) -> None:
    """Once the service has a webhook, it refuses the status of a fetched group, and offers the group again."""
    estate.service.fault("updatePostedTimeStatus", times=None, status=503, headers={"Retry-After": "0"})
    served = estate.serve_ready()
    estate.post("a")
    eventually(estate.ledger)
    served.stop()
    estate.service.heal()
    estate.service.fault("updatePostedTimeStatus", late={"seconds": 1})
    hooked(estate)
    estate.serve_ready()
    assert [(group["state"], len(group["offers"])) for group in estate.posted().values()] == [("success", 1)]


def test_a_foreign_webhook_is_not_taken_for_ours_after_a_crash(estate: World) -> None:
    """Otherwise, after a kill before the registration, `serve` would wait for calls that go elsewhere."""
    hooked(estate)
    estate.subscribe_another()
    estate.service.fault("unregisterFetchClient", delay=30)
    first = estate.serve()
    eventually(lambda: estate.told("unregisterFetchClient") == 1)
    first.process.kill()
    estate.service.heal()
    served = estate.serve()
    assert served.ends() == 1
    assert "did not register" in served.messages("ended")[0]


@pytest.mark.parametrize("ends", ["SIGTERM", "reload"])
def test_the_group_in_hand_is_finished_however_slow_its_sink_is(estate: World, ends: str) -> None:
    """A group whose sink is slow is delivered once and acknowledged, despite SIGTERM or a reload."""

    def take_long(got: Got) -> tuple[int, object]:
        if got.method == "POST":
            time.sleep(LAST_ANSWERS + 1)
        return 201, {"id": 7}

    with receiving() as slow:
        slow.answer = take_long
        port = unused_port()
        sink = f"    - {{name: pms, http: {{url: '{slow.url}', json: {{}}}}}}\n"
        estate.settings(posted=HOOK.format(port=port), sinks=sink)
        served = estate.serve_ready()
        estate.post("a")
        eventually(lambda: len(slow.kept) == 1)
        if ends == "SIGTERM":
            assert served.stop() == 0
        else:
            estate.settings(posted=HOOK.format(port=port) + "  unmatched: accept", sinks=sink)
            served.says("leading", 2)
        estate.all_succeed()
    assert [got.method for got in slow.got].count("POST") == 1


def test_a_standby_waits_for_an_address_that_is_taken(estate: World) -> None:
    """The process that the standby replaces may still hold the address, so the standby tries again."""
    hooked(estate)
    estate.serve_ready()
    estate.port = unused_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        hooked(estate, port=other.getsockname()[1])
        (estate.project.folder / "syncengine.yaml").rename(estate.project.folder / "standby.yaml")
        standby = estate.serve("--config", "standby.yaml")
        standby.says("standby")
        estate.started[0].process.kill()
        assert "cannot listen" in standby.says("trouble")[0]
    eventually(estate.ready)
    estate.deliver("a")


def test_an_address_that_is_taken_at_a_reload_keeps_the_receiver_where_it_was(estate: World) -> None:
    """Calls are received at the old, registered address until the new one is free."""
    hooked(estate)
    served = estate.serve_ready()
    with socket.create_server(("127.0.0.1", 0)) as other:
        estate.settings(posted=HOOK.format(port=other.getsockname()[1]))
        assert "cannot listen" in served.says("configuration", 2)[1]
        eventually(estate.ready)
        estate.deliver("a")
    hooked(estate)
    served.says("receiving", 3)
    eventually(estate.ready)
    estate.deliver("b")
