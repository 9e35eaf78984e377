"""Addresses that contain glob characters: the exact address of a resource selects only that resource."""

from __future__ import annotations

import pytest

from .program import Project, tag

ODD = "tag/A[1]"


def described(text: str) -> list[dict[str, object]]:
    return [tag(name, description=text) for name in ("A[1]", "A1", "B?", "Bx")]


@pytest.fixture
def changed(project: Project) -> Project:
    """Four tags are applied, and the manifest now changes their descriptions."""
    project.settle(tags=described("old"))
    project.wants(tags=described("new"))
    return project


def addresses(project: Project, *words: str) -> set[str]:
    """The addresses in a command's JSON output."""
    document = project.run(*words, "--format", "json").document
    return {each["address"] for each in document.get("changes", document.get("results", document.get("resources")))}


@pytest.mark.parametrize(("address", "other"), [(ODD, "tag/A1"), ("tag/B?", "tag/Bx")])
def test_a_plan_selects_the_resource_of_that_name(changed: Project, address: str, other: str) -> None:
    assert addresses(changed, "plan", "--target", address) == {address}
    assert address not in addresses(changed, "plan", "--exclude", address)
    assert other in addresses(changed, "plan", "--exclude", address)


def test_an_address_of_no_resource_selects_as_a_glob(changed: Project) -> None:
    assert addresses(changed, "plan", "--target", "tag/[AB]?") == {"tag/A1", "tag/B?", "tag/Bx"}


def test_all_commands_select_the_resource_of_that_name(changed: Project) -> None:
    """`show`, `state list`, `apply --exclude` and an undo, which selects nothing that its run did not change."""
    changed.run("plan", "--out", "saved.plan")
    assert addresses(changed, "show", "saved.plan", "--target", ODD) == {ODD}
    assert addresses(changed, "state", "list", ODD) == {ODD}
    assert addresses(changed, "apply", "-y", "--exclude", ODD) == {"tag/A1", "tag/B?", "tag/Bx"}
    assert addresses(changed, "plan", "--undo", "last", "--target", ODD) == set()
    assert addresses(changed, "plan", "--undo", "last", "--target", "tag/A1") == {"tag/A1"}
