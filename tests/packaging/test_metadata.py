"""The distribution is not named like its import package, since that name is another project's on the package index."""

from __future__ import annotations

from importlib.metadata import distribution

from packaging.requirements import Requirement

from syncengine import DISTRIBUTION, __version__


def test_the_installed_package_is_the_one_that_messages_name() -> None:
    installed = distribution(DISTRIBUTION)
    assert (installed.name, installed.version) == (DISTRIBUTION, __version__)
    (command,) = installed.entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("syncengine", "syncengine.__main__:main")


def test_the_extra_for_postgresql_brings_the_driver() -> None:
    """The extra `[postgresql]`, which error messages name, installs psycopg."""
    requirements = map(Requirement, distribution(DISTRIBUTION).requires or ())
    brought = {each.name for each in requirements if each.marker and each.marker.evaluate({"extra": "postgresql"})}
    assert brought == {"psycopg"}
