"""Keeps the page cache of a memory cgroup small, in a process of its own: `python3 -m
cheetah_tools.page_cache GROUP BYTES LIMIT`.

What there is beyond BYTES goes, fifty times a second, until standard input ends. It prints a line
after the first time, and at the end what it saw before each cut, as JSON: `median` and `most`
(bytes of page cache), `cuts`, and `failed` (those after which more was left: dirty pages cannot go
at once). The kernel does it when a limit is set below the usage, which holds for this moment alone:
a limit that low would also kill the programs of the group, or fail their reads, when their own
memory grows. LIMIT is what the group has otherwise (v1).
"""

import json
import os
import select
import signal
import statistics
import sys
from pathlib import Path

CUT_SECONDS = 0.02


class Keeper:
    """The files of a group, open."""

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
        """Bytes of page cache."""
        lines = os.pread(self.stat, 1 << 16, 0).splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == self.cache)

    def cut(self, page_cache_bytes: int) -> None:
        """Have page cache go until so many bytes are left, as far as it can."""
        file_bytes = self.file_bytes()
        self.seen.append(file_bytes)
        if file_bytes <= page_cache_bytes:
            return
        own_bytes = max(0, int(os.pread(self.usage, 64, 0)) - file_bytes)
        self.cuts += 1
        try:
            os.pwrite(self.control, str(own_bytes + page_cache_bytes).encode(), 0)
        except OSError:   # v1 says that not enough went; v2 does not
            pass
        finally:
            os.pwrite(self.control, self.otherwise, 0)
        self.failed += self.file_bytes() > page_cache_bytes


def main(arguments: list) -> None:
    """The command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # who started it ends it
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
