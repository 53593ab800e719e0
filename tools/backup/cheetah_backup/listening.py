"""Runs mariadb-backup, and listens so that commits wait less while it blocks them.

Near the end it blocks commits, and stops its thread that copies InnoDB's log: it wakes the thread,
says so, and looks whether the thread has ended. If not, it sleeps for 200 ms, with commits blocked.
The thread needs some milliseconds, so that was two backups in three. Here its words go through a
pipe that keeps messages apart, and at that place holds a single one. The message before is taken a
little late. So it waits at its words, and the thread has the time.

Nothing but time depends on its wording. Source: pipe(7), packet mode and capacity.
"""

import contextlib
import fcntl
import os
import select
import subprocess
import time

MESSAGE_BYTES_MAX = 1 << 16
# What it says when commits are blocked, and before the last message that comes before the place.
BLOCKED, NEAR = b"Acquired locks for BACKUP STAGE BLOCK_COMMIT", b"Flushed Logs"
HELD_SECONDS = 0.02


def run(command: list, environment: dict) -> tuple:
    """Run the program to its end; its status, and what it said on both of its outputs. `OSError`
    where it cannot be started."""
    read_end, write_end = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
    with open(read_end, "rb", buffering=0) as heard:
        try:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=write_end, stderr=subprocess.STDOUT)
        finally:
            os.close(write_end)
        try:
            said = b"".join(messages(heard))
        except BaseException:
            process.kill()
            process.wait()
            raise
    return process.wait(), said.decode(errors="replace")


def messages(heard):
    """Its messages, one by one."""
    usual_bytes = fcntl.fcntl(heard, fcntl.F_GETPIPE_SZ)
    is_blocked = False
    while message := heard.read(MESSAGE_BYTES_MAX):
        yield message
        is_blocked = is_blocked or BLOCKED in message
        if is_blocked:
            set_capacity(heard, select.PIPE_BUF)
        if is_blocked and NEAR in message:
            is_blocked = False
            select.select([heard], [], [])
            time.sleep(HELD_SECONDS)
            set_capacity(heard, usual_bytes)


def set_capacity(pipe, capacity_bytes: int) -> None:
    """How much the pipe holds. It stays as it is while messages are in the way."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, capacity_bytes)
