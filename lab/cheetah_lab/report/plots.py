"""Draws plots as SVG whose colours come from their surroundings.

matplotlib draws with placeholder colours that stand for roles (text, grid, an engine). In the SVG
these become `currentColor` and CSS variables. The page defines the variables; a standalone plot
includes its own. Text remains text. The mark of a series is the median; a band or a line around it
extends from the smallest to the largest of all repeats."""

import html
import io
import math
import re
import statistics

import matplotlib
from matplotlib import ticker
from matplotlib.figure import Figure

from .. import numbers

WIDTH_INCHES = 8.2
TEXT, GRID = "#0a0a01", "#0a0a02"
# By engine: the colours on light and dark. Families have similar ones; neighbours differ.
PALETTE = {
    "innodb-compact": ("#1a2f6b", "#a9bdf5"), "innodb-dynamic": ("#3b5bb5", "#7f9df0"),
    "innodb-16k": ("#5b8fd6", "#5b8fd6"), "innodb-8k": ("#2a93b8", "#5cc4e6"),
    "innodb-4k": ("#177a76", "#4fc1bb"), "innodb-holes": ("#7b5aa6", "#b79be0"),
    "myrocks": ("#8a6d00", "#d9b93b"), "cheetah": ("#c4460b", "#ff8a4c"),
    "cheetah-16k": ("#d97b4a", "#f0a77f"), "cheetah-8k": ("#a8324a", "#ef7f94"),
    "cheetah-4k": ("#7a1f4d", "#d98ab3"), "cheetah-none": ("#7d5a44", "#c3a08a"),
    "cheetah-encrypted": ("#5e2ca5", "#b18cf0"), "innodb-encrypted": ("#0b4f6c", "#3fa7d6"),
    "cheetah-before": ("#555555", "#bbbbbb"),
    "other": ("#6b7280", "#9ca3af"),
}
GRID_COLOURS = ("#d8dce3", "#3a404b")
ROLES = {name: f"#0b00{number:02x}" for number, name in enumerate(PALETTE)}
MARKERS = dict(zip(PALETTE, "osDv^<>PXdphs*8H"))
DASHES = ["-", (0, (4, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
PLACES_NAMED_MAX = 12
# A logarithmic axis labels powers of ten. A short axis would then have a single label, so it also
# labels 2 and 5 times each power.
LOG_STEPS, FEW_DECADES = {False: (1,), True: (1, 2, 5)}, 2.5
SETTINGS = {"svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],
            "font.size": 10, "text.color": TEXT, "axes.labelcolor": TEXT, "xtick.color": TEXT,
            "ytick.color": TEXT, "axes.edgecolor": TEXT, "axes.spines.top": False,
            "axes.spines.right": False, "grid.color": GRID, "grid.linewidth": 0.8,
            "legend.frameon": False, "axes.axisbelow": True}


def draw(plot: dict) -> str:
    """Returns the SVG of a plot (`content.of_plot`), without colours; empty without series."""
    if not plot["series"]:
        return ""
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": plot["id"]}):
        figure = bars(plot) if plot["kind"] == "bars" else lines(plot)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True,
                       metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return themed(out.getvalue(), plot)


def styled(series: list) -> list:
    """Returns (series, key of its colour, dash); series with the same colour differ in dashes."""
    seen, found = {}, []
    for one in series:
        key = one["engine"] or "other"
        seen[key] = seen.get(key, -1) + 1
        found.append((one, key, DASHES[(seen[key] + one["computed"]) % len(DASHES)]))
    return found


def gid(series: dict) -> str:
    """Returns the ID by which a test finds a series."""
    return "series-" + re.sub(r"[^a-z0-9]+", "-", series["label"].lower()).strip("-")


def new_figure(height: float):
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    return figure, figure.add_subplot()


def lines(plot: dict):
    figure, axes = new_figure(4.3)
    places = sorted({x for series in plot["series"] for x, _ in series["points"]})
    for series, key, dash in styled(plot["series"]):
        xs = [x for x, _ in series["points"]]
        columns = [sorted(values) for _, values in series["points"]]
        middle = [statistics.median(values) for values in columns]
        marker = MARKERS[key] if len(xs) <= 2 * PLACES_NAMED_MAX and not series["computed"] else ""
        axes.plot(xs, middle, color=ROLES[key], linestyle=dash, linewidth=1.8, marker=marker,
                  markersize=5, label=plain(series["label"]), gid=gid(series))
        if not series["computed"]:
            axes.fill_between(xs, [v[0] for v in columns], [v[-1] for v in columns],
                              color=ROLES[key], alpha=0.18, linewidth=0)
    axes.set_xlabel(plain(plot["x_label"]))
    axes.set_ylabel(plain(axis_label(plot)))
    axes.grid(axis="y")
    set_places(axes, places, plot["log_x"] and places[0] > 0)
    scale(axes.yaxis, axes.set_yscale, plot)
    if not plot["log_y"]:
        axes.set_ylim(bottom=0)
    legend(figure, axes)
    return figure


def set_places(axes, places: list, log: bool) -> None:
    """Sets the ticks of the horizontal axis to the measured places, if they are few enough."""
    if log:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    at = [math.log(place) for place in places] if log else places
    roomy = all(after - before > (at[-1] - at[0]) / 16 for before, after in zip(at, at[1:]))
    if roomy and len(places) <= PLACES_NAMED_MAX:
        axes.set_xticks(places)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: short(value)))


def bars(plot: dict):
    """Draws groups of horizontal bars: medians, also as numbers, with lines over all values."""
    words = list(dict.fromkeys(x for series in plot["series"] for x, _ in series["points"]))
    chosen = styled(plot["series"])
    figure, axes = new_figure(0.75 + 0.27 * len(words) * (len(chosen) + 0.8)
                              + 0.26 * ((len(chosen) + 2) // 3))
    thick = 1 / (len(chosen) + 0.8)
    for number, (series, key, dash) in enumerate(chosen):
        there = [(words.index(x), sorted(values)) for x, values in series["points"]]
        ys = [place + (number - (len(chosen) - 1) / 2) * thick for place, _ in there]
        middle = [statistics.median(values) for _, values in there]
        around = [[m - v[0] for m, (_, v) in zip(middle, there)],
                  [v[-1] - m for m, (_, v) in zip(middle, there)]]
        drawn = axes.barh(ys, middle, height=thick * 0.86, color=ROLES[key],
                          alpha=1 if dash == "-" else 0.55, label=plain(series["label"]))
        for count, patch in enumerate(drawn):
            patch.set_gid(gid(series) if count == 0 else f"{gid(series)}--{count}")
        axes.errorbar(middle, ys, xerr=around, fmt="none", ecolor=TEXT, elinewidth=1, capsize=2)
        for y, value, (_, values) in zip(ys, middle, there):
            axes.annotate(value_text(value, plot["y_label"]), (values[-1], y), xytext=(5, 0),
                          textcoords="offset points", va="center", fontsize=8.5)
    axes.set_yticks(range(len(words)), [plain(str(word)) for word in words])
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(plain(axis_label(plot)))
    axes.grid(axis="x")
    axes.margins(x=0.14)
    scale(axes.xaxis, axes.set_xscale, plot)
    if not plot["log_y"]:
        axes.set_xlim(left=0)
    legend(figure, axes)
    return figure


def scale(axis, set_scale, plot: dict) -> None:
    if plot["log_y"]:
        set_scale("log")
        least, most = axis.get_view_interval()
        is_short = least > 0 and math.log10(most / least) < FEW_DECADES
        axis.set_major_locator(ticker.LogLocator(subs=LOG_STEPS[is_short]))
        axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_formatter(ticker.FuncFormatter(
        lambda value, _: (value_text(value, "bytes") if plot["y_label"] == "bytes"
                          else short(value))))


def legend(figure, axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if max(map(len, labels)) < 30 else 2
    figure.legend(handles, labels, loc="outside upper left", ncols=min(columns, len(labels)),
                  fontsize=9, handlelength=2.6, columnspacing=1.4)


def axis_label(plot: dict) -> str:
    label = plot["y_label"]
    name = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "1/s": "per second",
            "bytes": "bytes on disk"}.get(label, label)
    return f"{name} (logarithmic)" if plot["log_y"] else name


def value_text(value: float, label: str) -> str:
    return numbers.number(value, label if label in numbers.UNITS else "")


def short(value: float) -> str:
    """Returns the text of a tick: 20k for 20,000."""
    for least, by, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / by:g}{letter}"
    return f"{value:,g}"


def plain(text: str) -> str:
    """Escapes text so that matplotlib does not interpret it as mathematics."""
    return text.replace("$", r"\$")


def themed(svg: str, plot: dict) -> str:
    """Returns the drawing with variables as colours, unique ids, a title and a description."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = svg.replace(TEXT, "currentColor").replace(GRID, "var(--grid)")
    for name, role in ROLES.items():
        svg = svg.replace(role, f"var(--{name})")
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 var(--plot-font, sans-serif)", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{plot["id"]}--\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf'\g<1>{plot["id"]}--', svg)
    width, height = size(svg)
    described = (f"{axis_label(plot)} by {plot['x_label'] or 'kind'}, of "
                 + ", ".join(series["label"] for series in plot["series"]))
    head = ('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'role="img" class="plot" viewBox="0 0 {width} {height}" '
            f'aria-labelledby="{plot["id"]}--title {plot["id"]}--desc">\n'
            f'<title id="{plot["id"]}--title">{html.escape(plot["title"])}</title>'
            f'<desc id="{plot["id"]}--desc">{html.escape(described)}</desc>')
    return re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1)


def size(svg: str) -> tuple:
    return re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()


def variables(dark: bool) -> str:
    return (" ".join(f"--{name}: {colours[dark]};" for name, colours in PALETTE.items())
            + f" --grid: {GRID_COLOURS[dark]};")


def standalone(svg: str) -> str:
    """Returns the drawing with its size and colours (light or dark, as the reader chose)."""
    style = (f"<style>svg {{ color: #1c2128; {variables(False)} }} "
             "@media (prefers-color-scheme: dark) "
             f"{{ svg {{ color: #e6e8eb; {variables(True)} }} }}</style>")
    width, height = size(svg)
    svg = svg.replace('class="plot"', f'width="{width}" height="{height}"', 1)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace("</desc>", "</desc>" + style, 1)
