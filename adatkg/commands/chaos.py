"""`adatkg chaos`: the whole system under random faults, and whether it kept its promises."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from adatkg.console.output import JsonFlag, print_json, printable, stderr, stdout
from adatkg.console.progress import progress_bar

if TYPE_CHECKING:
    from adatkg.chaos import Outcome, Plan


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Examples: adatkg chaos --minutes 5; adatkg chaos --minutes 60 --seed 7 --json")(chaos)


def chaos(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long faults strike.")] = 5.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same faults. [default: a new one]")
    ] = None,
    graphs: Annotated[int, typer.Option(min=1, max=5, help="Graphs with a stream of their own.")] = 3,
    workers: Annotated[int, typer.Option(min=1, max=8, help="Workers that share the graphs.")] = 2,
    gap: Annotated[float, typer.Option(min=4, help="Seconds from one fault to the next, on average.")] = 15.0,
    rate: Annotated[float, typer.Option(min=2, help="Events of each graph in a second.")] = 2.0,
    kinds: Annotated[
        str | None, typer.Option("--faults", help="Only these kinds, with commas between. [default: all]")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="New folder for everything, which is kept; else it is kept only after a failure."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Run the whole system under faults, then check every answer.

    Workers and the broker are killed, stopped and cut off, snapshots damaged, disks filled, models promoted, rolled
    back and retrained, all at random under a generated stream. Then a checker reads the topics: was each query
    answered, always alike, as the engine answers it offline, and is the state bitwise that of a calm run? Exit code 1
    if not. The seed gives the same faults again.
    """
    import random

    from adatkg.chaos import Plan, conduct
    from adatkg.console.options import quiet_kafka_logs
    from adatkg_core.runtime import stop_on_signals

    quiet_kafka_logs()
    chosen = _new_folder(folder)
    plan = Plan(
        chosen,
        minutes,
        random.SystemRandom().randrange(1 << 31) if seed is None else seed,
        graphs,
        workers,
        gap,
        rate,
        _kinds(kinds),
    )
    try:
        with stop_on_signals(patient=True) as stop, progress_bar() as report:
            outcome = conduct(plan, stop, report)
    except BaseException:
        stderr.print(printable(f"chaos with seed {plan.seed} could not be brought to its end; see {chosen}"))
        raise
    if json:
        print_json(_result(plan, outcome))
    else:
        _show(plan, outcome)
    for problem in outcome.verdict.problems:
        stderr.print(printable(problem), markup=False, soft_wrap=True)
    if not outcome.verdict.holds:
        stderr.print(printable(f"seed {plan.seed}; the journal and all logs are in {chosen}"), soft_wrap=True)
        raise typer.Exit(1)
    if folder is None:
        shutil.rmtree(chosen, ignore_errors=True)


def _kinds(given: str | None) -> tuple[str, ...]:
    from adatkg.chaos import KINDS
    from adatkg_core.errors import InputError

    names = tuple(KINDS) if given is None else tuple(name.strip() for name in given.split(","))
    if strange := [name for name in names if name not in KINDS]:
        raise InputError(f"--faults {strange[0]}: there is no such fault, only {', '.join(KINDS)}")
    return names


def _new_folder(folder: Path | None) -> Path:
    from adatkg_core.errors import InputError

    if folder is None:
        return Path(tempfile.mkdtemp(prefix="adatkg-chaos-"))
    chosen = folder.expanduser().absolute()
    if chosen.exists() and (not chosen.is_dir() or any(chosen.iterdir())):
        raise InputError(f"--folder {folder}: there is something already; give a new or an empty folder")
    return chosen


def _result(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    verdict = outcome.verdict
    return {
        "asked": verdict.asked,
        "answered": verdict.answered,
        "repeated": verdict.repeated,
        "missing": verdict.missing,
        "different": verdict.different,
        "state_equal": verdict.state_equal,
        "faults": dict(sorted(outcome.faults.items())),
        "longest_silence_seconds": verdict.longest_silence_seconds,
        "seed": plan.seed,
        "minutes": round(outcome.seconds / 60, 1),
        "graphs": plan.graphs,
        "workers": plan.workers,
        "events": outcome.events,
        "lost_events": verdict.lost_events,
        "dead_letters": verdict.dead_letters,
        "dead_letters_missing": verdict.dead_letters_missing,
        "versions": verdict.versions,
        "worker_restarts": outcome.restarts,
        "skipped": outcome.skipped,
    }


def _show(plan: Plan, outcome: Outcome) -> None:
    table = Table(show_header=False, box=None)
    for name, value in _result(plan, outcome).items():
        if isinstance(value, dict):
            for kind, what in value.items():
                table.add_row(f"{name}: {kind.replace('_', ' ')}", str(what))
        else:
            table.add_row(name.replace("_", " "), f"{value:,}" if type(value) is int and name != "seed" else str(value))
    stdout.print(table)
