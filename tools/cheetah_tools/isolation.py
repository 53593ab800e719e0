"""`make isolation`: the suites of tests/isolation, one after the other; each brings its own server.
"""

import argparse
import subprocess
import sys

from .paths import PROJECT

FOLDER = "tests/isolation"
SHORT = {"hermitage": [], "histories": ["--histories", "20", "--txns", "2000"], "interleavings": ["--scripts", "100"]}
LONG = {"histories": ["--histories", "200", "--txns", "10000"], "interleavings": ["--scripts", "5000"]}


def main(arguments: list) -> int:
    """The command; 1 when a suite failed."""
    parser = argparse.ArgumentParser(description="isolation beside InnoDB")
    parser.add_argument("suites", nargs="*", help=f"only these: {', '.join(SHORT)}")
    parser.add_argument("--long", action="store_true", help="the long form")
    choice = parser.parse_args(arguments)
    failed = 0
    for suite, words in SHORT.items():
        if choice.suites and suite not in choice.suites:
            continue
        words = LONG.get(suite, words) if choice.long else words
        failed |= subprocess.run([sys.executable, f"{FOLDER}/{suite}.py", *words], cwd=PROJECT, check=False).returncode
    return failed
