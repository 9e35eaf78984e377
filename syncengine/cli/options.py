"""Define the global options, which every command takes before or after its name, and load the project they name."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from syncengine.cli.help import GlobalOption
from syncengine.cli.option_types import environments, files, folders
from syncengine.cli.streams import GONE
from syncengine.document.text import as_word
from syncengine.errors import Usage

if TYPE_CHECKING:
    from syncengine.project.git_tree import RevisionFiles
    from syncengine.project.model import Checkout, Project

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """The global options. `None` or an empty tuple means that an option was not given."""

    directory: str | None = None
    config: str | None = None
    sandbox: bool | None = None
    environment: str | None = None
    variables: tuple[str, ...] = ()
    variable_files: tuple[str, ...] = ()
    no_color: bool | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    debug: bool | None = None
    log_format: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Globals:
        """Return the global options among click's parsed `values`."""
        if values.get("directory"):
            values = {**values, "directory": os.path.join(*values["directory"])}  # noqa: PTH118 - keeps `./` and `..`
        return cls(**{field.name: values[field.name] for field in fields(cls) if values.get(field.name)})

    def over(self, others: Globals) -> Globals:
        """Return these options merged over `others`. A folder is relative to that of `others`, as in Git."""
        mine, theirs = (
            {name: value for name, value in asdict(each).items() if value not in (None, ())} for each in (self, others)
        )
        if self.directory and others.directory:
            mine["directory"] = os.path.join(others.directory, self.directory)  # noqa: PTH118 - as above
        return Globals(**{**theirs, **mine})

    @property
    def folder(self) -> Path:
        return Path(self.directory or ".")

    def place(self) -> str:
        """Return the options that name the project, quoted for a shell.

        Values of `--var` may be secret, and are left out: such a command is refused until they are written again.
        """
        flags = {"-C": self.directory, "--config": self.config, "--env": self.environment}
        words = [word for flag, value in flags.items() if value for word in (flag, value)]
        words += ["--sandbox"] if self.sandbox else []
        words += [word for file in self.variable_files for word in ("--var-file", file)]
        words += [word for text in self.variables for word in ("--var", text.partition("=")[0])]
        return "".join(f" {as_word(word)}" for word in words)

    def project_at(self, files: RevisionFiles) -> Project:
        """Load the project from the files of a Git revision. Variable files missing there are skipped."""
        paths = []
        for name in self.variable_files:
            path = Path(os.path.relpath((self.folder / name).resolve(), files.repo.top))
            files.bring(path.as_posix())
            paths.append(self.folder / name if ".." in path.parts else files.to / path)
        config = files.checkout.folder / Path(self.config).name if self.config else None
        return self._load(
            files.repo.root,
            config if config and config.exists() else None,
            (path for path in paths if path.exists()),
            files.checkout,
        )

    def refuse_no_folder(self) -> None:
        """Raise a usage error when the folder of `-C`, or the one that it is relative to, does not exist."""
        self.refuse_gone_folder()
        try:
            if self.folder.is_dir():
                return
            trouble = "not a folder" if self.folder.exists() else "no such folder"
        except OSError as error:
            trouble = error.strerror or "cannot be read"
        raise Usage(f"{self.folder}: {trouble}")

    def refuse_gone_folder(self) -> None:
        """Raise a usage error when paths are relative to a folder that was deleted."""
        if not self.folder.is_absolute():
            try:
                Path.cwd()
            except FileNotFoundError:
                raise Usage(GONE) from None

    def project(self) -> Project:
        """Load the project that these options name."""
        from syncengine.manifest.files import where_to_go
        from syncengine.project.files import refuse_missing
        from syncengine.project.load import project_folder
        from syncengine.project.model import FILE_NAME
        from syncengine.project.references import setting_problem

        self.refuse_no_folder()
        place = self.folder if self.config else project_folder(self.folder)
        if not self.config and not any(os.path.lexists(place / name) for name in (FILE_NAME, "manifests")):
            message = f"this folder has neither {FILE_NAME} nor manifests/{where_to_go(place)}"
            raise setting_problem("no-project", message)
        for name in (*([self.config] if self.config else ()), *self.variable_files):
            refuse_missing(self.folder / name, name)
        files = (self.folder / name for name in self.variable_files)
        return self._load(place, self.folder / self.config if self.config else None, files)

    def _load(
        self, folder: Path, config: Path | None, variable_files: Iterable[Path], checkout: Checkout | None = None
    ) -> Project:
        from syncengine.manifest.lints import LINTS
        from syncengine.plan.checks import LINTS as PLANNING_LINTS
        from syncengine.project.load import load_project
        from syncengine.service.operations import OPERATIONS

        variables = {name: value for name, _, value in (text.partition("=") for text in self.variables)}
        for text in self.variables:
            if text.partition("=")[0] in ("", text):
                raise click.UsageError(f"--var {text!r}: write NAME=VALUE, such as team=patents")
        return load_project(
            folder=folder,
            config=config,
            checkout=checkout,
            environment=self.environment,
            environ=os.environ,
            sandbox=bool(self.sandbox),
            variables=variables,
            variable_files=variable_files,
            operations=OPERATIONS,
            lints=LINTS.keys() | PLANNING_LINTS,
        )


_option = partial(click.option, cls=GlobalOption)

OPTIONS = (
    _option(
        "-C",
        "directory",
        metavar="DIR",
        multiple=True,
        help="Run in this folder; all relative paths start there.",
        shell_complete=folders,
    ),
    _option("--config", metavar="FILE", help="The project file (default: syncengine.yaml).", shell_complete=files),
    _option("--sandbox", is_flag=True, default=None, help="Use the embedded service, with its own state."),
    _option(
        "--env",
        "environment",
        metavar="NAME",
        help="Use this environment of the project file.",
        shell_complete=environments,
    ),
    _option("--var", "variables", metavar="NAME=VALUE", multiple=True, help="Set a variable for templates."),
    _option(
        "--var-file",
        "variable_files",
        metavar="FILE",
        multiple=True,
        help="Set variables from a YAML file.",
        shell_complete=files,
    ),
    _option(
        "--no-color",
        is_flag=True,
        default=None,
        help="No colour, as with NO_COLOR; FORCE_COLOR asks for colour without a terminal.",
    ),
    _option("-q", "--quiet", is_flag=True, default=None, help="Hide progress and notes."),
    _option("-v", "--verbose", is_flag=True, default=None, help="List every change; fold nothing."),
    _option("--debug", is_flag=True, default=None, help="Trace requests to the service, without keys and bodies."),
    _option("--log-format", type=click.Choice(["text", "json"]), help="Format of messages on stderr."),
)


def global_options(command: F) -> F:
    """Add the global options to a command, whose function takes them as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def group_with_globals(group: Callable[[], None]) -> Callable[..., None]:
    """Add the global options to a group of commands, which get them merged over those before its name."""

    @wraps(group)
    @click.pass_context
    def wrapped(ctx: click.Context, /, **options: object) -> None:
        ctx.meta[Globals.__qualname__] = globals_of(ctx, options)

    return global_options(wrapped)


def globals_of(ctx: click.Context, values: Mapping[str, Any]) -> Globals:
    """Return the global options among `values`, merged over those before the command's name."""
    return Globals.of(values).over(ctx.meta.get(Globals.__qualname__, Globals()))


CREATES_FOLDER = frozenset({"init"})
"""The commands that need no existing folder for `-C`."""


def collect_rarely() -> None:
    """Turn on the garbage collector, which is off from the start, for a command that makes cycles by its many calls.

    It runs rarely, since there are few cycles among very many long-lived values, and passes over what is there now.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # with the default of 700 it takes a quarter of the time of a large plan
    gc.enable()


def with_globals(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the global options to a command. Its function gets them, merged over the program's, as `options`."""

    @wraps(command)
    @click.pass_context
    def wrapped(ctx: click.Context, /, **arguments: Any) -> Any:
        names = {field.name for field in fields(Globals)}
        options = globals_of(ctx, {name: arguments.pop(name, None) for name in names})
        if ctx.info_name in CREATES_FOLDER:
            options.refuse_gone_folder()
        else:
            options.refuse_no_folder()
        if options.debug:
            from syncengine.cli.streams import tell_as_json, tell_as_text, trace_requests

            trace_requests(tell_as_json if options.log_format == "json" else tell_as_text)
        return command(options=options, **arguments)

    return global_options(wrapped)


def relative_paths(paths: Sequence[str], folder: Path, root: Path) -> tuple[str, ...]:
    """Return PATHS relative to the project's folder. Raise a usage error for a path that is missing or outside it."""
    chosen = []
    for path in paths:
        place = Path(os.path.realpath(folder / path))  # `resolve` fails at a link that leads to itself
        if not place.exists():
            is_other = (folder / path).exists()  # such as a pipe, which has no place of its own
            raise click.UsageError(f"{path}: {'not a file or folder' if is_other else 'no such file or folder'}")
        if not place.is_relative_to(root.resolve()):
            raise click.UsageError(f"{path}: outside the project's folder {root}")
        chosen.append(place.relative_to(root.resolve()).as_posix())
    return tuple(chosen)
