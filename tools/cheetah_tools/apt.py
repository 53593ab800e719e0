"""A private view of the machine's package archives.

The machine's own apt sources are copied into `var/apt` with source packages enabled. The machine's
package set-up does not change, and no archive is named here: proxies, keys and credentials are the
machine's. Works without root, and where `apt-get update` was never run.

Packages of another Debian release come from the same archives: the copied sources then name that
release instead of the machine's."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from .paths import APT
from .say import Failure, note

MACHINE_SOURCES = Path("/etc/apt")


class Archive:
    """apt-get and apt-cache on private lists, cache and sources of one Debian release."""

    def __init__(self, release: str = ""):
        """`release` is a code name; empty means this machine's release."""
        self.release = release or machine_release()
        self.folder = APT if self.release == machine_release() else APT / self.release
        self.pinned = {}   # name of a file -> SHA-256; see `pin`
        self.sources = self.folder / "sources"
        settings = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": self.sources,
                    "Dir::State::lists": self.folder / "lists",
                    "Dir::State::status": self.folder / "status",
                    "Dir::Cache": self.folder / "cache", "Dir::Log": self.folder / "log",
                    "APT::Sandbox::User": "root", "Acquire::Languages": "none",
                    "Acquire::Retries": "3"}
        self.options = [f"-o{key}={value}" for key, value in settings.items()]

    def update(self) -> None:
        shutil.rmtree(self.sources, ignore_errors=True)
        for name in ("sources", "lists/partial", "cache/archives/partial", "log"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()   # nothing is installed, so apt chooses the newest version
        if not copy_sources(self.sources, self.release):
            raise Failure(f"no usable package source in {MACHINE_SOURCES}/sources.list or "
                          "sources.list.d/*: this set-up needs a Debian machine with apt sources")
        done = self._run("apt-get", "update", "-q")
        if done.returncode != 0:
            # A broken third-party source must not stop set-up: missing packages fail on request.
            note("some package sources could not be read; trying with the rest")
            note(last_lines(done.stderr, 3))

    def versions(self, package: str) -> list:
        """Returns the available versions, newest first as apt orders them, without duplicates."""
        lines = self._run("apt-cache", "madison", package).stdout.splitlines()
        found = [line.split("|")[1].strip() for line in lines
                 if line.count("|") == 2 and "Packages" in line]
        return list(dict.fromkeys(found))

    def depends(self, package: str) -> list:
        """Returns the dependencies of a package's newest version; of alternatives, the first."""
        shown = self._run("apt-cache", "show", "--no-all-versions", package).stdout
        found = re.search(r"^Depends: (.*)$", shown, re.M)
        return [re.split(r"[ :|(]", choice.strip())[0]
                for choice in (found.group(1).split(",") if found else [])]

    def pin(self, lock: Path) -> str:
        """Lets `download` find the files of a lock, missing in the lists. Returns their version."""
        lines = [line.split() for line in lock.read_text().splitlines() if not line.startswith("#")]
        self.pinned = {name: checksum for checksum, name in lines[1:]}
        return lines[0][1]

    def fetch_pinned(self, name: str, beside: str, folder: Path) -> None:
        """Fetches a file of the lock from the location of the package `beside`."""
        listed = self._run("apt-get", "download", "--print-uris", beside).stdout
        found = re.match(r"'(\S+/)[^/]+'", listed)
        if not found:
            raise Failure(f"the archive's lists do not name {beside}")
        target = folder / name
        self._run("/usr/lib/apt/apt-helper", "download-file", found.group(1) + name, str(target),
                  f"SHA256:{self.pinned[name]}")
        if not target.exists():
            raise Failure(f"the archive has no {name} any more, or another one")

    def download(self, packages: list, folder: Path) -> list:
        """Fetches .deb files (`name` or `name=version`); raises Failure if any is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.iterdir())
        pinned = {package: name for package in packages if "=" in package
                  for name in self.pinned
                  if name.startswith(re.sub(r"=(\d+:)?", "_", package) + "_")}
        for package, name in pinned.items():
            self.fetch_pinned(name, package.split("=")[0], folder)
        packages = [package for package in packages if package not in pinned]
        if not packages:
            return sorted(set(folder.iterdir()) - before)
        done = self._run("apt-get", "download", "-q", *packages, cwd=folder)
        if done.returncode != 0:
            raise Failure(f"cannot download {', '.join(packages)}:\n{last_lines(done.stderr, 6)}")
        return sorted(set(folder.iterdir()) - before) or sorted(folder.glob("*.deb"))

    def download_source(self, package: str, version: str, folder: Path) -> str:
        """Fetches a source package into `folder`; returns "" or the reason of a failure."""
        folder.mkdir(parents=True, exist_ok=True)
        done = self._run("apt-get", "source", "-q", "--download-only", f"{package}={version}",
                         cwd=folder)
        return "" if done.returncode == 0 else last_lines(done.stderr, 2)

    def _run(self, tool: str, *arguments, cwd=None):
        if not shutil.which(tool):
            raise Failure(f"{tool} not found: this set-up needs a Debian machine")
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run([tool, *self.options, *arguments], cwd=cwd, env=environment,
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)


def last_lines(text: str, count: int) -> str:
    """Returns the end of a tool's output, with URLs shortened to the file's name."""
    lines = [line for line in text.strip().splitlines() if line.strip()][-count:]
    return "\n".join(re.sub(r"\b[a-z+-]+://\S*/", "../", line) for line in lines)


def machine_release() -> str:
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def copy_sources(target: Path, release: str) -> int:
    """Writes the machine's enabled sources, with source packages; returns the number of files."""
    files = [MACHINE_SOURCES / "sources.list",
             *sorted((MACHINE_SOURCES / "sources.list.d").glob("*"))]
    written = 0
    for number, file in enumerate(files):
        if file.suffix not in (".list", ".sources"):
            continue
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        text = one_line_sources(text) if file.suffix == ".list" else deb822_sources(text)
        if release != machine_release():
            text = of_release(text, machine_release(), release)
        if text.strip():
            (target / f"{number:02}-{file.stem}{file.suffix}").write_text(text)
            written += 1
    return written


def of_release(text: str, machine: str, release: str) -> str:
    """Returns the sources of the machine's release, with the other release's name instead."""
    suite = re.compile(rf"(?<![\w-]){re.escape(machine)}(?![\w.])")
    parts = re.split(r"(\n\s*\n)" if re.search("^Types:", text, re.M) else r"(\n)", text)
    return "".join(suite.sub(release, part) for part in parts
                   if suite.search(part) or not part.strip())


def one_line_sources(text: str) -> str:
    """Returns the `deb ...` lines, each with its `deb-src` twin, without removable media."""
    kept = []
    for line in text.splitlines():
        words = line.split("#")[0].strip()
        if words.startswith("deb ") and "cdrom:" not in words:
            kept += [words, "deb-src" + words[3:]]
    return "\n".join(kept) + "\n"


def deb822_sources(text: str) -> str:
    """Returns the enabled stanzas with `Types: deb deb-src`."""
    kept = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip()
                  for line in lines if ":" in line and not line[0].isspace()}
        if ("deb" not in fields.get("types", "").split()
                or fields.get("enabled", "yes").lower() in ("no", "false")):
            continue
        body = [line for line in lines if not line.lower().startswith("types:")]
        kept.append("\n".join(["Types: deb deb-src", *body]))
    return "\n\n".join(kept) + "\n"
