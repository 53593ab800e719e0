"""Licences of every crate we link: each must allow use in a GPL-2.0-only plugin.

deny.toml says the same to cargo-deny, which runs too where it is installed: building it takes longer than all other checks.
"""

import json
import re
import shutil
import subprocess

from .paths import PROJECT
from .say import Failure

# Apache-2.0 alone is not compatible with GPL-2.0-only; `MIT OR Apache-2.0` is, by its first half.
ALLOWED = {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "CC0-1.0", "Unlicense", "BSL-1.0",
           "Unicode-3.0", "Unicode-DFS-2016", "Apache-2.0 WITH LLVM-exception"}
OWN_ENGINE = "MIT OR Apache-2.0"


def main(_arguments=()) -> int:
    """The command; 1 when a crate's licence is not allowed."""
    done = subprocess.run(["cargo", "metadata", "--format-version=1", "--locked"], cwd=PROJECT, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure("cargo metadata: " + done.stderr.strip()[-500:])
    packages = json.loads(done.stdout)["packages"]
    bad = [f"{p['name']} {p['version']}: {p.get('license')}" for p in packages if not allowed(p.get("license") or "")]
    bad += [f"{p['name']}: the engine's crates are {OWN_ENGINE}" for p in packages
            if p["source"] is None and p.get("license") != OWN_ENGINE]
    for line in bad:
        print(f"  not allowed: {line}")
    print(f"{len(packages)} crates, {len(bad)} not allowed")
    outcomes = ["failed" if bad else "passed", cargo_deny()]
    print("licences: " + ", ".join(f"{outcomes.count(one)} {one}" for one in ("passed", "failed", "skipped")))
    return 1 if "failed" in outcomes else 0


def cargo_deny() -> str:
    """Licences, wildcard versions and sources, by deny.toml: passed, failed or skipped. Not its advisories: they take the network."""
    if not shutil.which("cargo-deny"):
        print("cargo-deny: skipped, it is not installed")
        return "skipped"
    words = ["cargo", "deny", "--offline", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]
    agrees = subprocess.run(words, cwd=PROJECT, check=False).returncode == 0
    print("cargo-deny agrees" if agrees else "cargo-deny does not agree")
    return "passed" if agrees else "failed"


def allowed(expression: str) -> bool:
    """Whether an SPDX expression can be met from the allow list."""
    expression = expression.replace("/", " OR ").strip()
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression)
    result, rest = either(tokens)
    return result and not rest


def either(tokens: list) -> tuple:
    """A OR B .."""
    result, tokens = both(tokens)
    while tokens and tokens[0] == "OR":
        other, tokens = both(tokens[1:])
        result = result or other
    return result, tokens


def both(tokens: list) -> tuple:
    """A AND B .."""
    result, tokens = single(tokens)
    while tokens and tokens[0] == "AND":
        other, tokens = single(tokens[1:])
        result = result and other
    return result, tokens


def single(tokens: list) -> tuple:
    """A licence, or an expression in parentheses."""
    if not tokens:
        return False, []
    if tokens[0] == "(":
        result, tokens = either(tokens[1:])
        return result, tokens[1:]
    return tokens[0] in ALLOWED, tokens[1:]
