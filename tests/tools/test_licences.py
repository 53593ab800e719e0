"""Licences of every crate we link: each must allow use in a GPL-2.0-only plugin.

The list is in deny.toml. test_crates.py has cargo-deny read it where that is installed: building
it takes longer than all other checks.
"""

import json
import re
import subprocess
import tomllib

from cheetah_tools.paths import PROJECT

LICENSES = tomllib.loads((PROJECT / "deny.toml").read_text())["licenses"]
ALLOWED = set(LICENSES["allow"])
# By crate: what tests alone are built with.
EXCEPTIONS = {one["crate"]: set(one["allow"]) for one in LICENSES["exceptions"]}
OWN_ENGINE = "MIT OR Apache-2.0"


def test_every_crate_may_be_linked():
    """Those of others by the allow list; our own have the engine's licence."""
    done = subprocess.run(["cargo", "metadata", "--format-version=1", "--locked"], cwd=PROJECT,
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = json.loads(done.stdout)["packages"]
    names = {f"{p['name']} {p['version']}: {p.get('license')}": p for p in packages}
    assert not [name for name, p in names.items() if not allowed(p.get("license") or "")
                and p.get("license") not in EXCEPTIONS.get(p["name"], ())]
    assert not [name for name, p in names.items()
                if p["source"] is None and p.get("license") != OWN_ENGINE]


def test_apache_alone_is_refused_and_a_choice_with_mit_is_not():
    for good in ("MIT OR Apache-2.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0",
                 "Apache-2.0 WITH LLVM-exception"):
        assert allowed(good), good
    for bad in ("Apache-2.0", "MIT AND Apache-2.0", "GPL-3.0-only", ""):
        assert not allowed(bad), bad


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
