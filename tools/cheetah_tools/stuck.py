"""Describes what the processes of a hanging command do, for the log of an unattended test."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

GDB_SECONDS_MAX = 60    # for all processes together
STOP_SECONDS_MAX = 30


def descendants(pid: int) -> list:
    """Returns a process and all its descendants; parents precede their children."""
    found = [pid]
    for parent in found:
        for thread in Path(f"/proc/{parent}/task").glob("*"):
            found += [int(child) for child in read(thread / "children").split()
                      if int(child) not in found]
    return found


def describe(pid: int) -> str:
    """Describes each process below `pid` with its threads: names (of tests in Rust), states, and
    waits in the kernel; with gdb, which stops them, backtraces. Blocks for a minute at most."""
    lines, deadline = [], time.monotonic() + GDB_SECONDS_MAX
    for process in descendants(pid):
        words = read(Path(f"/proc/{process}/cmdline")).replace("\0", " ").strip()
        lines.append(f"process {process}: {words[:200]}")
        threads = sorted(Path(f"/proc/{process}/task").glob("*"))
        for thread in threads:
            state = read(thread / "stat").rpartition(")")[2].split()[:1]
            lines.append(f"  {read(thread / 'comm').strip():<16} {' '.join(state)} "
                         f"{read(thread / 'wchan')}")
        if len(threads) > 1 and shutil.which("gdb"):
            lines.append(backtraces(process, deadline - time.monotonic()))
    return "\n".join(lines) + "\n"


def backtraces(pid: int, seconds: float) -> str:
    """Returns gdb's backtraces of all threads; gdb may take this many seconds."""
    if seconds <= 0:
        return f"no time is left for gdb: {GDB_SECONDS_MAX} s went to the processes before"
    words = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all backtrace 25"]
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired:
        return f"gdb was not done after {seconds:.0f} s"


def stop(process: subprocess.Popen) -> None:
    """Ends a process and its descendants with SIGTERM, half a minute later with SIGKILL."""
    below = descendants(process.pid)
    signal_all(below, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while any(is_alive(pid) for pid in below) and time.monotonic() < deadline:
        process.poll()
        time.sleep(0.1)
    signal_all(below, signal.SIGKILL)
    process.wait()


def signal_all(pids: list, number: int) -> None:
    """Sends a signal to those processes that still exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """Returns whether a process has not ended; a zombie has ended."""
    return read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] not in ([], ["Z"])


def read(path: Path) -> str:
    """Returns a file of /proc; empty if its process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
