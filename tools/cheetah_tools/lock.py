"""`cheetah.py lock`: rewrites the locks of the virtual environment, for x86_64 Linux.

The `.in` files name libraries; the locks pin these and all their dependencies, with the hash of the
wheel for each Python that can run the tools. Only `--upgrade` changes versions in the locks."""

import json
import sys
import tempfile
from pathlib import Path

from .environment import APPS_LOCK, LOCK, TEST_LOCK, call, pinned
from .paths import show

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64"]


def main(arguments: list) -> int:
    """Runs the command. It queries the package index and downloads only metadata."""
    base = [] if "--upgrade" in arguments else pinned(LOCK) + pinned(TEST_LOCK)
    found = locked(LOCK.with_suffix(".in"), base)
    LOCK.write_text(text(found))
    shared = [f"{name}=={version}" for name, version in found]
    both = locked(TEST_LOCK.with_suffix(".in"), [*base, *shared])
    TEST_LOCK.write_text(text({key: both[key] for key in both if key not in found}))
    kept = [] if "--upgrade" in arguments or not APPS_LOCK.exists() else pinned(APPS_LOCK)
    APPS_LOCK.write_text(text(locked(APPS_LOCK.with_suffix(".in"), kept)))
    print(f"written: {show(LOCK)}, {show(TEST_LOCK)}, {show(APPS_LOCK)}")
    return 0


def locked(wanted: Path, pins: list) -> dict:
    """Returns (name, version) -> hashes of all that `wanted` needs. `pins`: versions to keep."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "pins"), Path(folder, "report")
        constraints.write_text("\n".join(sorted(set(pins))))
        for python in PYTHONS:
            call([sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed",
                  "--quiet", "--only-binary=:all:", "--python-version", python, "--target", folder,
                  *[f"--platform={name}" for name in PLATFORMS], "--report", str(report),
                  "--requirement", str(wanted), "--constraint", str(constraints)],
                 f"cannot find what {show(wanted)} needs under Python {python}")
            for item in json.loads(report.read_text())["install"]:
                key = item["metadata"]["name"].lower(), item["metadata"]["version"]
                digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
                found.setdefault(key, set()).add(digest)
    return found


def text(found: dict) -> str:
    lines = ["# Written by `python3 tools/cheetah.py lock`; do not edit."]
    for (name, version), hashes in sorted(found.items()):
        lines.append(" \\\n".join([f"{name}=={version}",
                                  *(f"    --hash=sha256:{each}" for each in sorted(hashes))]))
    return "\n".join(lines) + "\n"
