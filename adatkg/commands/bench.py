"""`adatkg bench`: the benchmarks, each beside its limit; below it, how accurate a configuration is over seeds."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from typer.core import TyperGroup

import adatkg
from adatkg.commands.bench_accuracy import accuracy
from adatkg.console.output import JsonFlag, print_json, stdout
from adatkg.console.progress import progress_bar
from adatkg_core.errors import AdatkgError, InputError

# What they are called in the installed package, and in a checkout, from which that package is made.
PLACE = Path(adatkg.__file__).parents[1]
PACKAGES = ("adatkg_benchmarks", "benchmarks")
_LAST = 5  # lines of what a benchmark said before it failed


@dataclass(frozen=True)
class Benchmark:
    """A figure, its limit, and the module that measures it."""

    name: str
    source: Path
    unit: str
    bound: str
    limit: float
    short: bool = False  # it takes seconds

    @property
    def about(self) -> str:
        """The first paragraph of its module's docstring, read without importing it and torch."""
        text = ast.get_docstring(ast.parse(self.source.read_text("utf-8"))) or ""
        return " ".join(text.partition("\n\n")[0].split())

    @property
    def shown_limit(self) -> str:
        """The limit in words."""
        return f"{'at least' if self.bound == 'min' else 'at most'} {shown(self.limit, self.unit)}"


class BenchGroup(TyperGroup):
    """`adatkg bench [NAME]…` measures speed, as it always did; what is not a command is taken for such a name."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        if not {"-h", "--help"}.intersection(args[:1]) and (not args or args[0] not in self.commands):
            args = ["speed", *args]
        return super().parse_args(context, args)


group = typer.Typer(
    cls=BenchGroup,
    help="Measure speed on this machine (as `adatkg bench NAME` too), or accuracy over seeds.",
    epilog="Examples: adatkg bench speed late_to_early_cost_per_fact; adatkg bench accuracy icews14 --work runs",
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    group.command("speed", epilog="Example: adatkg bench speed late_to_early_cost_per_fact --json")(speed)
    group.command("accuracy", epilog="Example: adatkg bench accuracy icews14 --seeds 1,2,3 --work runs --json")(
        accuracy
    )
    app.add_typer(group, name="bench")


def bench_names(incomplete: str) -> list[str]:
    """For a shell to complete."""
    return [name for name in benchmarks() if name.startswith(incomplete)]


def speed(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Only these. [default: all]", autocompletion=bench_names),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Only those that take seconds: two minutes for all.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is and run nothing.")] = False,
    json: JsonFlag = False,
) -> None:
    """Measure speed on this machine beside its limits; fails when one does not hold.

    Each figure stands beside the rate of matrix products in the same run, because machines differ. Run it alone on an
    idle machine; all of them take eight minutes.
    """
    known = benchmarks()
    for name in names or []:
        if name not in known:
            raise InputError(f"benchmark {name}: there is none; give one or more of {', '.join(known)}")
    chosen = [known[name] for name in names or known if known[name].short or not short]
    if list_:
        _list(chosen, json)
        return
    results: dict[Benchmark, dict[str, Any]] = {}
    with progress_bar() as report:
        for one in chosen:
            report(one.name, len(results), len(chosen))
            if one not in results:
                results |= _run([other for other in chosen if other.source == one.source])
    if json:
        print_json({"benchmarks": list(results.values())})
    else:
        _show(results)
    raise typer.Exit(0 if all(result["ok"] for result in results.values()) else 1)


def benchmarks() -> dict[str, Benchmark]:
    """All that there are, in the order in which they run."""
    folders = [PLACE / name for name in PACKAGES]
    folder = next((folder for folder in folders if (folder / "limits.json").is_file()), None)
    if folder is None:
        raise AdatkgError("this installation lacks the benchmarks: install adatkg anew, or run it from a checkout")
    return {
        name: Benchmark(name, folder / f"{limit.pop('module')}.py", **limit)
        for name, limit in orjson.loads((folder / "limits.json").read_bytes()).items()
    }


def _run(some: list[Benchmark]) -> dict[Benchmark, dict[str, Any]]:
    """What one module tells, in a process of its own: none shall feel what another left behind."""
    source = some[0].source
    # -P: a folder of this name where the command runs is not what is meant.
    command = [sys.executable, "-P", "-m", f"{source.parent.name}.{source.stem}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [orjson.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name":')]
    told = {line["name"]: line for line in lines}
    for one in some:
        if one.name not in told:
            said = " | ".join((done.stdout + done.stderr).strip().splitlines()[-_LAST:])
            raise AdatkgError(f"benchmark {one.name}: ended with code {done.returncode} and no figure: {said}")
    return {one: told[one.name] for one in some}


def _list(chosen: list[Benchmark], json: bool) -> None:
    if json:
        keys = ("name", "unit", "limit", "bound", "about")
        print_json({"benchmarks": [{key: getattr(one, key) for key in keys} for one in chosen]})
        return
    for one in chosen:
        stdout.print(f"[bold]{one.name}[/]: {one.shown_limit}")
        stdout.print(f"    {one.about}")


def _show(results: dict[Benchmark, dict[str, Any]]) -> None:
    table = Table("", "benchmark", "value", "limit", "in the same run", box=None)
    for one, result in results.items():
        mark = "[green]holds[/]" if result["ok"] else "[red]fails[/]"
        table.add_row(mark, one.name, shown(result["value"], one.unit), one.shown_limit, shown_beside(result))
    stdout.print(table)


def shown(value: float, unit: str) -> str:
    """A figure with its unit; a ratio has none."""
    return f"{value:,.6g}" + ("" if unit == "ratio" else f" {unit}")


def shown_beside(result: dict[str, Any]) -> str:
    """What a figure is to be read with: other figures, and words."""
    return ", ".join(
        f"{key} {value}" if isinstance(value, str) else f"{key} {value:,.6g}" for key, value in result["beside"].items()
    )
