"""`apply` prints each warning once, and its result last."""

from __future__ import annotations

from .program import Project


def test_a_warning_is_said_once_and_the_result_last(project: Project) -> None:
    """The plan shows the warning, so the report of `apply` does not repeat it in text; in JSON it does."""
    project.wants(tags=[{"name": "Alpha", "keywords": ["same word"]}, {"name": "Beta", "keywords": ["same word"]}])
    done = project.run("apply", "-y")
    assert done.code == 0
    assert (done.out + done.err).count("warning[same-keyword]") == 1
    assert done.out.rstrip().splitlines()[-1].startswith("Applied 2 changes.")
    again = project.apply("--reassert")
    assert again.codes == ["same-keyword"]


def test_a_refused_apply_does_not_say_that_there_are_no_problems(project: Project) -> None:
    project.wants(tags=[{"name": "Alpha", "category": "nowhere"}])
    done = project.run("apply", "-y")
    assert (done.code, "No problems found" in done.out + done.err) == (8, False)
