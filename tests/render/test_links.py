"""Web addresses of manifest lines, from the project file's template or else from the variables of the CI service."""

from __future__ import annotations

import pytest

from syncengine.render.style import Links, links_of

GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/tags", "GITHUB_SHA": "c0ffee"}
GITLAB = {"CI_PROJECT_URL": "https://gitlab.com/acme/tags", "CI_COMMIT_SHA": "c0ffee"}
OWN = "https://git.example.com/{commit}/{file}?line={line}"


@pytest.mark.parametrize(
    ("blob", "environ", "address"),
    [
        (None, GITHUB, "https://github.com/acme/tags/blob/2ee3b2c/a.yaml#L7"),
        (None, GITLAB, "https://gitlab.com/acme/tags/-/blob/2ee3b2c/a.yaml#L7"),
        (OWN, GITHUB, "https://git.example.com/2ee3b2c/a.yaml?line=7"),
        (None, {}, ""),
        (None, {"GITHUB_SERVER_URL": "https://github.com"}, ""),
        (None, GITHUB | {"GITHUB_SERVER_URL": "javascript:alert(1)//"}, ""),
    ],
)
def test_a_line_has_an_address(blob: str | None, environ: dict[str, str], address: str) -> None:
    assert links_of(blob, environ).at("2ee3b2c").line("a.yaml", 7) == address


def test_a_plan_without_a_commit_links_to_the_commit_of_the_ci_run() -> None:
    assert links_of(None, GITHUB).at(None).line("a.yaml", 7) == "https://github.com/acme/tags/blob/c0ffee/a.yaml#L7"
    assert links_of(OWN, {}).at(None).line("a.yaml", 7) == ""


@pytest.mark.parametrize("file", ['"><script>', "{line}", "a b#?.yaml", "ä\n::error::"])
def test_a_file_cannot_leave_its_place_in_the_address(file: str) -> None:
    address = Links("https://h/{commit}/{file}#L{line}", "c").line(file, 7)
    assert address.startswith("https://h/c/")
    assert address.endswith("#L7")
    assert not set('"<> {}\n?') & set(address)
