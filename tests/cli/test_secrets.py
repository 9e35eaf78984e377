"""The API key is in no output and no file. Each process that a test runs is also checked for it when it ends."""

from __future__ import annotations

import pytest

from .program import Project, tag
from .service import AT_ONCE, KEY, Service


@pytest.mark.parametrize("status", [400, 401, 503])
def test_a_key_repeated_by_the_service_is_masked(project: Project, service: Service, status: int) -> None:
    """It is masked in messages, reports, history and state, even with `-v` (docs/planning.md 4.11)."""
    service.fault("upsertTags", status=status, headers=AT_ONCE, times=None, body={"message": f"bad key {KEY}"})
    project.wants(tags=[tag("NEW-1")])
    done = project.run("apply", "-y", "-v", "--report", "json=report.json", "--report", "markdown=REPORT.md")
    assert done.code == (7 if status == 401 else 3)
    assert "bad key ***" in done.out + done.err
    assert [name for name, content in project.files().items() if KEY.encode() in content] == []


def test_neither_plan_nor_log_nor_state_holds_the_key(project: Project) -> None:
    """No file of an undisturbed run with all its reports contains the key."""
    project.wants(tags=[tag("NEW-1")])
    assert project.run("plan", "-v", "--out", "saved.plan", "--report", "html=plan.html").code == 0
    assert project.run("-v", "--log-format", "json", "apply", "saved.plan", "--report", "json=report.json").code == 0
    assert [name for name, content in project.files().items() if KEY.encode() in content] == []


@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_a_key_in_the_project_file_is_refused_without_being_shown(project: Project, command: str) -> None:
    """It would stay in the Git history (docs/project-file.md)."""
    file = project.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("{env: SYNCENGINE_API_KEY}", KEY))
    project.wants(tags=[tag("NEW-1")])
    done = project.run(command, *(["-y"] if command == "apply" else []))
    assert (done.code, "syncengine.yaml:4:" in done.out + done.err) == (8, True)
    assert "apiKey" in done.out + done.err


PASSWORDS = (
    "Winter@2026!",
    "Win/t@2026",
    "Win#t@2026",
    "a:2026",
    "%402026",
)
COMMANDS = (
    ("plan",),
    ("apply", "-y"),
    ("state", "list"),
    ("plan", "--format", "json"),
)


@pytest.mark.parametrize(
    ("password", "command"),
    [*((each, COMMANDS[0]) for each in PASSWORDS), *((PASSWORDS[0], each) for each in COMMANDS[1:])],
)
def test_no_part_of_a_databases_password_is_shown(project: Project, password: str, command: tuple[str, ...]) -> None:
    """This holds wherever the password is in the URL, even if a parser takes a part of it for the host."""
    project.wants(tags=[tag("NEW-1")])
    for url in (
        f"postgresql://app:{password}@127.0.0.1:1/x",
        f"postgresql://app@127.0.0.1:1/x?password={password.replace('#', '')}",
        f"postgresql://app@127.0.0.1:1/x?Password={password.replace('#', '')}",
    ):
        done = project.run(*command, environ={"SYNCENGINE_STATE": url})
        assert done.code == 1
        assert "2026" not in done.out + done.err
        assert "Win" not in done.out + done.err


def test_an_unescaped_at_sign_in_a_password_is_reported_with_the_cure(project: Project) -> None:
    """The message shows neither the password nor the host, which may be a part of it."""
    done = project.run("plan", environ={"SYNCENGINE_STATE": "postgresql://app:Winter@2026!@db.example.com/x"})
    assert (done.code, "postgresql://app:***@…" in done.err, "%40" in done.err) == (1, True, True), done.err
