"""Measures what a read of the device costs here: reads per second, and processor time of a read of
16 KiB past the page cache, at random positions.

The cost decides how engines compare where data are larger than memory: an engine that reads less,
but computes more for it, wins where a read is expensive."""

import mmap
import os
import random
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FILE_BYTES = 64 << 20
READ_BYTES = 16 << 10
TRIES, SECONDS = 3, 0.2   # the best try counts, because other programs use the machine too
THREADS = 8


def price(folder: Path) -> dict:
    """Returns `reads_1` and `reads_8`, the reads per second of one thread and eight, and
    `read_cpu_us`, a read's processor time; or nothing. Blocks for a second; writes a file."""
    place = folder / f"device-{os.getpid()}"
    try:
        with open(place, "wb") as out:
            for _ in range(FILE_BYTES >> 20):
                out.write(os.urandom(1 << 20))   # random bytes, so that no layer below stores holes
            out.flush()
            os.fsync(out.fileno())
        file = os.open(place, os.O_RDONLY | os.O_DIRECT)
        try:
            alone, together = ([reads(file, threads) for _ in range(TRIES)]
                               for threads in (1, THREADS))
            return {"reads_1": max(rate for rate, _ in alone),
                    "reads_8": max(rate for rate, _ in together),
                    "read_cpu_us": min(cpu_us for _, cpu_us in alone)}
        finally:
            os.close(file)
    except OSError:
        return {}
    finally:
        place.unlink(missing_ok=True)


def reads(file: int, threads: int) -> tuple:
    """Returns the reads per second of so many threads, and processor microseconds per read."""
    before, began = used(), time.monotonic()

    def read(which: int) -> int:
        numbers, buffer = random.Random(which), mmap.mmap(-1, READ_BYTES)   # aligned
        count = 0
        while time.monotonic() - began < SECONDS:
            os.preadv(file, [buffer], numbers.randrange(FILE_BYTES // READ_BYTES) * READ_BYTES)
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        count = sum(pool.map(read, range(threads)))
    seconds = time.monotonic() - began
    return count / seconds, (used() - before) / count * 1e6


def used() -> float:
    """Returns this process's processor seconds so far."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime
