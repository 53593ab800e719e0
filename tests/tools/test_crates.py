"""Tests that deny.toml allows every crate that we link, and tests our crates' packages.

If cargo-deny is installed, it checks deny.toml too. Building cargo-deny takes three minutes of
processor time, so the tests do not install it."""

import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
from cheetah_tools.paths import PROJECT, TARGET

REFUSED = 4          # cargo-deny's exit status when it refuses a licence
LICENSES = tomllib.loads((PROJECT / "deny.toml").read_text())["licenses"]
ALLOWED = set(LICENSES["allow"])
# Additional licences by crate, for crates that only the tests use.
EXCEPTIONS = {one["crate"]: set(one["allow"]) for one in LICENSES["exceptions"]}
OWN_ENGINE = "MIT OR Apache-2.0"
CRATES = ("cheetah-io", "cheetah")
PACKED_BYTES_MAX = 2 << 20
# The workspace's profile, so that compiled dependencies can be reused.
PROFILE = {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "line-tables-only"}


@pytest.fixture(scope="module")
def deny():
    """Returns a function that runs cargo-deny on a manifest and returns the finished process."""
    program = installed()
    if not program:
        pytest.skip("cargo-deny is not installed")
    def run(manifest: Path, *checks: str):
        words = [program, "--offline", "--config", str(PROJECT / "deny.toml"),
                 "--manifest-path", str(manifest), "check", "--hide-inclusion-graph", *checks]
        return subprocess.run(words, text=True, capture_output=True, check=False)
    return run


def installed() -> str | None:
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return shutil.which("cargo-deny", path=f"{os.environ['PATH']}{os.pathsep}{home / 'bin'}")


def test_every_crate_may_be_linked(deny):
    """Checks licences, wildcard versions and sources. Advisories need a network."""
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


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    place = tmp_path_factory.mktemp("packages")
    words = ["cargo", "package", "--quiet", "--offline", "--no-verify", "--allow-dirty"]
    words += [word for crate in CRATES for word in ("--package", crate)]
    run(words, CARGO_TARGET_DIR=str(place))
    folders = {}
    for packed in (place / "package").glob("*.crate"):
        assert packed.stat().st_size < PACKED_BYTES_MAX, packed.name
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
        crate = packed.stem.rsplit("-", 1)[0]
        folders[crate] = place / packed.stem
    assert sorted(folders) == sorted(CRATES)
    return folders


def run(words: list, **settings: str) -> str:
    done = subprocess.run(words, cwd=PROJECT, env={**os.environ, **settings}, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("crate", CRATES)
def test_a_package_says_what_it_is_and_has_its_sources_and_licences(packages, crate):
    folder = packages[crate]
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    told = manifest["package"]
    for word in ("description", "license", "readme", "rust-version", "keywords", "categories"):
        assert told.get(word), word
    for name in ("README.md", "LICENSE-MIT", "LICENSE-Apache-2.0"):
        assert (folder / name).read_text()
    source = PROJECT / "crates" / crate / "src"
    assert ({path.relative_to(source) for path in source.rglob("*.rs")}
            == {path.relative_to(folder / "src") for path in (folder / "src").rglob("*.rs")})
    # A registry has no paths, so every dependency needs a version.
    for kind in ("dependencies", "dev-dependencies"):
        for name, wanted in manifest.get(kind, {}).items():
            assert "version" in wanted and "path" not in wanted, name


def test_the_packages_compile(packages):
    """Checks the library and its examples, with the other package in place of the registry's."""
    patch = f'patch.crates-io.cheetah-io.path="{packages["cheetah-io"]}"'
    run(["cargo", "check", "--quiet", "--offline", "--lib", "--examples", "--config", patch,
         "--manifest-path", str(packages["cheetah"] / "Cargo.toml")],
        CARGO_TARGET_DIR=str(TARGET), **PROFILE)


def test_every_crate_has_a_licence_of_the_list():
    packages = json.loads(run(["cargo", "metadata", "--format-version=1", "--locked"]))["packages"]
    names = {f"{p['name']} {p['version']}: {p.get('license')}": p for p in packages}
    assert not [name for name, p in names.items() if not allowed(p.get("license") or "")
                and p.get("license") not in EXCEPTIONS.get(p["name"], ())]
    assert not [name for name, p in names.items()
                if p["source"] is None and p.get("license") != OWN_ENGINE]


def test_the_list_refuses_apache_alone_and_allows_a_choice_with_mit():
    for good in ("MIT OR Apache-2.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0",
                 "Apache-2.0 WITH LLVM-exception"):
        assert allowed(good), good
    for bad in ("Apache-2.0", "MIT AND Apache-2.0", "GPL-3.0-only", ""):
        assert not allowed(bad), bad


def allowed(expression: str) -> bool:
    """Returns whether the allow list satisfies an SPDX expression: each licence is replaced with
    whether it is on the list, and Python evaluates OR and AND."""
    words = re.sub(r"[^\s()]+(?: WITH [^\s()]+)?",
                   lambda word: {"OR": "or", "AND": "and"}.get(word[0], str(word[0] in ALLOWED)),
                   expression.replace("/", " OR "))
    return bool(words.strip()) and eval(words, {"__builtins__": {}})
