"""Runs mariadb-backup and reads its output such that it blocks commits for a shorter time.

Near its end, mariadb-backup blocks commits and stops its thread that copies InnoDB's log: it wakes
the thread, prints a message, and checks whether the thread has ended. If not, it sleeps for 200 ms
while commits are blocked. The thread needs some milliseconds to end, so two of three backups slept.
Here the output goes through a pipe in packet mode, which at this point has room for a single
message. The previous message is read with a short delay, so mariadb-backup waits in its write and
the thread has time to end.

If a message's words change, only this saving of time is lost. Source: pipe(7), mode and capacity.
"""

import contextlib
import fcntl
import os
import select
import subprocess
import time

MESSAGE_BYTES_MAX = 1 << 16
# The message after commits are blocked, and the last but one before the program wakes the thread.
BLOCKED, NEAR = b"Acquired locks for BACKUP STAGE BLOCK_COMMIT", b"Flushed Logs"
HELD_SECONDS = 0.02


def run(command: list, environment: dict) -> tuple:
    """Runs the program to its end; returns its status and its output on both streams."""
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
    """Sets the pipe's capacity, unless the unread messages do not fit in it."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, capacity_bytes)
