"""Tests the page of a run: its contents, and how a browser shows it."""

import json
import random

import browser
import made
import pytest
from cheetah_lab import numbers, report
from cheetah_lab.model import HOLDS, Cell, Experiment, Figure, Measure, Plot, Series, Table, Verdict
from cheetah_lab.report import content, page, plots
from cheetah_lab.results import Section

ENGINES = {"innodb-dynamic": 1.0, "innodb-8k": 0.6, "myrocks": 0.8, "cheetah": 1.2,
           "cheetah-none": 1.1}
CONNECTIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
RUN = {
    "name": "made", "begun": "2026-11-20T10:00:00+00:00", "ended": "2026-11-20T10:30:00+00:00",
    "asked": {"experiments": ["curves"], "engines": list(ENGINES), "factor": 0.5, "full": False,
              "repeats": 3},
    "experiments": {"curves": {"engines": list(ENGINES), "skipped": "", "measures": {}}},
    "engines": {key: {"label": made.ALL[key].label, "family": made.ALL[key].family,
                      "table": f"ENGINE={key} <x>"}
                for key in ENGINES},
    "machine": {"processor": "A & B <fast>", "cores": 2, "memory_bytes": 24e9},
    "versions": {"MariaDB": "10.11"}, "memory_group": "v1",
}


class Curves(Experiment):
    """Plots of both kinds, with text that needs escaping, and numbers that must not be shown."""

    measures = [Measure("tps", "transactions", "1/s"), Measure("size", "size", "bytes"),
                Measure("once", "measured once", "s")]

    def plots(self, results):
        lines = [Series(results.label(key), results.curve(key, "tps"), key)
                 for key in results.engines]
        bars = [Series(results.label(key),
                       [(word, results.values(key, "size"))
                        for word in ("all <keys>", "a $key$ & more")], key)
                for key in results.engines]
        single = [Series(results.label(key), [(1, results.values(key, "once")[:1])], key)
                  for key in results.engines]
        return [Plot("tps", "Transactions <a second>", "lines", "connections", "1/s",
                     [*lines, Series("arithmetic: x & y", [(1, [900]), (512, [400])])], log_x=True),
                Plot("size", "Sizes", "bars", "", "bytes", bars),
                Plot("once", "Only once", "lines", "x", "s", single)]

    def tables(self, results):
        head = ["engine", "size", "once", "<none>"]
        wide = [[Cell(results.label(key)),
                 *(Cell(values=results.values(key, "tps", at), unit="1/s") for at in CONNECTIONS)]
                for key in results.engines]
        return [Table("Sizes & more", head,
                      [[Cell(results.label(key)),
                        Cell(values=results.values(key, "size"), unit="bytes"),
                        Cell(values=results.values(key, "once")[:1], unit="s"), Cell(values=[])]
                       for key in results.engines]),
                Table("Wide", ["engine", *(f"rate_in_all with {at:,}" for at in CONNECTIONS)],
                      wide)]

    def figures(self, results):
        return [Figure("W2 8K", "bytes <of> it", 0.52, "ratio", [0.5, 0.51], [0.1, 0.1],
                       {"MyRocks": [0.3]}),
                Figure("W11", "a curve", None, "ratio", [], [0.34])]

    def verdicts(self, results):
        return [Verdict("smaller & better than <it>", HOLDS, "0.1, wanted at most 0.5")]


def section() -> Section:
    about = {"title": "Curves & <bars>", "question": "Is 1 < 2?",
             "method": "By <looking> & counting.", "quotes": ["\"a\" < b & c"],
             "claims": {"x": "It is <smaller>"}, "document": "S0"}
    rng, values = random.Random(1), {}
    for key, share in ENGINES.items():
        values[key] = {"size": [2e8 * share * rng.uniform(0.95, 1.05) for _ in range(3)],
                       "once": [123456.0] * 3,
                       **{("tps", at): [at ** 0.5 * 100 * share * rng.uniform(0.9, 1.1)
                                        for _ in range(3)]
                          for at in CONNECTIONS}}
    found = made.results(values)
    return Section(Curves("curves", about), found, {"innodb-holes": "no <engine> & no values"},
                   {"cheetah": ["SELECT 1 < 2 & 3"]}, [],
                   {"cheetah": ["not at rest <yet>", "and late"]})


@pytest.fixture(scope="module", name="place")
def fixture_place(tmp_path_factory):
    return report.write(tmp_path_factory.mktemp("run"), RUN, [section()])


@pytest.fixture(scope="module", name="driver")
def fixture_driver():
    with browser.open_browser() as found:
        yield found


def test_a_browser_shows_all_of_it(driver, place):
    browser.check(driver, place)
    assert json.loads(
        (place.parent / "report.json").read_text())["sections"][0]["plots"][1]["series"]


def test_a_browser_shows_the_tables(driver, place):
    browser.visit(driver, place)
    cells = [cell.text for cell in driver.find_elements(
        "css selector", "#curves table tbody tr:first-child > *")]
    assert cells[0] == "InnoDB DYNAMIC" and cells[2:4] == [numbers.ONE_REPEAT, numbers.ABSENT]
    assert cells[1].startswith("20") and " MB (" in cells[1] and ".." in cells[1]
    row = [cell.text for cell in driver.find_elements(
        "css selector", "#figures tbody tr:first-child > *")]
    assert row == ["W2 8K", "bytes <of> it", "0.52", "0.51 (0.50..0.51)", "0.10 (±0)",
                   numbers.ONE_REPEAT]
    assert "W1, W3, W4" in driver.find_element("id", "figures").text
    assert driver.find_element("css selector", "pre.command").text.startswith("make lab SCALE=0.5")


def test_what_a_page_must_not_be_is_noticed(driver, place, tmp_path):
    text = place.read_text()
    (tmp_path / "report.json").write_text((place.parent / "report.json").read_text())
    for broken, why in ((text.replace('curves-tps--series-myrocks"', 'gone"'), "series-myrocks"),
                        (text.replace("</main>", '<img src="http://127.0.0.1:1/x.png"></main>'),
                         "127.0.0.1"),
                        (text.replace("connections</text>", "</text>"), "connections")):
        assert broken != text
        (tmp_path / "index.html").write_text(broken)
        with pytest.raises(Exception, match=why):
            browser.check(driver, tmp_path / "index.html")


def test_a_plot_that_stands_alone_brings_its_colours(driver, place):
    drawing = place.parent / "plots/curves-tps.svg"
    for theme, paper in ((browser.LIGHT, "rgb(255, 255, 255)"), (browser.DARK, "rgb(13, 17, 23)")):
        browser.visit(driver, drawing, theme)
        colour = driver.execute_script(
            "return getComputedStyle(document.querySelector('text')).fill")
        assert browser.contrast(colour, paper) > browser.CONTRAST_MIN
        line = driver.execute_script(
            "return getComputedStyle(document.querySelector('[id$=series-cheetah] path')).stroke")
        assert line != "none" and browser.contrast(line, paper) > 3


def test_one_repeat_is_never_shown(place):
    text = place.read_text()
    assert "123,456" not in text and "123456" not in text
    assert "nothing to show" in text and not (place.parent / "plots/curves-once.svg").exists()


def test_the_same_values_give_the_same_page(place, tmp_path):
    assert report.write(tmp_path, RUN, [section()]).read_bytes() == place.read_bytes()


@pytest.mark.parametrize("values, unit, text", [
    ([1.0, 1.2, 1.1], "s", "1.10 s (1.00..1.20)"),
    ([2.5e6, 3.1e6], "bytes", "2.80 MB (2.50..3.10)"),
    ([9.99e8, 1.001e9], "bytes", "1.00 GB (1.00..1.00)"),
    ([5], "s", "one repeat"), ([], "s", "–"), ([0, 0], "", "0 (±0)"),
    ([1234, 1300], "1/s", "1,267/s (1,234..1,300)"),
    ([0.0132, 0.0135], "ratio", "0.0134 (0.0132..0.0135)"),
    ([0.0000846, 0.0000917], "s", "88.2 µs (84.6..91.7)"),
    ([0.5, 0.7], "ms", "600 µs (500..700)"),
    ([0.08, 0.001, 0.09], "ratio", "0.0800 (0.0010..0.0900)"),
    ([900, 1100, 1000], "ms", "1.00 s (0.90..1.10)"),
    ([12.0, 18.4, 15], "pages", "15 (12..18)"),
    ([999.6, 999.7], "1/s", "1,000/s (1,000..1,000)"),
])
def test_numbers_are_written_for_people(values, unit, text):
    assert numbers.spread(values, unit) == text


def test_series_of_one_engine_have_one_colour_and_differ():
    series = [{"label": label, "engine": key, "computed": not key} for label, key in (
        ("Cheetah", "cheetah"), ("a curve", "cheetah"), ("InnoDB KEY_BLOCK_SIZE=8", "innodb-8k"),
        ("Cheetah's arithmetic", ""))]
    styles = plots.styled(series)
    assert [key for _, key, _ in styles] == ["cheetah", "cheetah", "innodb-8k", "other"]
    assert styles[0][2] != styles[1][2]


@pytest.mark.parametrize("values, names", [
    ([20, 80], ["20", "50"]),
    ([3, 300], ["5", "10", "20", "100"]),
    ([5, 50_000], ["10", "100", "10k"])])
def test_a_short_logarithmic_axis_has_names_too(values, names):
    plot = {"id": "p", "title": "t", "kind": "lines", "x_label": "x", "y_label": "1/s",
            "log_x": False, "log_y": True, "caption": "",
            "series": [{"label": "Cheetah", "engine": "cheetah", "computed": False,
                        "points": [[at, [value, value]] for at, value in enumerate(values)]}]}
    drawing = plots.draw(plot)
    assert all(f">{name}</text>" in drawing for name in names)
    assert (">200</text>" in drawing) == (values == [3, 300])


def test_the_command_says_all_that_was_asked_and_no_more():
    asked = {"full": True, "factor": 2.0, "repeats": 5, "experiments": ["a", "b", "c"],
             "engines": ["cheetah", "myrocks"]}
    assert (page.command(asked, {"experiments": ["a", "b"], "engines": ["cheetah"], "run": "one"})
            == 'make lab FULL=1 SCALE=2 REPEATS=5 EXPERIMENT="a b" ENGINES="cheetah" RUN=one')
    assert (page.command(asked, {"experiments": [], "engines": []})
            == "make lab FULL=1 SCALE=2 REPEATS=5")


def test_remarks_stand_beside_the_values(tmp_path):
    place = report.write(tmp_path, RUN, [section()])
    assert "not at rest &lt;yet&gt;; and late" in place.read_text()


def test_values_that_are_no_numbers_are_refused(tmp_path):
    told = content.collect(RUN, [section()])
    told["figures"][0]["innodb"]["values"].append(float("nan"))
    with pytest.raises(ValueError):
        content.as_json(told)


def test_every_engine_has_a_colour_of_its_own():
    assert (set(plots.PALETTE) == {*made.ALL, "other"}
            and len(set(plots.PALETTE.values())) == len(plots.PALETTE))
