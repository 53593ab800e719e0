"""Opens a page of the lab in headless Chromium, as a reader would see it."""

import json
import shutil
from pathlib import Path

import pytest
from cheetah_tools import environment

LIGHT, DARK = "light", "dark"
CONTRAST_MIN = 4.5      # between text and background (WCAG 2.1, level AA)
PAPER_PX = 717          # the width between Chromium's margins on A4
NOTHING = "rgba(0, 0, 0, 0)"


def open_browser():
    """Returns a driver for Chromium; skips the test if Chromium is not installed."""
    environment.browser()
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no Chromium here: apt install chromium chromium-driver")
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--window-size=1100,1400"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def visit(driver, page: Path, theme: str = LIGHT, media: str = "screen", width: int = 1100) -> None:
    for kind in ("performance", "browser"):    # discard the log entries of previous pages
        driver.get_log(kind)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"media": media,
                            "features": [{"name": "prefers-color-scheme", "value": theme}]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 1400, "deviceScaleFactor": 1,
                            "mobile": False})
    driver.get(page.as_uri())


def requested(driver) -> list:
    """Returns the URLs that the page requested, its own included."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [message["params"]["request"]["url"] for message in messages
            if message["method"] == "Network.requestWillBeSent"]


def check(driver, page: Path) -> None:
    """Checks a run's page: no external requests, no errors, readable in each theme, on paper and in
    a narrow window, and every plot of report.json with its series and labels."""
    visit(driver, page)
    outside = [address for address in requested(driver)
               if not address.startswith(("data:", page.as_uri()))]
    assert not outside, f"the page asked for {outside}"
    errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)), "an id twice"
    for theme, media in ((LIGHT, "screen"), (DARK, "screen"), (DARK, "print")):
        visit(driver, page, theme, media)
        check_contrast(driver)
    visit(driver, page, media="print", width=PAPER_PX)
    wide = driver.execute_script("return [...document.querySelectorAll('table, svg.plot')]"
                                 ".filter(e => e.getBoundingClientRect().right > innerWidth)"
                                 ".map(e => e.caption ? e.caption.textContent : e.id)")
    assert not wide, f"wider than a sheet of paper: {wide}"
    visit(driver, page, width=400)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 400, (
        "the page is wider than a narrow window")
    visit(driver, page)
    told = json.loads((page.parent / "report.json").read_text())
    for plot in [plot for section in told["sections"] for plot in section["plots"] if plot["file"]]:
        check_plot(driver, plot)


def check_plot(driver, plot: dict) -> None:
    """Checks that series are drawn and named, axes labelled, texts visible and apart."""
    from cheetah_lab.report.plots import axis_label, gid
    svg = driver.find_element("css selector", f'svg[aria-labelledby^="{plot["id"]}--title"]')
    assert svg.rect["width"] > 250 and svg.rect["height"] > 50, plot["id"]
    texts = driver.execute_script(TEXTS, svg)
    words = [text["words"] for text in texts]
    for series in plot["series"]:
        drawn = driver.find_element("id", f"{plot['id']}--{gid(series)}")
        assert drawn.rect["width"] > 0 or drawn.rect["height"] > 0, (
            f"{plot['id']}: {series['label']} has no size")
        assert series["label"] in words, f"{plot['id']}: {series['label']} is in no legend: {words}"
    for label in (plot["x_label"] if plot["kind"] == "lines" else "", axis_label(plot)):
        assert not label or label in words, f"{plot['id']}: no axis says {label}"
    assert all(text["width"] > 0 and text["height"] > 0 for text in texts), plot["id"]
    level = [text for text in texts if not text["turned"]]
    for number, one in enumerate(level):
        for other in level[number + 1:]:
            wide = min(one["right"], other["right"]) - max(one["left"], other["left"])
            high = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            assert wide <= 2 or high <= 3, (
                f"{plot['id']}: {one['words']!r} lies on {other['words']!r}")


TEXTS = (
    "\n"
    "return [...arguments[0].querySelectorAll('text')].map(text => {\n"
    "  const box = text.getBoundingClientRect();\n"
    "  return {words: text.textContent.trim(), left: box.left, right: box.right, top: box.top, "
    "bottom: box.bottom, width: box.width, height: box.height,\n"
    "          turned: /rotate\\(-?(8[0-9]|9[0-9])/.test(text.getAttribute('transform') || '')};\n"
    "});\n")
COLOURS = (
    "\n"
    "const seen = new Set(), found = [];\n"
    "const paper = getComputedStyle(document.body).backgroundColor;\n"
    "for (const element of document.querySelectorAll('h1, h2, h3, p, th, td, li, summary, pre, "
    "caption, figcaption, small, a, svg.plot text')) {\n"
    "  const style = getComputedStyle(element);\n"
    "  const colour = element.closest('svg') ? style.fill : style.color;\n"
    "  const own = style.backgroundColor, key = colour + own;\n"
    "  if (!seen.has(key)) { seen.add(key); found.push([element.tagName + ': ' + "
    "element.textContent.trim().slice(0, 30), colour, own, paper]); }\n"
    "}\n"
    "return found;\n")


def check_contrast(driver) -> None:
    for what, colour, own, paper in driver.execute_script(COLOURS):
        found = contrast(colour, paper if own == NOTHING else own)
        assert found >= CONTRAST_MIN, f"{what}: contrast {found:.1f} of {colour}"


def contrast(first: str, second: str) -> float:
    """Returns WCAG's contrast of two CSS colours."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Returns WCAG's relative luminance of an rgb(..) colour."""
    parts = [float(word) / 255
             for word in colour[colour.index("(") + 1:-1].replace(",", " ").split()[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
