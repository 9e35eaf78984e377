"""A warning is said once, and the last word is the result."""

from __future__ import annotations

from .program import Project


def test_a_warning_is_said_once_and_the_result_last(project: Project) -> None:
    """By `apply`, whose plan has said it; in the machine's report it stands too."""
    project.wants(tags=[{"name": "Alpha", "keywords": ["same word"]}, {"name": "Beta", "keywords": ["same word"]}])
    done = project.run("apply", "-y")
    assert done.code == 0
    assert (done.out + done.err).count("warning[same-keyword]") == 1
    assert done.out.rstrip().splitlines()[-1].startswith("Applied 2 changes.")
    again = project.apply("--reassert")
    assert again.codes == ["same-keyword"]


def test_an_apply_that_is_refused_without_warnings_says_its_error_alone(project: Project) -> None:
    """Its error is all that it prints."""
    project.wants(tags=[{"name": "Alpha", "category": "nowhere"}])
    done = project.run("apply", "-y")
    assert (done.code, "No problems found" in done.out + done.err) == (8, False)
