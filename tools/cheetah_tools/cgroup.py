"""A memory cgroup for a server, page cache included, where this machine lets us have one (v1 or v2)."""

import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """A group with a limit; `remove` it after its last process ended."""

    def __init__(self, folder: Path):
        self.folder = folder

    def remove(self) -> None:
        """Delete the group."""
        try:
            self.folder.rmdir()
        except OSError:
            pass


def make(limit_bytes: int):
    """A group limited to `limit_bytes`, or None when none can be had."""
    name = f"cheetah-{os.getpid()}"
    for parent, control in ((ROOT / "memory", "memory.limit_in_bytes"), (ROOT, "memory.max")):
        folder = parent / name
        try:
            folder.mkdir()
            (folder / control).write_text(str(limit_bytes))
            return MemoryGroup(folder)
        except OSError:
            MemoryGroup(folder).remove()
    return None
