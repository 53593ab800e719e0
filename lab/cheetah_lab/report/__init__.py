"""Writes a run's report: a self-contained HTML page, the same content as JSON, and plots as SVG.

plots      matplotlib's SVG, with colours that the page or the file itself defines, so that it is
           readable in light, dark and print
page       the HTML page
content    the JSON counterpart: all that the page shows, and the underlying values"""

from pathlib import Path

from ..store import replace
from . import content, page, plots


def write(folder: Path, run: dict, sections: list) -> Path:
    """Writes index.html, report.json and plots/*.svg from run.json's contents and `results.Section`
    objects; returns the page's path. Raises ValueError for values that are not numbers."""
    told = content.collect(run, sections)
    drawings = folder / "plots"
    drawings.mkdir(parents=True, exist_ok=True)
    for section in told["sections"]:
        for plot in section["plots"]:
            plot["svg"] = plots.draw(plot)
            plot["file"] = f"plots/{plot['id']}.svg" if plot["svg"] else ""
            if plot["svg"]:
                replace(folder / plot["file"], plots.standalone(plot["svg"]))
    replace(folder / "index.html", page.html(told))
    replace(folder / "report.json", content.as_json(told))
    return folder / "index.html"
