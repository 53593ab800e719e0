"""Collects all that a page shows as plain dictionaries, for the JSON file and the page."""

import json
import re
from dataclasses import asdict

from ..model import Cell, Table
from .. import numbers

# The figures of the documents (W1 to W14): a page lists each, measured or not.
DOCUMENTED = [f"W{number}" for number in range(1, 15)]


def collect(run: dict, sections: list) -> dict:
    told = [of_section(section) for section in sections]
    # by the number in the key: 14 for "W14 cached"
    figures = sorted((figure for section in told for figure in section["figures"]),
                     key=lambda figure: int("0" + re.sub(r"\D", "", figure["key"].split()[0])))
    there = {figure["key"].split()[0] for figure in figures}
    verdicts = [{**verdict, "experiment": section["name"], "title": section["title"]}
                for section in told for verdict in section["verdicts"]]
    servers = [trial["limited"] for section in sections for trial in section.trials
               if trial.get("limited") is not None]
    return {"run": run, "limited": {"yes": servers.count(True), "no": servers.count(False)},
            "sections": told, "figures": figures, "verdicts": verdicts,
            "figures_not_measured": [key for key in DOCUMENTED if key not in there]}


def of_section(section) -> dict:
    experiment, found = section.experiment, section.found
    return {
        "name": experiment.name,
        **{key: experiment.about.get(key, "")
           for key in ("title", "question", "document", "method")},
        "quotes": experiment.about.get("quotes", []),
        "claims": list(experiment.about.get("claims", {}).values()),
        "plots": [of_plot(experiment.name, plot) for plot in experiment.plots(found)],
        "tables": [{"title": table.title, "head": list(table.head), "caption": table.caption,
                    "rows": [[of_cell(cell) for cell in row] for row in table.rows]}
                   for table in [*experiment.tables(found), *memory(section)]],
        "figures": [of_figure(figure) for figure in experiment.figures(found)],
        "verdicts": [asdict(verdict) for verdict in experiment.verdicts(found)],
        "measures": [asdict(measure) for measure in experiment.measures],
        "values": [{"engine": found.label(engine), "measure": measure, "at": at, "values": values}
                   for engine, measure, at, values in found.all()],
        "problems": {found.label(key): why for key, why in section.problems.items()},
        "remarks": {found.label(key): lines for key, lines in section.remarks.items() if lines},
        "commands": {found.label(key): lines for key, lines in section.commands.items() if lines},
        "repeats": {found.label(key): sum(trial["engine"] == key and "values" in trial
                                          for trial in section.trials)
                    for key in found.known},
    }


HELD = ("on_disk", "cache", "page_cache", "page_cache_most", "own")


def memory(section) -> list:
    """Returns at most one table: the engines' bytes on disk next to their limited memory."""
    found, phases = section.found, {}
    for trial in section.trials:
        for held in trial.get("held", []) if "values" in trial else []:
            phases.setdefault((trial["engine"], held["phase"]), []).append(held)
    rows = [[Cell(f"{found.label(engine)}, {phase}"), *(told(each, key) for key in HELD),
             Cell(values=[held["on_disk"] / (held["cache"] + held["page_cache"])
                          for held in each if held["page_cache"] is not None], unit="ratio")]
            for engine in found.known for (key, phase), each in phases.items() if key == engine]
    caption = ("Bytes on disk are those at the end of what was measured; of Cheetah without old "
               "images. The page cache is what was seen fifty times a second: the median, and the "
               "most.")
    head = ["engine", "on disk", "cache", "page cache", "page cache, most",
            "server's own memory, cache included", "on disk by both caches"]
    return [Table("Memory and data", head, rows, caption)] if rows else []


def told(phases: list, key: str) -> Cell:
    return (Cell(values=[held[key] for held in phases], unit="bytes")
            if all(held[key] is not None for held in phases) else Cell("not limited"))


def of_plot(name: str, plot) -> dict:
    """Returns a plot with what can be shown: of measured series, points with several repeats."""
    series = [{"label": line.label, "engine": line.engine, "computed": not line.engine,
               "points": [[x, list(values)] for x, values in line.points
                          if values and (not line.engine or len(values) > 1)]}
              for line in plot.series]
    return {"id": f"{name}-{plot.key}".replace("_", "-").replace(" ", "-"), "title": plot.title,
            "kind": plot.kind, "x_label": plot.x_label, "y_label": plot.y_label,
            "log_x": plot.log_x, "log_y": plot.log_y, "caption": plot.caption,
            "series": [line for line in series if line["points"]]}


def of_cell(cell) -> dict:
    if cell.values is None:
        return {"text": cell.text}
    return {"text": numbers.spread(cell.values, cell.unit), "values": list(cell.values),
            "unit": cell.unit}


def of_figure(figure) -> dict:
    """Returns a figure of the documents with the measured values, as text and as numbers."""
    def measured(values):
        return {"text": numbers.spread(values, figure.unit), "values": list(values)}
    return {"key": figure.key, "what": figure.what, "unit": figure.unit,
            "document": {"text": numbers.number(figure.document, figure.unit),
                         "value": figure.document},
            "innodb": measured(figure.innodb), "cheetah": measured(figure.cheetah),
            "others": {label: measured(values) for label, values in figure.others.items()}}


def as_json(told: dict) -> str:
    """Returns the JSON file's text, without drawings. Raises ValueError for non-numbers."""
    slim = {**told, "sections": [
        {**section, "plots": [{key: value for key, value in plot.items() if key != "svg"}
                              for plot in section["plots"]]}
        for section in told["sections"]]}
    return json.dumps(slim, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
