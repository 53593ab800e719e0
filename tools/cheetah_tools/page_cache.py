"""Keeps the page cache of a memory cgroup small, in its own process: `python3 -m
cheetah_tools.page_cache GROUP BYTES LIMIT`.

Cuts the page cache to BYTES fifty times a second, until standard input ends. Prints a line after
the first cut, and at the end JSON with the observations before each cut: `median` and `most` (bytes
of page cache), `cuts`, and `failed` (the cuts after which more than BYTES remained, because dirty
pages cannot be dropped at once). The kernel drops pages when a limit is set below the usage. The
limit is raised again at once: if it stayed that low, the kernel would kill the group's programs, or
fail their reads, when their own memory grows. LIMIT is the group's normal limit (v1)."""

import json
import os
import select
import signal
import statistics
import sys
from pathlib import Path

CUT_SECONDS = 0.02


class Keeper:
    def __init__(self, folder: Path, limit_bytes: int):
        is_v2 = (folder / "memory.max").exists()
        usage, self.cache, control = (("memory.current", b"file", "memory.high") if is_v2
                                      else ("memory.usage_in_bytes", b"cache",
                                            "memory.limit_in_bytes"))
        self.usage, self.stat = (os.open(folder / name, os.O_RDONLY)
                                 for name in (usage, "memory.stat"))
        self.control, self.otherwise = (os.open(folder / control, os.O_WRONLY),
                                        b"max" if is_v2 else str(limit_bytes).encode())
        self.seen, self.failed, self.cuts = [], 0, 0

    def file_bytes(self) -> int:
        lines = os.pread(self.stat, 1 << 16, 0).splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == self.cache)

    def cut(self, page_cache_bytes: int) -> None:
        """Makes the kernel drop page cache down to this many bytes, as far as possible."""
        file_bytes = self.file_bytes()
        self.seen.append(file_bytes)
        if file_bytes <= page_cache_bytes:
            return
        own_bytes = max(0, int(os.pread(self.usage, 64, 0)) - file_bytes)
        self.cuts += 1
        try:
            os.pwrite(self.control, str(own_bytes + page_cache_bytes).encode(), 0)
        except OSError:   # v1 fails if the kernel did not free enough; v2 does not
            pass
        finally:
            os.pwrite(self.control, self.otherwise, 0)
        self.failed += self.file_bytes() > page_cache_bytes


def main(arguments: list) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # the parent process ends it
    keeper, page_cache_bytes = Keeper(Path(arguments[0]), int(arguments[2])), int(arguments[1])
    keeper.cut(page_cache_bytes)
    keeper.seen.clear()
    print("begun", flush=True)
    while not select.select([sys.stdin], [], [], CUT_SECONDS)[0]:
        keeper.cut(page_cache_bytes)
    print(json.dumps({"median": statistics.median(keeper.seen or [0]),
                      "most": max(keeper.seen, default=0), "cuts": keeper.cuts,
                      "failed": keeper.failed}))


if __name__ == "__main__":
    main(sys.argv[1:])
