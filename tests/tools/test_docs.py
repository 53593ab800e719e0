"""Checks the project's Markdown (links, lengths of lines and cells) and Python's line length."""

import os
import re
from pathlib import Path

import pytest

from cheetah_tools.paths import PROJECT

LINE_MAX = 100
CELL_MAX = 100
WITHOUT = {"target", "var", "build", "node_modules", ".git"}
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
SOURCES = (".rs", ".cc", ".h", ".py", ".toml")
NAMED = re.compile(r"`([\w./-]+\.(?:rs|cc|h|py))`")
OF_THE_SERVER = {"handler.cc", "log.h", "sql_class.h", "vector_mhnsw.cc"}


def files(folder: Path, suffixes: tuple):
    """Yields all files below a folder, except built and downloaded ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in WITHOUT]
        yield from (Path(place, name) for name in names if name.endswith(suffixes))


def documents() -> list:
    return sorted(str(path.relative_to(PROJECT)) for path in files(PROJECT, (".md",)))


def prose(text: str) -> str:
    """Returns the text without code, that is without fenced blocks and code spans."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(path: Path) -> set:
    """Returns the anchors that GitHub creates for a document's headings."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.S | re.M)
    found = set()
    for title in re.findall(r"^#+ +(.*?) *$", text, flags=re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = 0
        while (plain if not number else f"{plain}-{number}") in found:
            number += 1
        found.add(plain if not number else f"{plain}-{number}")
    return found


def links(path: Path, root: Path, is_right=Path.exists) -> list:
    """Returns (target, error) for each relative link of a document. The target must be below `root`
    and satisfy `is_right`, and its heading, if named, must exist."""
    found = []
    for target in LINK.findall(prose(path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        wrong = ""
        if not is_right(place) or not place.is_relative_to(root.resolve()):
            wrong = f"{path}: {target}: no such file"
        elif anchor and anchor not in anchors(place):
            wrong = f"{path}: {target}: no such heading"
        found.append((target, wrong))
    return found


@pytest.mark.parametrize("name", documents())
def test_links_lead_somewhere(name):
    assert not [wrong for _, wrong in links(PROJECT / name, PROJECT) if wrong]


@pytest.mark.parametrize("name", documents())
def test_lines_are_short_and_cells_hold_no_paragraphs(name):
    wrong, fenced = [], False
    for number, line in enumerate((PROJECT / name).read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        is_free = fenced or line.startswith(("    ", "!["))    # code blocks and pictures
        if not fenced and line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)
            if max(len(cell.strip()) for cell in cells) > CELL_MAX:
                wrong.append(f"line {number}: a cell of more than {CELL_MAX} characters")
        elif len(line) > LINE_MAX and not is_free and " " in line.strip():
            wrong.append(f"line {number}: {len(line)} characters")
    assert not wrong


def test_lines_of_python_are_short():
    wrong = [f"{path.relative_to(PROJECT)}:{number}: {len(line)} characters"
             for path in files(PROJECT, (".py",))
             for number, line in enumerate(path.read_text().splitlines(), 1)
             if len(line) > LINE_MAX]
    assert not wrong


def test_documents_that_the_code_names_exist():
    wrong = []
    for folder in ("crates", "plugin", "tools", "lab", "tests", "fuzz"):
        for path in files(PROJECT / folder, SOURCES):
            for named in re.findall(r"\bdocs/[\w/.-]+\.(?:md|svg)\b", path.read_text()):
                if not (PROJECT / named).exists():
                    wrong.append(f"{path.relative_to(PROJECT)}: {named}")
    assert not wrong


def test_sources_that_documents_name_exist():
    """Matches the end of a path. Decision records describe past states, so they are not checked."""
    folders = ("crates", "plugin", "tools", "lab", "tests", "fuzz")
    there = {str(path) for folder in folders for path in (PROJECT / folder).rglob("*")
             if path.name.endswith(SOURCES)}
    wrong = []
    for name in documents():
        if name.startswith("docs/developers/decisions/"):
            continue
        for named in NAMED.findall((PROJECT / name).read_text()):
            is_there = any(path.endswith("/" + named.removeprefix("../")) for path in there)
            if not is_there and Path(named).name not in OF_THE_SERVER:
                wrong.append(f"{name}: {named}")
    assert not wrong
