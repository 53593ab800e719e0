"""Licences of every crate we build with: cargo-deny, by deny.toml.

It is installed where the machine has none, with cargo, as a build tool: that takes three minutes of
a processor, once.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cheetah_tools.paths import PROJECT

VERSION = "0.20.2"   # of cargo-deny, where none is installed
REFUSED = 4          # how it ends when a licence is refused


@pytest.fixture(scope="module")
def deny():
    """Runs cargo-deny's checks on a manifest, and returns the finished process."""
    program = installed() or install()
    def run(manifest: Path, *checks: str):
        words = [program, "--offline", "--config", str(PROJECT / "deny.toml"),
                 "--manifest-path", str(manifest), "check", "--hide-inclusion-graph", *checks]
        return subprocess.run(words, text=True, capture_output=True, check=False)
    return run


def installed() -> str | None:
    """The machine's cargo-deny."""
    places = [os.environ["PATH"], str(cargo_home() / "bin")]
    return shutil.which("cargo-deny", path=os.pathsep.join(places))


def cargo_home() -> Path:
    """Where cargo installs programs."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


def install() -> str:
    """Build cargo-deny quickly rather than well; skip the test if that is not possible here."""
    environment = {name: text for name, text in os.environ.items() if name != "CARGO_TARGET_DIR"}
    done = subprocess.run(["nice", "cargo", "install", "--locked", "--quiet", "--profile", "dev",
                           "--version", VERSION, "cargo-deny"],
                          env=environment, text=True, capture_output=True, check=False)
    if done.returncode != 0 or not installed():
        pytest.skip(f"cargo cannot install cargo-deny {VERSION} here: {done.stderr[-200:].strip()}")
    return installed()


def test_every_crate_may_be_linked(deny):
    """Licences, wildcard versions and sources; not advisories: their list needs a network."""
    done = deny(PROJECT / "Cargo.toml", "licenses", "bans", "sources")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("licence", "is_allowed"), [
    ("MIT OR Apache-2.0", True), ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
    ("Apache-2.0 WITH LLVM-exception", True), ("Apache-2.0", False), ("MIT AND Apache-2.0", False),
    ("MPL-2.0", False), ("GPL-3.0-only", False), ("", False)])
def test_apache_alone_is_refused_and_a_choice_with_mit_is_not(deny, tmp_path, licence, is_allowed):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text("")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "other"\nversion = "1.0.0"\nedition = "2021"\n'
        + (f'license = "{licence}"\n' if licence else ""))
    done = deny(tmp_path / "Cargo.toml", "licenses")
    assert done.returncode == (0 if is_allowed else REFUSED), done.stderr
