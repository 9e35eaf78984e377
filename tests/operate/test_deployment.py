"""The deployment files fit their published schemas, and the commands in them start, answer probes and end."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml

from syncengine.project.delivery_schema import ServeSection
from syncengine.serve.log import LAST_LINES_SECONDS
from syncengine.serve.process import ENDS_WITHIN
from tests import postgresql
from tests.cli.program import Project, tag
from tests.cli.service import serving
from tests.packaging.checkers import misfits
from tests.support import loopback
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

FILES = Path(__file__).parents[2] / "docs" / "deployment"
UNIT, COMPOSE, KUBERNETES = (FILES / name for name in ("syncengine.service", "compose.yaml", "kubernetes.yaml"))
RESOURCES: list[dict[str, Any]] = list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))
CONTAINER: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["syncengine"]
PROBES = ("/healthz", "/readyz")


def resources(kind: str) -> list[dict[str, Any]]:
    return [resource for resource in RESOURCES if resource["kind"] == kind]


def pods() -> list[dict[str, Any]]:
    jobs = [job["spec"]["jobTemplate"] for job in resources("CronJob")]
    return [each["spec"]["template"]["spec"] for each in [*resources("Deployment"), *jobs]]


def settings_of_unit(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda it: f"{it['kind']}-{it['metadata']['name']}")
def test_kubernetes_resources_fit_the_published_schema(resource: dict[str, Any]) -> None:
    """It rejects a misspelt field; otherwise it would prove nothing."""
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**resource, "spek": {}}, kubernetes_validate.latest_version(), strict=True)


def test_the_compose_file_fits_the_published_schema() -> None:
    assert misfits("vendor.compose-spec", COMPOSE) == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize(
    "arguments", [["verify"], ["security", "--offline=yes", "--threshold=20"]], ids=lambda it: it[0]
)
def test_systemd_has_nothing_to_say_about_the_unit(arguments: list[str], tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8").replace("/opt/syncengine/bin/syncengine", "/bin/true")
    unit.write_text(text, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert arguments[0] == "security" or done.stdout + done.stderr == ""


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["containers"][0]["name"])
def test_a_pod_has_no_right_that_it_does_not_need(pod: dict[str, Any]) -> None:
    """No root, no writable root file system, no cluster token, and secrets only from the Secret."""
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == {"readOnlyRootFilesystem": True, **rights}
    assert "env" not in container
    assert container["envFrom"] == [{"secretRef": {"name": resources("Secret")[0]["metadata"]["name"]}}]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("job", resources("CronJob"), ids=lambda job: job["metadata"]["name"])
def test_a_job_never_runs_beside_itself(job: dict[str, Any]) -> None:
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0


def test_all_give_it_the_same_time_to_end() -> None:
    """It is more than `serve` takes, whatever a sink or the service does."""
    seconds = [settings_of_unit("TimeoutStopSec")[0], CONTAINER["stop_grace_period"].removesuffix("s")]
    seconds += [pod["terminationGracePeriodSeconds"] for pod in pods() if pod["containers"][0]["name"] != "drift"]
    assert set(map(int, seconds)) == {15}
    assert int(seconds[0]) > ENDS_WITHIN + LAST_LINES_SECONDS


def test_all_run_serve_and_ask_its_probes() -> None:
    """The unit listens where `serve` does unless told otherwise."""
    (line,) = settings_of_unit("ExecStart")
    (container,) = (each for pod in pods() for each in pod["containers"] if each["name"] == "serve")
    assert shlex.split(line)[1:] == ["serve"]
    assert ServeSection().listen == ("127.0.0.1", 8766)
    assert CONTAINER["command"] == container["args"] == ["serve", "--listen", "0.0.0.0:8766"]
    assert container["ports"] == [{"name": "probes", "containerPort": 8766}]
    asked = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert {each["port"] for each in asked} == {"probes"}
    by_compose = re.findall(r"127\.0\.0\.1:8766(/\w+)", " ".join(CONTAINER["healthcheck"]["test"]))
    assert {*by_compose, *(each["path"] for each in asked)} == set(PROBES)


def written(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".syncengine" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_serve_and_the_jobs_do_their_work(tmp_path: Path) -> None:
    """With a state in PostgreSQL and settings from the environment, `serve` answers its probes, writes only where the
    files allow it, and exits with 0 in time after SIGTERM. Each job then succeeds."""
    address = f"127.0.0.1:{unused_port()}"

    def answers(path: str) -> bool:
        try:
            return loopback.get(f"http://{address}{path}").status_code == 200
        except httpx.TransportError:
            return False

    with postgresql.running() as database, serving() as service:
        environ = {"SYNCENGINE_STATE": database.url(), "HOME": str(tmp_path / "home")}
        made = Project(tmp_path / "work", service.url, environ)
        deliver = "postedTime: {deliver: [{name: archive, jsonl: {path: .syncengine/time.jsonl}}]}"
        made.settings("state: {env: SYNCENGINE_STATE}", "serve: {every: 1s}", deliver)
        made.wants(tags=[tag("A")])
        (tmp_path / "home").mkdir()
        before = written(tmp_path)
        with made.start("serve", "--listen", address, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: all(map(answers, PROBES)))
                eventually(lambda: service.tags() == ["A"])
                process.send_signal(signal.SIGTERM)
                assert process.wait(15) == 0
            finally:
                process.kill()
        assert written(tmp_path) == before
        for job in resources("CronJob"):
            (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
            done = made.run(*container["args"])
            assert done.code == 0, done.err


def test_the_health_check_of_the_container_fails_while_nobody_answers(tmp_path: Path) -> None:
    word, *command = CONTAINER["healthcheck"]["test"]
    assert (word, command[0]) == ("CMD", "python")
    text = command[2].replace("8766", str(unused_port()))
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, check=False, cwd=tmp_path).returncode == 1
    assert "FROM python:" in (FILES.parents[1] / "Dockerfile").read_text(encoding="utf-8")
