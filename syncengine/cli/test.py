"""test: run the tests of rules and manifests, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import output_format
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError
from syncengine.render.rule_tests import TEST_FORMATS


@click.command(cls=Command, epilog="syncengine test policies --format junit\n# test results for the page of a CI job")
@click.argument("paths", nargs=-1, shell_complete=files)
@output_format(*TEST_FORMATS)
@with_globals
def test(options: Globals, paths: Sequence[str], format: str) -> int:
    """Run the tests of rules, manifests and templates, offline; exit 1 when one fails.

    Tests are listed under `tests:` in rule files. With PATHS (files or folders of rules), only the tests there are run,
    against the rules in PATHS and those of the project.
    """
    from syncengine.rules.read import rule_set
    from syncengine.tools.rule_tests import run_tests

    output = Output(options, options.folder)
    try:
        project = options.project()
        output = Output(options, project.root)
        chosen = relative_paths(paths, options.folder, project.root)
        rules = rule_set(project, [project.root / path for path in chosen])
        tests = [test for test in rules.tests if not chosen or _is_in(test.file, chosen)]
        results = tuple(run_tests(project, rules, tests))
    except SyncengineError as error:
        return output.refusal(error, "json" if format == "json" else "text")
    output.data(TEST_FORMATS[format](results, output.look()))
    return ExitCode.DONE if all(result.passes for result in results) else ExitCode.ERROR


def _is_in(file: str, paths: Sequence[str]) -> bool:
    return any(Path(file).is_relative_to(path) for path in paths)
