"""The package's docstring lists every module; modules import only from those listed above."""

import ast
import re
from pathlib import Path

import cheetah_lab

FOLDER = Path(cheetah_lab.__file__).parent
ORDER = [name for line in cheetah_lab.__doc__.splitlines()
         for name in re.findall(r"^(\w+)/?\s{2,}\S", line)]


def imported(file: Path) -> set:
    """Returns the package's modules and folders that a file imports anywhere."""
    inside, found = file.parent != FOLDER, set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == (2 if inside else 1):
            found |= ({node.module.split(".")[0]} if node.module
                      else {alias.name for alias in node.names})
    return found


def test_every_module_is_named():
    there = ({file.stem for file in FOLDER.glob("*.py")}
             | {folder.parent.name for folder in FOLDER.glob("*/__init__.py")})
    assert there - {"__init__", "__main__"} == set(ORDER)


def test_a_module_imports_from_those_above_it():
    files = [file for file in FOLDER.rglob("*.py") if file.stem != "__main__"]
    wrong = [f"{file.relative_to(FOLDER)} imports {name}"
             for file in files for name in imported(file)
             if ORDER.index(name) > ORDER.index(file.parent.name if file.parent != FOLDER
                                                else file.stem)
             and file != FOLDER / "__init__.py"]
    assert len(files) > 25 and not wrong, wrong


def test_experiments_use_the_upper_modules():
    upper = {*ORDER[:ORDER.index("trial") + 1], "inputs"}
    for file in (FOLDER.parent / "experiments").glob("*/experiment.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cheetah_lab"):
                parts = node.module.split(".")
                names = {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
                assert names <= upper, f"{file.parent.name} imports {names - upper}"
