"""As many things in programs that people would use instead: `python -m trials.bench.peers --sizes 1_000,10_000`.

Each makes its things for the first time: it plans them, applies the plan, and plans again with nothing changed, all in
one run. Terraform has `terraform_data` resources with the fields of a tag, octoDNS TXT records that are a tenth as
large, from YAML into YAML: neither talks to a service. A program that is not on PATH is left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trials.bench.__main__ import numbers
from trials.bench.estate import Estate
from trials.bench.measure import SYNCENGINE, run, served
from trials.bench.table import machine

OCTODNS = """\
manager: {max_workers: 2}
providers:
  from: {class: octodns.provider.yaml.YamlProvider, directory: from, enforce_order: false}
  to: {class: octodns.provider.yaml.YamlProvider, directory: to, enforce_order: false}
zones: {example.com.: {sources: [from], targets: [to]}}
"""


class Program(NamedTuple):
    """A program, how its things are written into a folder, and its commands: set-up, plan, apply."""

    name: str
    command: str
    write: Callable[[Path, int], None]
    begin: tuple[str, ...]
    plan: tuple[str, ...]
    apply: tuple[str, ...]


class Seconds(NamedTuple):
    """Wall seconds of the first plan, of its apply, and of a plan with nothing to do."""

    plan: float
    apply: float
    no_change: float


def terraform(folder: Path, size: int) -> None:
    """One resource for each tag."""
    things = {f"m{n}": {"input": fields(n)} for n in range(size)}
    (folder / "main.tf.json").write_text(json.dumps({"resource": {"terraform_data": things}}), encoding="utf-8")


def octodns(folder: Path, size: int) -> None:
    """One record for each tag."""
    (folder / "config.yaml").write_text(OCTODNS, encoding="utf-8")
    for name in ("from", "to"):
        (folder / name).mkdir()
    records = "".join(f"m{n}: {{type: TXT, value: EP {n:07} B1}}\n" for n in range(size))
    (folder / "from" / "example.com.yaml").write_text("---\n" + records, encoding="utf-8")
    (folder / "to" / "example.com.yaml").write_text("--- {}\n", encoding="utf-8")


def fields(n: int) -> dict[str, object]:
    """The fields that a tag of the estate has."""
    return {
        "name": f"M-{n:07}",
        "description": f"Opposition against EP {n:07}, a matter of some length with words that people would write",
        "keywords": [f"EP {n:07} B1", f"matter {n:07} file", f"docket {n:07}/2026"],
        "metadata": {"Client": f"ACME Holding Corporation {n:07}", "Billing Group": "billable"},
        "externalId": str(n),
        "url": f"https://pms.example.com/matters/{n:07}/overview",
        "visibility": "PUBLIC",
    }


def programs(base_url: str) -> list[Program]:
    """Those that are here, ours first."""
    sync = ("octodns-sync", "--config-file", "config.yaml")
    all_of_them = [
        Program("syncengine", SYNCENGINE[0], lambda folder, size: Estate(folder, base_url).holds(0, size), (),
                (*SYNCENGINE, "plan", "--out", "p.json"), (*SYNCENGINE, "apply", "p.json")),
        Program("Terraform", "terraform", terraform, ("terraform", "init", "-input=false"),
                ("terraform", "plan", "-out=p"), ("terraform", "apply", "-auto-approve", "p")),
        Program("octoDNS", "octodns-sync", octodns, (), sync, (*sync, "--doit")),
    ]  # fmt: skip
    return [program for program in all_of_them if shutil.which(program.command)]


def measured(program: Program, size: int) -> Seconds:
    """A new project, from its first plan on."""
    with tempfile.TemporaryDirectory(prefix="syncengine-peers-") as place:
        folder = Path(place)
        program.write(folder, size)
        if program.begin:
            run(folder, *program.begin)
        return Seconds(*(run(folder, *command).seconds for command in (program.plan, program.apply, program.plan)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trials.bench.peers")
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000], metavar="N,N,…")
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    on = machine()
    print(f"Machine: {on['cpu']}, {on['cores']} cores, Python {on['python']}\n")
    print("| program | things | plan | apply | plan, no change |\n|---|---|---|---|---|", flush=True)
    with served() as base_url:
        for size in options.sizes:
            for program in programs(base_url):
                if program.name not in options.without:
                    seconds = " | ".join(f"{each:.2f} s" for each in measured(program, size))
                    print(f"| {program.name} | {size:,} | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
