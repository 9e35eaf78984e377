"""The wheel in a fresh environment, with only the packages that its metadata requires.

The distribution is not named like its import package, since that name is another project's on the package index.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from syncengine import DISTRIBUTION, __version__
from syncengine.render.schemas import schemas

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILT = ("pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"


def test_the_installed_package_is_the_one_that_messages_name() -> None:
    """Its extra `[postgresql]`, which error messages name, installs psycopg."""
    installed = distribution(DISTRIBUTION)
    assert (installed.name, installed.version) == (DISTRIBUTION, __version__)
    (command,) = installed.entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("syncengine", "syncengine.__main__:main")
    requirements = map(Requirement, installed.requires or ())
    brought = {each.name for each in requirements if each.marker and each.marker.evaluate({"extra": "postgresql"})}
    assert brought == {"psycopg"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and its requirements, which are links to installed packages."""
    folder = tmp_path_factory.mktemp("wheel")
    fresh = folder / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], check=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(fresh)}))
    with zipfile.ZipFile(_wheel(folder)) as wheel:
        wheel.extractall(packages)
    (installed,) = Distribution.discover(path=[str(packages)])
    for needed in _require([(installed, set())], {}).values():
        for name in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
            (packages / name).symlink_to(Path(str(needed.locate_file(name))))
    return fresh / "bin" / "python"


def _wheel(folder: Path) -> Path:
    source, out = folder / "source", folder / "out"
    shutil.copytree(ROOT / "syncengine", source / "syncengine", ignore=shutil.ignore_patterns("__pycache__"))
    for name in BUILT:
        shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=source, check=True, capture_output=True)
    (wheel,) = out.iterdir()
    assert wheel.name == f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
    return wheel


def _require(requirers: list[tuple[Distribution, set[str]]], found: dict[str, Distribution]) -> dict[str, Distribution]:
    """All distributions that these ones need with their extras, by name, added to `found`."""
    for installed, extras in requirers:
        for requirement in map(Requirement, installed.requires or ()):
            name = canonicalize_name(requirement.name)
            marker = requirement.marker
            if name not in found and (not marker or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})):
                found[name] = distribution(name)
                _require([(found[name], requirement.extras)], found)
    return found


def run(python: Path, folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "syncengine", *arguments]
    environ |= {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_it_does_its_work(python: Path, tmp_path: Path) -> None:
    """The package contains templates, examples and schemas, and its metadata names every import."""
    for arguments in (
        *("--version", "init", "schema -o there", "sandbox --help", "apply --sandbox -y", "serve --help"),
        *("time preview --sample", "time inbox", "plan --sandbox --detailed-exitcode"),
    ):
        done = run(python, tmp_path, *arguments.split())
        assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "there").iterdir()} == schemas().keys()
    assert run(python, tmp_path, "--version").stdout == f"syncengine {__version__}\n"


def test_it_has_every_module_and_every_file(python: Path, tmp_path: Path) -> None:
    """Styles and scripts of pages, too; and each module can be imported."""
    installed = Path(subprocess.check_output([str(python), "-c", WHERE], cwd=tmp_path, text=True).strip())
    assert not installed.is_relative_to(ROOT)
    assert _files(installed) == _files(ROOT / "syncengine")
    subprocess.run([str(python), "-c", IMPORTS], cwd=tmp_path, check=True, timeout=60)


WHERE = "import pathlib, syncengine; print(pathlib.Path(syncengine.__file__).parent)"
IMPORTS = """
import importlib, pkgutil, syncengine
for module in pkgutil.walk_packages(syncengine.__path__, "syncengine."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def _files(package: Path) -> set[str]:
    found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(package).as_posix() for path in found}


def test_a_missing_driver_is_named_by_the_line_to_type(python: Path, tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "syncengine.yaml").write_text("version: 1\nsources: {pms: {sql: {env: PMS}}}\n")
    block = "generate: [{forEach: {sql: {source: pms, query: SELECT 1}}, tags: [{name: A}]}]\n"
    (tmp_path / "manifests" / "a.yaml").write_text(block)
    done = run(python, tmp_path, "plan", "--sandbox", PMS="postgresql://127.0.0.1:1/pms")
    assert done.returncode == 8
    assert "pip install 'syncengine-connect[postgresql]'" in done.stderr
