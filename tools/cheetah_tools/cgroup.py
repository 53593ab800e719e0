"""A memory cgroup for a server, page cache included, where this machine allows one (v1 or v2); and
a limit on the I/O rate of a device, as rented disks have.

Memory in the group is not swapped out. Programs that the caller read earlier do not count, because
the kernel charges a page to its first reader."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from .paths import PROJECT
from .say import Failure

ROOT = Path("/sys/fs/cgroup")
LIMIT_SECONDS_MAX = 20
_numbers = itertools.count(1)   # a process may have several groups at once


class MemoryGroup:
    """A group with a limit; call `remove` after its last process ended."""

    def __init__(self, folder: Path):
        self.folder = folder

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def version(self) -> str:
        return "v2" if self._v2() else "v1"

    def usage(self) -> int:
        """Returns the bytes charged now: anonymous and the kernel's memory, and page cache."""
        return int(self._first("memory.usage_in_bytes", "memory.current").read_text())

    def file_bytes(self) -> int:
        return self._number("memory.stat", "cache", "file")

    def kills(self) -> int:
        """Returns the number of processes that the kernel killed for lack of memory."""
        return self._number(self._first("memory.oom_control", "memory.events").name, "oom_kill")

    def own_bytes(self) -> int:
        """Returns the bytes charged without page cache."""
        return max(0, self.usage() - self.file_bytes())

    def limit(self, limit_bytes: int) -> None:
        """Changes the limit, also for a running server. The kernel drops page cache that exceeds
        the limit; raises Failure if the rest does not fit. Blocks while the kernel writes out."""
        if self.own_bytes() >= limit_bytes:          # v2 would kill a process
            raise Failure(f"{limit_bytes >> 20} MiB are too little memory for this server: it has "
                          f"{self.own_bytes() >> 20} MiB of its own")
        if self.usage() > limit_bytes:
            os.sync()                                # dirty pages cannot be dropped
        deadline = time.monotonic() + LIMIT_SECONDS_MAX
        while True:
            try:
                return self._write(limit_bytes)
            except OSError as failure:               # v1: EBUSY if too little is free at once
                if time.monotonic() > deadline:
                    raise Failure("the kernel does not get this server's memory down to "
                                  f"{limit_bytes >> 20} MiB within {LIMIT_SECONDS_MAX} s "
                                  f"({failure.strerror}): it has {self.own_bytes() >> 20} MiB of "
                                  f"its own and {self.file_bytes() >> 20} MiB of page "
                                  "cache") from failure
                time.sleep(0.2)

    @contextlib.contextmanager
    def held(self, page_cache_bytes: int):
        """For the block, keeps the page cache at this many bytes (see `page_cache`), after a sync
        of the machine. The dictionary that this provides has the observed sizes after the block.
        Raises Failure if the page cache could not be kept small."""
        seen, limit = {}, self._first("memory.limit_in_bytes", "memory.max").read_text()
        os.sync()   # dirty pages cannot be dropped
        keeper = subprocess.Popen(
            [sys.executable, "-B", "-m", "cheetah_tools.page_cache", str(self.folder),
             str(page_cache_bytes), limit.strip().replace("max", "0")],
            cwd=PROJECT / "tools", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        try:
            keeper.stdout.readline()
            yield seen
        finally:
            told, wrong = keeper.communicate()   # ends its input
        if keeper.returncode:
            raise Failure(f"the page cache of {self.folder} could not be kept small: "
                          f"{wrong.strip().splitlines()[-1:]}")
        seen.update(json.loads(told))

    def _v2(self) -> bool:
        return (self.folder / "memory.max").exists()

    def _write(self, limit_bytes: int) -> None:
        if self._v2():
            (self.folder / "memory.max").write_text(str(limit_bytes))
            _write_if_there(self.folder / "memory.swap.max", 0)
            return
        memory, with_swap = (self.folder / "memory.limit_in_bytes",
                             self.folder / "memory.memsw.limit_in_bytes")
        # memsw must never be the smaller limit
        if with_swap.exists() and limit_bytes > int(with_swap.read_text()):
            with_swap.write_text(str(limit_bytes))
        memory.write_text(str(limit_bytes))
        _write_if_there(with_swap, limit_bytes)
        _write_if_there(self.folder / "memory.swappiness", 0)

    def _first(self, *names) -> Path:
        return next(self.folder / name for name in names if (self.folder / name).exists())

    def _number(self, file: str, *names) -> int:
        found = dict(line.split() for line in (self.folder / file).read_text().splitlines())
        return next((int(found[name]) for name in names if name in found), 0)


def make(limit_bytes: int):
    """Returns a group limited to `limit_bytes`, or None if cgroups are not available."""
    name = f"cheetah-{os.getpid()}-{next(_numbers)}"
    for parent in (ROOT / "memory", ROOT):
        group = MemoryGroup(parent / name)
        try:
            group.folder.mkdir()
            if any((group.folder / control).exists()
                   for control in ("memory.limit_in_bytes", "memory.max")):
                group.limit(limit_bytes)
                return group
        except (OSError, Failure):
            pass
        group.remove()
    return None


@contextlib.contextmanager
def rented_disk(pid: int, group: Path, place: Path, rate: int):
    """For the block, limits a process to `rate` reads and `rate` writes per second on the device of
    a folder; 0: no limit. `group` is the folder of the process's memory cgroup, which also limits
    the device if cgroups are v2. With v1, delayed writes of the page cache are not limited; direct
    I/O and syncs are. Raises Failure if the device cannot be limited."""
    if not rate:
        yield
        return
    device, why = device_of(place), no_rented_disk(place)
    if why:
        raise Failure(why)
    if (ROOT / "blkio").is_dir():
        own = ROOT / "blkio" / f"cheetah-{os.getpid()}-{next(_numbers)}"
        own.mkdir()
        try:
            for kind in ("read", "write"):
                (own / f"blkio.throttle.{kind}_iops_device").write_text(f"{device} {rate}")
            (own / "cgroup.procs").write_text(str(pid))
            yield
        finally:
            for running in (own / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):   # the process may just have ended
                    (ROOT / "blkio/cgroup.procs").write_text(running)
            own.rmdir()
        return
    try:
        (group / "io.max").write_text(f"{device} riops={rate} wiops={rate}")
        yield
    finally:
        (group / "io.max").write_text(f"{device} riops=max wiops=max")


def no_rented_disk(place: Path) -> str:
    """Returns why the device of a folder cannot be limited, or ""."""
    if not device_of(place):
        return f"the file system of {place} is on no single block device, so none can be limited"
    if (ROOT / "blkio").is_dir():
        return ("" if os.access(ROOT / "blkio", os.W_OK)
                else "the block cgroup cannot be written to: it takes root")
    group = make(64 << 20)
    if not group:
        return "no cgroup can be had here: it takes root, or a delegated one"
    has_control = (group.folder / "io.max").exists()
    group.remove()
    return "" if has_control else "cgroups have no io controller here: cgroup.subtree_control"


def device_of(place: Path) -> str:
    """Returns MAJOR:MINOR of the disk of a folder's file system; empty if it has no such device."""
    number = os.stat(place).st_dev
    known = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not known.exists():
        return ""
    known = known.resolve()
    return ((known.parent if (known / "partition").exists() else known) / "dev").read_text().strip()


def sweep() -> None:
    """Deletes empty groups of this process and of processes that have ended."""
    for folder in [*(ROOT / "memory").glob("cheetah-*-*"), *(ROOT / "blkio").glob("cheetah-*-*"),
                   *ROOT.glob("cheetah-*-*")]:
        owner = folder.name.split("-")[1]
        if owner.isdigit() and (owner == str(os.getpid()) or not Path(f"/proc/{owner}").exists()):
            MemoryGroup(folder).remove()


def _write_if_there(control: Path, number: int) -> None:
    if control.exists():
        control.write_text(str(number))
