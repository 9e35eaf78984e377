"""The deployment files fit their published schemas, and the commands in them start, answer probes and end."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
from tests.cli.program import PROGRAM, Project, tag
from tests.cli.service import Service, serving
from tests.packaging.checkers import misfits
from tests.serve.world import eventually
from tests.support import loopback
from tests.support.ports import unused_port

pytestmark = pytest.mark.slow

FILES = Path(__file__).parents[2] / "docs" / "deployment"
UNIT, COMPOSE, KUBERNETES = (FILES / name for name in ("syncengine.service", "compose.yaml", "kubernetes.yaml"))
RESOURCES: list[dict[str, Any]] = list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))
CONTAINER: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["syncengine"]
SERVE_ADDRESS = "0.0.0.0:8766"


def resources(kind: str) -> list[dict[str, Any]]:
    return [resource for resource in RESOURCES if resource["kind"] == kind]


def pods() -> list[dict[str, Any]]:
    """The pods of the Deployment and of the CronJobs."""
    jobs = [job["spec"]["jobTemplate"] for job in resources("CronJob")]
    return [each["spec"]["template"]["spec"] for each in [*resources("Deployment"), *jobs]]


def settings_of_unit(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)


# --- the files and published schemas


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda it: f"{it['kind']}-{it['metadata']['name']}")
def test_kubernetes_resources_fit_the_published_schema(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_the_schema_of_kubernetes_rejects_a_misspelt_field() -> None:
    """The schema rejects a misspelt field; otherwise the test above would prove nothing."""
    (deployment,) = yaml.safe_load_all(
        yaml.safe_dump(resources("Deployment")[0]).replace("readinessProbe", "readyProbe")
    )
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, kubernetes_validate.latest_version(), strict=True)


def test_the_compose_file_fits_the_published_schema() -> None:
    assert misfits("vendor.compose-spec", COMPOSE) == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize(
    "arguments", [["verify"], ["security", "--offline=yes", "--threshold=20"]], ids=lambda it: it[0]
)
def test_systemd_has_nothing_to_say_about_the_unit(arguments: list[str], tmp_path: Path) -> None:
    """systemd-analyze finds no wrong setting, and rates the exposure below its threshold."""
    unit = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8").replace("/opt/syncengine/bin/syncengine", "/bin/true")
    unit.write_text(text, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert arguments[0] == "security" or done.stdout + done.stderr == ""


# --- rules of our own for the files


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["containers"][0]["name"])
def test_a_pod_has_no_right_that_it_does_not_need(pod: dict[str, Any]) -> None:
    """No root, no writable root file system, no cluster token, and secrets only from the Secret."""
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
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


# --- the commands in the files


@dataclass(frozen=True)
class Deployed:
    """A command from a deployment file, with the paths of its probes."""

    arguments: list[str]
    alive: str
    ready: str
    seconds: float


def deployed(name: str) -> Deployed:
    """The command and the probes in one of the files."""
    if name == "unit":
        (line,) = settings_of_unit("ExecStart")
        (seconds,) = settings_of_unit("TimeoutStopSec")
        return Deployed(shlex.split(line)[1:], "/healthz", "/readyz", float(seconds))
    if name == "compose":
        (path,) = re.findall(r"127\.0\.0\.1:8766(/\w+)", " ".join(CONTAINER["healthcheck"]["test"]))
        return Deployed(CONTAINER["command"], path, "/readyz", 15.0)
    (pod,) = (pod for pod in pods() if pod["containers"][0]["name"] == "serve")
    (container,) = pod["containers"]
    assert container["ports"] == [{"name": "probes", "containerPort": int(SERVE_ADDRESS.rpartition(":")[2])}]
    alive, ready = (container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe"))
    assert {alive["port"], ready["port"], container["startupProbe"]["httpGet"]["port"]} == {"probes"}
    return Deployed(container["args"], alive["path"], ready["path"], float(pod["terminationGracePeriodSeconds"]))


@contextmanager
def project(folder: Path) -> Iterator[tuple[Project, Service]]:
    """A project with its state in PostgreSQL and, as in the files, settings from the environment."""
    with postgresql.running() as database, serving() as service:
        home = folder / "home"
        home.mkdir()
        made = Project(folder / "work", service.url, {"SYNCENGINE_STATE": database.url(), "HOME": str(home)})
        deliver = "postedTime: {deliver: [{name: archive, jsonl: {path: .syncengine/time.jsonl}}]}"
        made.settings("state: {env: SYNCENGINE_STATE}", "serve: {every: 1s}", deliver)
        made.wants(tags=[tag("A")])
        yield made, service


def answers(url: str) -> bool:
    try:
        return loopback.get(url).status_code == 200
    except httpx.TransportError:
        return False


def written(folder: Path) -> dict[str, bytes]:
    """All files outside of the writable folder."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".syncengine" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", ["unit", "compose", "kubernetes"])
def test_it_starts_answers_its_probes_and_ends(name: str, tmp_path: Path) -> None:
    """The command writes only where the file allows it, and exits with 0 in time after SIGTERM."""
    command = deployed(name)
    with project(tmp_path) as (made, service):
        before = written(tmp_path)
        address = f"127.0.0.1:{unused_port()}"
        arguments = [address if argument == SERVE_ADDRESS else argument for argument in command.arguments]
        if SERVE_ADDRESS not in command.arguments:
            assert ServeSection().listen == ("127.0.0.1", 8766)
            arguments += ["--listen", address]
        with (tmp_path / ".syncengine.log").open("w") as log:
            process = subprocess.Popen(
                [*PROGRAM, *arguments], cwd=made.folder, env=made.surroundings(), stdout=log, stderr=log
            )
        try:
            eventually(lambda: answers(f"http://{address}{command.alive}"))
            eventually(lambda: answers(f"http://{address}{command.ready}"))
            eventually(lambda: service.tags() == ["A"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(command.seconds) == 0
        finally:
            process.kill()
            process.wait()
        after = {path: content for path, content in written(tmp_path).items() if path != ".syncengine.log"}
        assert after == before


@pytest.mark.parametrize("job", resources("CronJob"), ids=lambda job: job["metadata"]["name"])
def test_the_command_of_a_job_succeeds(job: dict[str, Any], tmp_path: Path) -> None:
    """Against an existing state without changes, the job's command exits with 0."""
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    with project(tmp_path) as (made, _):
        made.settle(tags=[tag("A")])
        done = made.run(*container["args"])
    assert done.code == 0, done.err


def test_the_health_check_of_the_container_fails_while_nobody_answers(tmp_path: Path) -> None:
    """The health check fails while nobody answers, and the image has the program that it calls."""
    word, *command = CONTAINER["healthcheck"]["test"]
    assert (word, command[0]) == ("CMD", "python")
    text = command[2].replace("8766", str(unused_port()))
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, check=False, cwd=tmp_path).returncode == 1
    assert "FROM python:" in (FILES.parents[1] / "Dockerfile").read_text(encoding="utf-8")
