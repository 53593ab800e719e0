"""Seconds by the clock and of processor that ADD INDEX takes, in place, beside InnoDB in the same server; interleaved repeats.

    python3 tools/add_index_bench.py [rows] [repeats]

The table is that of sysbench (id, k, c CHAR(120), pad CHAR(60)) with one more text column in utf8mb4.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cheetah_tools.paths import VAR
from cheetah_tools.server import PrivateServer

STATEMENTS = {
    "k": ("ADD INDEX k (k)", "DROP INDEX k"),
    "k, c and both": ("ADD INDEX k (k), ADD INDEX c (c), ADD INDEX kc (k, c)", "DROP INDEX k, DROP INDEX c, DROP INDEX kc"),
    "utf8mb4 name": ("ADD INDEX name (name)", "DROP INDEX name"),
    "unique k, id": ("ADD UNIQUE ki (k, id)", "DROP INDEX ki"),
}
OPTIONS = {"loose_innodb_buffer_pool_size": "512M", "loose_cheetah_buffer_pool_size": "512M", "loose_innodb_log_file_size": "512M",
           "loose_innodb_sort_buffer_size": "1M"}


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(rows: int, repeats: int) -> None:
    """Prints a table."""
    folder = Path(tempfile.mkdtemp(prefix="add-index-", dir=VAR / "tmp"))
    server = PrivateServer(folder, OPTIONS)
    server.start()
    try:
        server.sql("CREATE DATABASE d")
        for engine in ("InnoDB", "CHEETAH"):
            server.sql(f"CREATE TABLE {engine} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) CHARACTER SET latin1 NOT NULL, pad CHAR(60) CHARACTER SET latin1 "
                       f"NOT NULL, name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci) ENGINE={engine}", "d")
            server.sql(f"INSERT INTO {engine} SELECT seq, seq * 2654435761 % 1000003, REPEAT(MD5(seq), 3), MD5(seq * 7), CONCAT('näme', MD5(seq * 11)) FROM seq_1_to_{rows}", "d")
        times = {}
        for _ in range(repeats):
            for what, (add, drop) in STATEMENTS.items():
                for engine in ("InnoDB", "CHEETAH"):
                    before, processor = time.time(), processor_seconds(server.process.pid)
                    server.sql(f"ALTER TABLE {engine} {add}, ALGORITHM=NOCOPY, LOCK=NONE", "d")
                    took = (time.time() - before, processor_seconds(server.process.pid) - processor)
                    times.setdefault((what, engine), []).append(took)
                    server.sql(f"ALTER TABLE {engine} {drop}", "d")
                    time.sleep(1)
        print(f"{rows:,} rows, {repeats} repeats: median (smallest..largest) seconds / processor seconds")
        for what in STATEMENTS:
            medians = []
            for engine in ("InnoDB", "CHEETAH"):
                clock, processor = zip(*times[what, engine])
                medians.append((statistics.median(clock), statistics.median(processor)))
                print(f"{what:15} {engine:8} {medians[-1][0]:6.2f} ({min(clock):.2f}..{max(clock):.2f}) / {medians[-1][1]:.2f} ({min(processor):.2f}..{max(processor):.2f})")
            print(f"{what:15} ratio    {medians[1][0] / medians[0][0]:6.2f} / {medians[1][1] / max(medians[0][1], 0.01):.2f}")
        print(server.sql("CHECK TABLE d.CHEETAH")[-1][3])
    finally:
        server.kill()
        server.remove()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
