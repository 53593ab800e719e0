"""The crates that we build with may be linked, by the list of deny.toml; and `cheetah` and
`cheetah-io` as a registry would get them.

cargo-deny reads the list, too, where it is installed. Building it takes three minutes of a
processor, so nothing installs it here.
"""

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

REFUSED = 4          # how it ends when a licence is refused
LICENSES = tomllib.loads((PROJECT / "deny.toml").read_text())["licenses"]
ALLOWED = set(LICENSES["allow"])
# By crate: what tests alone are built with.
EXCEPTIONS = {one["crate"]: set(one["allow"]) for one in LICENSES["exceptions"]}
OWN_ENGINE = "MIT OR Apache-2.0"
CRATES = ("cheetah-io", "cheetah")
PACKED_BYTES_MAX = 2 << 20
# As in the workspace, so that dependencies that are compiled already are used again.
PROFILE = {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "line-tables-only"}


@pytest.fixture(scope="module")
def deny():
    """Runs cargo-deny's checks on a manifest, and returns the finished process."""
    program = installed()
    if not program:
        pytest.skip("cargo-deny is not installed")
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


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Both packages, unpacked: crate -> folder."""
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


def run(words: list, **settings: str) -> None:
    """Run a command of cargo in the project."""
    done = subprocess.run(words, cwd=PROJECT, env={**os.environ, **settings}, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


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
    # A registry has no paths: whatever is needed has a version.
    for kind in ("dependencies", "dev-dependencies"):
        for name, wanted in manifest.get(kind, {}).items():
            assert "version" in wanted and "path" not in wanted, name


def test_the_packages_compile(packages):
    """The library and its examples, with the other package in place of the registry's."""
    patch = f'patch.crates-io.cheetah-io.path="{packages["cheetah-io"]}"'
    run(["cargo", "check", "--quiet", "--offline", "--lib", "--examples", "--config", patch,
         "--manifest-path", str(packages["cheetah"] / "Cargo.toml")],
        CARGO_TARGET_DIR=str(TARGET), **PROFILE)


def test_every_crate_has_a_licence_of_the_list():
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


def test_the_list_refuses_apache_alone_and_allows_a_choice_with_mit():
    for good in ("MIT OR Apache-2.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0",
                 "Apache-2.0 WITH LLVM-exception"):
        assert allowed(good), good
    for bad in ("Apache-2.0", "MIT AND Apache-2.0", "GPL-3.0-only", ""):
        assert not allowed(bad), bad


def allowed(expression: str) -> bool:
    """Whether an SPDX expression can be met from the allow list: each licence becomes whether it is
    on it, and OR and AND are Python's."""
    words = re.sub(r"[^\s()]+(?: WITH [^\s()]+)?",
                   lambda word: {"OR": "or", "AND": "and"}.get(word[0], str(word[0] in ALLOWED)),
                   expression.replace("/", " OR "))
    return bool(words.strip()) and eval(words, {"__builtins__": {}})
