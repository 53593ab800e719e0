"""A memory cgroup for a server, page cache included, where this machine lets us have one (v1 or
v2); and a limit on what its device may do, as of disks that are rented.

Nothing in it is swapped out. Programs that the caller has read before are not counted: the kernel
charges a page to whoever reads it first.
"""

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
    """A group with a limit; `remove` it after its last process ended."""

    def __init__(self, folder: Path):
        self.folder = folder

    def remove(self) -> None:
        """Delete the group."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def version(self) -> str:
        """v1 or v2."""
        return "v2" if self._v2() else "v1"

    def usage(self) -> int:
        """Bytes that count now: anonymous memory, the kernel's for it, and page cache."""
        return int(self._first("memory.usage_in_bytes", "memory.current").read_text())

    def file_bytes(self) -> int:
        """Bytes of page cache."""
        return self._number("memory.stat", "cache", "file")

    def kills(self) -> int:
        """Processes that the kernel has killed for want of memory."""
        return self._number(self._first("memory.oom_control", "memory.events").name, "oom_kill")

    def own_bytes(self) -> int:
        """Bytes that count, without page cache: programs' own memory, and the kernel's for them."""
        return max(0, self.usage() - self.file_bytes())

    def limit(self, limit_bytes: int) -> None:
        """Change the limit, of a running server, too. What the page cache has beyond it goes;
        Failure when the rest does not fit. Blocks while the kernel writes out."""
        if self.own_bytes() >= limit_bytes:          # v2 would kill for it
            raise Failure(f"{limit_bytes >> 20} MiB are too little memory for this server: it has "
                          f"{self.own_bytes() >> 20} MiB of its own")
        if self.usage() > limit_bytes:
            os.sync()                                # dirty pages cannot go
        deadline = time.monotonic() + LIMIT_SECONDS_MAX
        while True:
            try:
                return self._write(limit_bytes)
            except OSError as failure:               # v1: EBUSY when not enough goes at once
                if time.monotonic() > deadline:
                    raise Failure("the kernel does not get this server's memory down to "
                                  f"{limit_bytes >> 20} MiB within {LIMIT_SECONDS_MAX} s "
                                  f"({failure.strerror}): it has {self.own_bytes() >> 20} MiB of "
                                  f"its own and {self.file_bytes() >> 20} MiB of page "
                                  "cache") from failure
                time.sleep(0.2)

    @contextlib.contextmanager
    def held(self, page_cache_bytes: int):
        """For the block, keep the page cache to so many bytes, as `page_cache` says; what that saw
        is in the dictionary that this gives, once the block has ended. Begins with a sync of the
        whole machine. Failure when nothing could be kept."""
        seen = {}
        os.sync()   # dirty pages cannot go
        keeper = subprocess.Popen(
            [sys.executable, "-B", "-m", "cheetah_tools.page_cache", str(self.folder),
             str(page_cache_bytes), str(self._limit_bytes())],
            cwd=PROJECT / "tools", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        try:
            keeper.stdout.readline()
            yield seen
        finally:
            told, wrong = keeper.communicate()   # its input ends
        if keeper.returncode:
            raise Failure(f"the page cache of {self.folder} could not be kept small: "
                          f"{wrong.strip().splitlines()[-1:]}")
        seen.update(json.loads(told))

    def _limit_bytes(self) -> int:
        return int(self._first("memory.limit_in_bytes", "memory.max").read_text()
                   .replace("max", "0"))

    def _v2(self) -> bool:
        return (self.folder / "memory.max").exists()

    def _write(self, limit_bytes: int) -> None:
        if self._v2():
            (self.folder / "memory.max").write_text(str(limit_bytes))
            _write_if_there(self.folder / "memory.swap.max", 0)
            return
        memory, with_swap = (self.folder / "memory.limit_in_bytes",
                             self.folder / "memory.memsw.limit_in_bytes")
        # must never be the smaller one
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
    """A group limited to `limit_bytes`, or None when none can be had."""
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
    """For the block, a process reads and writes at most so many times a second each on the device
    of a folder; 0: as often as it can. `group`: its memory cgroup's folder, which limits the
    device, too, where cgroups are of v2. With v1, what the kernel writes later for the page cache
    is not limited; direct I/O and syncs are. Failure where that cannot be had."""
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
                with contextlib.suppress(OSError):   # it may just have ended
                    (ROOT / "blkio/cgroup.procs").write_text(running)
            own.rmdir()
        return
    try:
        (group / "io.max").write_text(f"{device} riops={rate} wiops={rate}")
        yield
    finally:
        (group / "io.max").write_text(f"{device} riops=max wiops=max")


def no_rented_disk(place: Path) -> str:
    """Why the device of a folder cannot be limited here; else empty."""
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
    """MAJOR:MINOR of the whole disk that a folder's file system is on; empty when that is no block
    device."""
    number = os.stat(place).st_dev
    known = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not known.exists():
        return ""
    known = known.resolve()
    return ((known.parent if (known / "partition").exists() else known) / "dev").read_text().strip()


def sweep() -> None:
    """Delete the groups without processes of runs that have ended, and of this one."""
    for folder in [*(ROOT / "memory").glob("cheetah-*-*"), *(ROOT / "blkio").glob("cheetah-*-*"),
                   *ROOT.glob("cheetah-*-*")]:
        owner = folder.name.split("-")[1]
        if owner.isdigit() and (owner == str(os.getpid()) or not Path(f"/proc/{owner}").exists()):
            MemoryGroup(folder).remove()


def _write_if_there(control: Path, number: int) -> None:
    if control.exists():
        control.write_text(str(number))
