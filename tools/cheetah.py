#!/usr/bin/env python3
"""The commands behind the Makefile: `python3 tools/cheetah.py COMMAND ...`."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402  (needs the path above)

COMMANDS = {
    "setup": "setup:main", "build": "build:main", "up": "service:up", "sql": "service:sql",
    "down": "service:down", "with": "service:with_server", "suites": "mtr:main",
    "demo": "demo:main", "bench": "environment:bench", "images": "images:main",
    "soak": "soak:main", "lab": "environment:lab", "lock": "lock:main",
    "pytest": "environment:pytest", "test": "testall:main", "deb": "package:deb",
    "install": "package:install", "clean": "build:clean"}


def main(arguments: list) -> int:
    """Run one command of its module."""
    if not arguments or arguments[0] not in COMMANDS:
        raise say.Failure("usage: cheetah.py " + "|".join(COMMANDS))
    module, function = COMMANDS[arguments[0]].split(":")
    return getattr(importlib.import_module("cheetah_tools." + module), function)(arguments[1:])


say.run_main(main)
