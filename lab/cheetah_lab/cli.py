"""The lab's commands: run, list, page. `make lab` calls them."""

import math
import re
import sys
from pathlib import Path

import click

from cheetah_tools import build, say
from cheetah_tools.paths import VAR, show

from . import engines, experiments, room, run as running, sections, store
from .model import Scale


def a_number(_context, option, value: float) -> float:
    """Rejects NaN."""
    if math.isnan(value):
        raise click.BadParameter("not a number", param=option)
    return value


def a_name(_context, option, value: str) -> str:
    """Rejects strings that are not the name of a folder in the folder of runs."""
    if value and not re.fullmatch(r"\w[\w.-]*", value):
        raise click.BadParameter("a name has letters, digits, '_', '-' and '.' only", param=option)
    return value


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--runs", type=click.Path(path_type=Path), default=store.RUNS,
              help="The folder of all runs.")
@click.pass_context
def lab(context, runs: Path) -> None:
    """Storage engines side by side: the documents' experiments, as pages."""
    context.obj = runs.resolve()


@lab.command()
@click.option("--full", is_flag=True,
              help="All engines and numbers of connections; more rows and variants in some "
                   "experiments.")
@click.option("--experiment", "names", multiple=True,
              help="Only this one; may be given several times.")
@click.option("--scale", "factor", type=click.FloatRange(0.001, 1000), default=1.0,
              callback=a_number, help="How large: 1 takes half an hour with the four engines.")
@click.option("--repeats", type=click.IntRange(1, 1000), default=3,
              help="Trials of each engine in each experiment.")
@click.option("--engine", "asked", multiple=True, type=click.Choice(list(engines.ALL)),
              help="Only this one; may be given several times.")
@click.option("--run", "name", default="", callback=a_name,
              help="Name of the run; the date and the time unless given.")
@click.option("--build", "builds", is_flag=True,
              help="Build the plugin first, once it is clear what to run.")
@click.option("--fresh", is_flag=True,
              help="Begin anew, even when an unfinished run of the same kind is there.")
@click.pass_obj
def run(runs: Path, full: bool, names: tuple, factor: float, repeats: int, asked: tuple, name: str,
        builds: bool, fresh: bool) -> None:
    """Run experiments, and write the page."""
    scale = Scale(factor, full, repeats)
    keys = ([key for key in engines.ALL if key in asked]
            or (engines.FULL if full else engines.QUICK))
    chosen = chosen_by(names)
    say_before(chosen, keys, scale, asked)
    with store.alone(runs):
        if builds:   # under the lock, so that a running run keeps its plugin
            build.build()
        room.check([experiment for experiment in chosen if not experiment.skip()], scale, VAR)
        found = running.find(
            runs, running.describe(chosen, keys, scale, None,
                                   {"experiments": names, "engines": asked, "run": name}),
            name, fresh)
        try:
            failed = running.execute(found, chosen, keys, scale)
        except KeyboardInterrupt:
            say.step(f"stopped; the same command goes on with the run {found.name}, "
                     f"of which {len(found.done())} trials are there")
            show_page(found)
            raise
        found.about["ended"] = None if failed else running.now()
        found.save()
        show_page(found)
    if failed:
        raise say.Failure(f"{failed} trials failed (their reasons are above, and on the page); "
                          "the same command tries them again")


def chosen_by(names: tuple) -> list:
    return [experiment for experiment in experiments.load(names) if names or not experiment.by_name]


def say_before(chosen: list, keys: list, scale: Scale, asked: tuple) -> None:
    """Prints what a user may not expect of the run, before it starts."""
    if scale.repeats < sections.REPEATS_FOR_PAGE:
        say.note("one repeat has no spread, so there will be no page, only values: "
                 "give REPEATS=2 or more")
    for experiment in chosen if asked else []:
        more = [engines.ALL[key].label for key in experiment.engines(keys, scale)
                if key not in keys]
        if more:
            say.note(f"{experiment.name} runs {', '.join(more)} as well, "
                     "which its document compares")


def show_page(found: store.Run) -> None:
    """Writes a run's page and prints its path. Raises Failure if it cannot be written."""
    try:
        place = sections.page(found)
    except Exception as error:
        running.keep_traceback(found.folder / "errors.log", f"page of {found.name}")
        raise say.Failure(f"no page: {type(error).__name__}: {error} "
                          f"(more in {show(found.folder / 'errors.log')}); "
                          "the values are kept: mend it, then: "
                          f"python3 tools/cheetah.py lab page {found.name}") from error
    say.step(f"the run {found.name}: {show(place)}, and beside it report.json"
             if place
             else f"the run {found.name} has no page yet: no engine has two repeats "
                  f"({show(found.folder / 'trials.jsonl')} has the values)")


@lab.command()
@click.argument("name")
@click.pass_obj
def page(runs: Path, name: str) -> None:
    """Write the page of a run again."""
    show_page(store.named(runs, name))


@lab.command("list")
@click.pass_obj
def listed(runs: Path) -> None:
    """List the experiments, the engines and the runs."""
    for experiment in experiments.load():
        reason = experiment.skip()
        print(f"{experiment.name:<24} {experiment.about['title']}"
              f"{f' (not here: {reason})' if reason else ''}")
    print()
    for key, engine in engines.ALL.items():
        print(f"{key:<24} {engine.label}{' (a quick run has it)' if key in engines.QUICK else ''}")
    print()
    for found in store.every(runs):
        print(f"{found.name:<24} {'' if found.about['ended'] else 'unfinished, '}"
              f"scale {found.about['asked']['factor']:g}, "
              f"{len(found.done())} trials of {', '.join(found.about['experiments'])}")


def main() -> None:
    """Run a command; exit status 1 for a Failure, 2 for unknown words, 130 for Ctrl-C."""
    say.run_main(_run)


def _run(words: list) -> int:
    try:
        return lab.main(words, prog_name="python3 tools/cheetah.py lab", standalone_mode=False)
    except click.ClickException as complaint:
        complaint.show()
        print("(with make: EXPERIMENT=, ENGINES=, SCALE=, REPEATS=, RUN=, FULL=1, FRESH=1)",
              file=sys.stderr)
        return complaint.exit_code
    except click.Abort as abort:
        raise KeyboardInterrupt from abort
