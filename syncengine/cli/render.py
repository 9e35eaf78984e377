"""render: print the manifests with templates and defaults applied."""

from __future__ import annotations

from collections.abc import Sequence

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import output_format
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output
from syncengine.document.gc_pause import no_collection
from syncengine.errors import ExitCode, SyncengineError


@click.command(
    cls=Command,
    epilog="syncengine render manifests/matters.yaml\n# one manifest with templates and defaults applied",
)
@click.argument("paths", nargs=-1, shell_complete=files)
@output_format("yaml", "json")
@with_globals
@no_collection()
def render(options: Globals, paths: Sequence[str], format: str) -> int:
    """Print the manifests with templates and defaults applied, as one manifest. PATHS limit the output."""
    from syncengine.manifest.desired import load
    from syncengine.plan.request import Scope
    from syncengine.render.manifest import manifest_json, manifest_yaml

    output = Output(options, options.folder)
    try:
        project = options.project()
        output = Output(options, project.root)
        scope = Scope(paths=relative_paths(paths, options.folder, project.root))
        desired = load(project)
    except SyncengineError as error:
        return output.refusal(error, "json" if format == "json" else "text")
    resources = [r for r in desired.resources.values() if scope.selects((r.key, r.source))]
    removals = [r for r in desired.removed.values() if scope.selects((r.key, r.source))]
    output.data((manifest_json if format == "json" else manifest_yaml)(resources, removals))
    return ExitCode.DONE
