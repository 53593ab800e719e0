"""A private view of the machine's package archives.

The machine's own apt sources are copied into `var/apt` with source packages switched on, so that
nothing of the machine's package set-up changes and no archive is named here: proxies, keys and
credentials are the machine's. Works without root, and where `apt-get update` was never run.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from .paths import APT
from .say import Failure, note

MACHINE_SOURCES = Path("/etc/apt")


class Archive:
    """apt-get and apt-cache on private lists, cache and sources."""

    def __init__(self):
        self.sources = APT / "sources"
        self.options = []
        for key, value in {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": self.sources,
            "Dir::State::lists": APT / "lists",
            "Dir::Cache": APT / "cache",
            "Dir::Log": APT / "log",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }.items():
            self.options += ["-o", f"{key}={value}"]

    def update(self) -> None:
        """Copy the machine's sources and fetch their indexes."""
        shutil.rmtree(self.sources, ignore_errors=True)
        for folder in (self.sources, APT / "lists" / "partial", APT / "cache" / "archives" / "partial", APT / "log"):
            folder.mkdir(parents=True, exist_ok=True)
        if not copy_sources(self.sources):
            raise Failure(f"no usable package source in {MACHINE_SOURCES}/sources.list or sources.list.d/*: "
                          "this set-up needs a Debian 12 machine with apt sources")
        done = self._run("apt-get", "update", "-q")
        if done.returncode != 0:
            # One broken third-party source must not stop us: what is missing shows when it is asked
            # for.
            note("some package sources could not be read; trying with the rest")
            note(last_lines(done.stderr, 3))

    def versions(self, package: str) -> list:
        """Versions on offer, newest first as apt orders them, without repeats."""
        lines = self._run("apt-cache", "madison", package).stdout.splitlines()
        found = [line.split("|")[1].strip() for line in lines if line.count("|") == 2 and "Packages" in line]
        return list(dict.fromkeys(found))

    def depends(self, package: str) -> list:
        """What the newest version of a package depends on: the first of each list of choices."""
        shown = self._run("apt-cache", "show", "--no-all-versions", package).stdout
        found = re.search(r"^Depends: (.*)$", shown, re.M)
        return [re.split(r"[ :|(]", choice.strip())[0]
                for choice in (found.group(1).split(",") if found else [])]

    def download(self, packages: list, folder: Path) -> list:
        """Fetch .deb files (`name` or `name=version`) into `folder`; Failure if any is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.iterdir())
        done = self._run("apt-get", "download", "-q", *packages, cwd=folder)
        if done.returncode != 0:
            raise Failure("cannot download " + ", ".join(packages) + ":\n" + last_lines(done.stderr, 6))
        return sorted(set(folder.iterdir()) - before) or sorted(folder.glob("*.deb"))

    def download_source(self, package: str, version: str, folder: Path) -> str:
        """Fetch a source package into `folder`; an empty string, or why it cannot be had."""
        folder.mkdir(parents=True, exist_ok=True)
        done = self._run("apt-get", "source", "-q", "--download-only", f"{package}={version}", cwd=folder)
        return "" if done.returncode == 0 else last_lines(done.stderr, 2)

    def _run(self, tool: str, *arguments, cwd=None):
        if not shutil.which(tool):
            raise Failure(f"{tool} not found: this set-up needs a Debian 12 machine")
        words = [tool, *map(str, self.options), *arguments]
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(words, cwd=cwd, env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)


def last_lines(text: str, count: int) -> str:
    """The end of a tool's output, addresses shortened to the file's name."""
    lines = [line for line in text.strip().splitlines() if line.strip()][-count:]
    return "\n".join(re.sub(r"\b[a-z+-]+://\S*/", "../", line) for line in lines)


def copy_sources(target: Path) -> int:
    """Write every enabled source of the machine into `target` with its sources; how many files."""
    files = [MACHINE_SOURCES / "sources.list", *sorted((MACHINE_SOURCES / "sources.list.d").glob("*"))]
    written = 0
    for number, file in enumerate(files):
        if file.suffix not in (".list", ".sources"):
            continue
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        text = one_line_sources(text) if file.suffix == ".list" else deb822_sources(text)
        if text.strip():
            (target / f"{number:02}-{file.stem}{file.suffix}").write_text(text)
            written += 1
    return written


def one_line_sources(text: str) -> str:
    """`deb ...` lines, each with its `deb-src` twin; without media that are not on the network."""
    kept = []
    for line in text.splitlines():
        words = line.split("#")[0].strip()
        if words.startswith("deb ") and "cdrom:" not in words:
            kept += [words, "deb-src" + words[3:]]
    return "\n".join(kept) + "\n"


def deb822_sources(text: str) -> str:
    """Stanzas that are enabled, with `Types: deb deb-src`."""
    kept = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip()
                  for line in lines if ":" in line and not line[0].isspace()}
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        body = [line for line in lines if not line.lower().startswith("types:")]
        kept.append("\n".join(["Types: deb deb-src", *body]))
    return "\n\n".join(kept) + "\n"
