"""One engine in one repeat of one experiment: private servers with equal memory and guarantees.

All engines read and write their data past the page cache, as in production use. While an experiment
prepares (bulk loads, merges, sorts), a memory cgroup limits all memory, page cache included,
generously. Measurements with data larger than the cache are `held`: the page cache, which logs
still use, is then small and has the same limit for every engine, like the engine's own cache."""

import contextlib
import random
import time
from dataclasses import dataclass
from pathlib import Path

from cheetah_tools import cgroup, setup
from cheetah_tools.engines import available, equal_memory
from cheetah_tools.paths import PLUGIN, SERVER
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer

LOOSE_BYTES = 384 << 20         # in addition to the cache, while not held
PAGE_CACHE_BYTES = 24 << 20     # while held
REST_SECONDS_MAX = 60
LOG_BYTES = 256 << 20
# The pages that InnoDB keeps free. The default, 1536, is more than the whole of a small cache.
FREE_PAGES_MIN = {"innodb_lru_scan_depth": 100}
PROGRAMS = [SERVER / "usr/sbin/mariadbd", SERVER / "usr/lib/mysql/plugin/ha_rocksdb.so", PLUGIN]


class Refused(Exception):
    """The engine is absent here, or refuses the tables. Its column shows the reason."""


@dataclass
class Memory:
    """The memory of one server. `group` is None where cgroups are not available."""

    group: cgroup.MemoryGroup
    cache_bytes: int

    def loosen(self) -> None:
        if self.group:
            self.group.limit(self.cache_bytes + LOOSE_BYTES)

    def check(self) -> None:
        if self.group and self.group.kills():
            raise Failure("the kernel killed the server, which needed more than the "
                          f"{(self.cache_bytes + LOOSE_BYTES) >> 20} MiB of memory that a load "
                          f"with a cache of {self.cache_bytes >> 20} MiB may take")


class Trial:
    """The argument of `Experiment.run`. Everything that a trial starts ends with it."""

    def __init__(self, engine, scale, repeat: int, chosen: bool, folder: Path,
                 on_step=lambda text: None):
        """`chosen`: requested, so not only for the documents' figures. `folder`: empty, for
        servers, removed by the caller. `on_step` receives the current step."""
        self.engine, self.scale, self.repeat, self.chosen = engine, scale, repeat, chosen
        self.folder, self.on_step = folder, on_step
        self.commands = []      # for the page: what a person would type to see the same result
        self.remarks = []       # for the page: what a reader of the values must know
        self.limited = None     # whether memory cgroups limited its servers, page cache included
        self.held_phases = []                   # see store.py
        self.rng = random.Random(repeat)        # the same rows for every engine of a repeat
        self._servers, self._memory = 0, {}     # number of servers so far; server -> Memory

    @property
    def family(self) -> str:
        return self.engine.family

    def step(self, text: str) -> None:
        self.on_step(text)

    def did(self, command: str) -> None:
        """Saves a statement or a command line for the page, once."""
        if command not in self.commands:
            self.commands.append(command)

    @contextlib.contextmanager
    def server(self, memory_bytes: int, **options):
        """Provides a started server for this engine with a cache of `memory_bytes`; it is stopped
        and removed after the block. Raises Refused if the server does not have the engine."""
        if self.family in setup.absent():
            raise Refused(f"{self.family} is not on this machine: {setup.absent()[self.family]}")
        self._servers += 1
        # The kernel charges a page to its first reader. Reading the programs here prevents the
        # first server of a run from being charged for them.
        for program in PROGRAMS:
            if program.exists():
                program.read_bytes()
        group = cgroup.make(memory_bytes + LOOSE_BYTES)
        self.limited = group is not None and self.limited is not False
        server = PrivateServer(self.folder / f"server{self._servers}",
                               self._settings(memory_bytes, options),
                               plugin=self.engine.plugin or False,
                               cgroup=group.folder if group else None)
        memory = self._memory[server] = Memory(group, memory_bytes)
        try:
            self._start(server)
            yield server
            server.stop()
            memory.check()
        except Exception:
            memory.check()                      # more informative than a lost connection
            raise
        finally:
            server.kill()
            server.remove()
            del self._memory[server]
            if group:
                group.remove()

    def pause(self) -> None:
        for server in self._memory:
            if server.process:
                server.pause()

    def resume(self) -> None:
        for server in self._memory:
            if server.process:
                server.resume()

    def _start(self, server) -> None:
        try:
            server.start()
        except Failure as failure:
            # not for other failures, such as a full disk or a slow start
            if "unknown variable 'rocksdb" in str(failure) or "ha_rocksdb.so" in str(failure):
                raise Refused(f"the server does not start with it: {failure}") from failure
            raise
        if not available(server, [self.engine]):
            raise Refused(f"this server does not have the engine {self.engine.name}")

    def restart(self, server, memory_bytes: int, **options) -> None:
        """Restarts the server on its data with another cache and only these options, unheld."""
        server.stop()
        memory = self._memory[server]
        memory.cache_bytes = memory_bytes
        memory.loosen()
        server.options = self._settings(memory_bytes, options)
        server.start()

    @contextlib.contextmanager
    def held(self, server, database: str, phase: str, page_cache_bytes: int = PAGE_CACHE_BYTES):
        """For the block, limits the server's page cache, so that data that do not fit into the
        engine's cache come from the disk. At the end, records the bytes of the tables and of the
        memory for the report. Without a memory cgroup nothing is limited, which is recorded. Blocks
        for a sync of the machine, and for some seconds at the end."""
        memory = self._memory[server]
        with (memory.group.held(page_cache_bytes) if memory.group
              else contextlib.nullcontext({})) as seen:
            yield
            own_bytes = memory.group.own_bytes() if memory.group else server.anonymous_bytes()
            on_disk = (server.status("Cheetah_segment_live_bytes") if self.family == "Cheetah"
                       else self.engine.bytes_on_disk(server, database))   # without old images
        memory.loosen()
        self.held_phases.append({"phase": phase, "on_disk": on_disk, "cache": memory.cache_bytes,
                                 "page_cache": seen.get("median"),
                                 "page_cache_most": seen.get("most"), "own": own_bytes})

    def rented_disk(self, server, rate: int):
        """For a block, limits the device's reads and writes per second; 0: no limit."""
        return cgroup.rented_disk(server.process.pid, server.cgroup, self.folder, rate)

    def bytes_at_rest(self, server, database: str) -> int:
        """Returns the tables' bytes on disk once all is written out and replaced data are removed
        (some seconds). If this takes too long, a remark says so, with the bytes then."""
        self.engine.settle(server)
        deadline, before = time.monotonic() + REST_SECONDS_MAX, -1
        while ((now := self.engine.bytes_on_disk(server, database)) != before
                or self._has_remains(server)):
            if time.monotonic() > deadline:
                old = "; most of them are old images" if self._has_remains(server) else ""
                self.remarks.append(f"not at rest after {REST_SECONDS_MAX} s, repeat "
                                    f"{self.repeat + 1}: measured with {now:,} bytes of files{old}")
                break
            before = now
            time.sleep(0.5)
            if self.family == "Cheetah":
                self.engine.flush(server)
        return now

    def _has_remains(self, server) -> bool:
        """Returns whether most of Cheetah's file is old images, which checkpoints remove."""
        return (self.family == "Cheetah"
                and (server.status("Cheetah_segment_live_bytes")
                     < server.status("Cheetah_segment_bytes") / 2))

    def _settings(self, memory_bytes: int, options: dict) -> dict:
        return {**equal_memory(memory_bytes), "innodb_buffer_pool_chunk_size": 1 << 20,
                **FREE_PAGES_MIN, "innodb_log_file_size": LOG_BYTES,
                "loose_cheetah_log_size_max": LOG_BYTES,
                **self.engine.server_options(memory_bytes), **options}
