"""Describes what a run was measured on: machine, versions, and hashes of plugin and code."""

import hashlib
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from cheetah_tools import cgroup, device, setup
from cheetah_tools.build import commit_of_project
from cheetah_tools.paths import PLUGIN, PROJECT, SERVER, VAR

LIBRARIES = ("matplotlib", "numpy", "scipy", "pymysql")
CODE = ("lab/cheetah_lab", "tools/cheetah_tools", "tools/load")
CODE_ENDS = (".py", ".toml", ".sql", ".lua", ".cc")
# Parts of the lab that do not affect any value: they only interpret and show values.
NOT_MEASURING = ("report", "bench.py", "judge.py", "numbers.py", "progress.py",
                 "sections.py", "show.py")


def machine() -> dict:
    disk = shutil.disk_usage(VAR)
    return {"processor": _after_colon("/proc/cpuinfo", "model name") or platform.machine(),
            "cores": len(os.sched_getaffinity(0)), **device.price(VAR),
            "memory_bytes": int(_after_colon("/proc/meminfo", "MemTotal").split()[0]) * 1024,
            "system": _system(), "kernel": platform.release(), "file_system": _file_system(VAR),
            "disk_bytes": disk.total, "disk_free_bytes": disk.free}


def told(about: dict) -> str:
    if "read_cpu_us" not in about:
        return "what a read of the device costs was not measured"
    return (f"a read of 16 KiB past the page cache: {about['read_cpu_us']:.0f} us of a processor; "
            f"{about['reads_1']:,.0f} reads a second one by one, {about['reads_8']:,.0f} by eight "
            "threads. Where data are larger than memory, this decides more than anything else "
            "between an engine that reads more and one that computes more")


def versions() -> dict:
    state = setup.ensure()
    found = {"MariaDB": state["package_version"],
             "MyRocks": setup.absent().get("MyRocks") and "absent" or state["package_version"],
             "Cheetah": commit_of_project(), "sysbench": _sysbench(),
             "Python": platform.python_version()}
    return {**found, **{name: metadata.version(name) for name in LIBRARIES}}


def plugin() -> str:
    """Returns the hash of the plugin; empty if it was not built."""
    return hash_of(PLUGIN) if PLUGIN.exists() else ""


def hash_of(file: Path) -> str:
    """Returns the first 16 hexadecimal digits of a file's SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def plugin_file() -> tuple:
    """Returns what changes when the plugin is written, without reading it; empty without it."""
    try:
        found = PLUGIN.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def code(experiments: Path) -> str:
    """Returns the hash of all code that affects measurements, the load generator's included."""
    total = hashlib.sha256()
    for top in [*(PROJECT / name for name in CODE), experiments]:
        for file in sorted(top.rglob("*")):
            inside = file.relative_to(top)
            if file.suffix in CODE_ENDS and inside.parts[0] not in NOT_MEASURING:
                total.update(f"{inside}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def memory_group() -> str:
    """Returns the version of cgroups that limit the servers' memory, or "none" without them."""
    group = cgroup.make(1 << 30)
    if not group:
        return "none"
    version = group.version()
    group.remove()
    return version


def _after_colon(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _file_system(place: Path) -> str:
    """Returns the type of a folder's file system: of the mount with the longest path above it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(words[1]), words[2]) for words in mounts
             if place == Path(words[1]) or Path(words[1]) in place.parents]
    return max(above)[1] if above else ""


def _sysbench() -> str:
    done = subprocess.run([SERVER / "usr/bin/sysbench", "--version"],
                          env=setup.library_environment(), text=True, capture_output=True,
                          check=False)
    return done.stdout.strip().removeprefix("sysbench ")
