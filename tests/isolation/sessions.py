"""Runs sessions of one server step by step: a statement answers or is observed to wait.

A wait is observed, not inferred from elapsed time: the connection's thread in the server sleeps
(state S in /proc), and several checks in a row find no context switch. A thread that computes or
waits for a processor has state R, a thread that waits for the disk state D. So the result does not
depend on an engine's own reports, and a slow statement is not mistaken for a waiting one."""

import select
import time
from pathlib import Path

from cheetah_tools.say import Failure

DEADLOCK = 1213
LOOK_SECONDS = 0.002
LOOKS_ASLEEP = 5
SETTLE_SECONDS = 120
LATE_SECONDS = 10   # less than the lock wait timeout
LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
# Commits do not wait for the disk, so a sleeping thread waits for a lock.
OPTIONS = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M",
           "innodb_flush_log_at_trx_commit": 0,
           "innodb_stats_persistent": 0, "innodb_stats_auto_recalc": 0,
           "loose_cheetah_stats_auto_recalc": 0, "loose_cheetah_buffer_pool_size": "64M",
           "loose_cheetah_flush_log_at_trx_commit": 0, "max_connections": 200,
           "performance_schema": "OFF", "query_cache_size": 0}


class Outcome:
    """The result of a statement: rows, the number of rows it changed, or an error."""

    def __init__(self, error: int = 0, rows=None, affected: int = 0, message: str = "",
                 insert_id: int = 0):
        self.error, self.rows, self.affected, self.message, self.insert_id = (
            error, rows, affected, message, insert_id)

    def key(self) -> tuple:
        """Returns the values on which two engines must agree."""
        return (self.error,
                None if self.rows is None else tuple(sorted(self.rows, key=repr)), self.affected)

    def text(self) -> str:
        if self.error:
            return f"error {self.error}"
        if self.rows is None:
            return f"affected {self.affected}"
        return ("no rows" if not self.rows
                else " ".join("(" + ", ".join(map(str, row)) + ")" for row in self.rows))


class Session:
    """One connection, with at most one running statement."""

    def __init__(self, server, name: str, database: str, settings=()):
        self.server, self.name = server, name
        self.connection = server.connect(database)
        self.pending = False
        for text in settings:
            self.ask(text)
        thread = self.ask("SELECT tid FROM information_schema.processlist "
                          "WHERE id = CONNECTION_ID()").rows[0][0]
        self.status_file = Path(f"/proc/{server.process.pid}/task/{thread}/status")

    def send(self, text: str) -> None:
        from pymysql.constants import COMMAND
        if self.pending:
            raise Failure(f"session {self.name} was sent a statement while another one waits")
        self.connection._execute_command(COMMAND.COM_QUERY, text)
        self.pending = True

    def fileno(self) -> int:
        """Lets `select` wait for the connection."""
        return self.connection._sock.fileno()

    def take(self) -> Outcome:
        """Returns the answer; blocks until it arrives."""
        import pymysql
        self.pending = False
        try:
            affected = self.connection._read_query_result()
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as failure:
            if failure.args[0] in (0, 2006, 2013) or self.server.died():
                raise Failure(f"the server was lost: {failure}\n"
                              f"{self.server.log_tail(30)}") from failure
            return Outcome(failure.args[0], message=str(failure.args[1]))
        except pymysql.MySQLError as failure:
            return Outcome(failure.args[0], message=str(failure.args[1]))
        result = self.connection._result
        if result.description:
            return Outcome(rows=tuple(result.rows or ()))
        return Outcome(affected=affected, insert_id=result.insert_id)

    def ask(self, text: str) -> Outcome:
        """Sends a statement that cannot wait, and returns its outcome."""
        self.send(text)
        return self.take()

    def must(self, text: str) -> Outcome:
        """Like `ask`, but raises `Failure` if the statement returns an error."""
        outcome = self.ask(text)
        if outcome.error:
            raise Failure(f"{text}: error {outcome.error}: {outcome.message}")
        return outcome

    def sleep_mark(self):
        """Returns a value that stays the same while the server's thread sleeps; None if awake."""
        state = switches = None
        for line in self.status_file.read_text().splitlines():
            if line.startswith("State:"):
                state = line.split()[1]
            elif "ctxt_switches" in line:
                switches = (switches or 0) + int(line.split()[1])
        return switches if state == "S" else None

    def close(self) -> None:
        """Closes the connection, which rolls back an open transaction."""
        try:
            self.connection.close()
        except Exception:  # already closed
            pass


def settle(sessions) -> list:
    """Waits until every session has answered or sleeps; returns (session, outcome) as they came."""
    answered, marks = [], {}
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        pending = [session for session in sessions if session.pending]
        if not pending:
            return answered
        ready = select.select(pending, [], [], LOOK_SECONDS)[0]
        if ready:
            answered += [(session, session.take()) for session in ready]
            marks.clear()   # an answer may have woken other sessions
            continue
        for session in pending:
            mark, (old, looks) = session.sleep_mark(), marks.get(session, (None, 0))
            marks[session] = (mark, looks + 1 if mark is not None and mark == old else 0)
        if all(looks >= LOOKS_ASLEEP for _, looks in marks.values()):
            return answered
        if time.monotonic() > deadline:
            raise Failure(f"no rest within {SETTLE_SECONDS} s: "
                          + ", ".join(s.name for s in pending))


class Entry:
    """One step of a script: its outcome (None while it waits) and the entries that it unblocked."""

    def __init__(self, number: int, name: str, text: str):
        self.number, self.name, self.text = number, name, text
        self.outcome, self.waited, self.deferred = None, False, False
        self.woke = []   # entries of earlier steps that were answered at this step

    def key(self) -> tuple:
        """Returns the values on which two engines must agree at this step."""
        # A later answer is in `woke` of the step that unblocked this one.
        later = self.waited or self.deferred or self.outcome is None
        return (self.waited and not self.deferred, self.deferred,
                None if later else self.outcome.key(),
                tuple(sorted((entry.number, entry.outcome.key()) for entry in self.woke)))

    def has_deadlock(self) -> bool:
        """Returns whether the statement was answered at once with a deadlock."""
        return (not self.waited and not self.deferred and self.outcome is not None
                and self.outcome.error == DEADLOCK)

    def text_of(self) -> str:
        now = "deferred" if self.deferred else "waits" if self.waited else self.outcome.text()
        then = "".join(f"; {entry.name}'s step {entry.number} goes on: {entry.outcome.text()}"
                       for entry in self.woke)
        return now + then


class Play:
    """Runs (session, statement) steps. A step whose session waits is deferred."""

    def __init__(self, sessions: dict, impatient=()):
        self.sessions = sessions
        # A step that makes one of these sessions wait lasts until its lock wait timeout.
        self.impatient = set(impatient)
        self.entries, self.queues, self.under_way = [], {name: [] for name in sessions}, {}

    @classmethod
    def of(cls, server, database: str, names, steps, settings=()) -> list:
        """Runs the steps in new sessions' transactions, rolls back, and returns the entries."""
        play = cls({name: Session(server, name, database, settings) for name in names})
        try:
            for session in play.sessions.values():
                session.ask("BEGIN")
            play.run(steps)
            play.finish()
        finally:
            for session in play.sessions.values():
                session.close()
        return play.entries

    def run(self, steps, first: int = 0) -> list:
        for number, (name, text) in enumerate(steps, first):
            entry = Entry(number, name, text)
            self.entries.append(entry)
            self.queues[name].append(entry)
            if self.sessions[name].pending or len(self.queues[name]) > 1:
                entry.deferred = True
            else:
                self.advance(entry)
        return self.entries

    def advance(self, cause: Entry) -> None:
        """Sends statements until every session has answered or waits; `cause` gets the wakeups."""
        while True:
            free = [name for name, queue in self.queues.items()
                    if queue and not self.sessions[name].pending]
            if not free:
                break
            entry = self.under_way[free[0]] = self.queues[free[0]].pop(0)
            self.sessions[free[0]].send(entry.text)
            self.collect(cause)

    def collect(self, cause: Entry) -> None:
        """Collects answers until the sessions are at rest."""
        for session, outcome in settle(self.sessions.values()):
            self.answer(session, outcome, cause)
        for name in [name for name in self.under_way if name in self.impatient]:
            session = self.sessions[name]
            self.answer(session, session.take(), cause)
            for other, outcome in settle(self.sessions.values()):
                self.answer(other, outcome, cause)
        for entry in self.under_way.values():
            entry.waited = True

    def answer(self, session: Session, outcome: Outcome, cause: Entry) -> None:
        entry = self.under_way.pop(session.name)
        entry.outcome = outcome
        if entry is not cause:
            cause.woke.append(entry)

    def steps(self, steps: list):
        """Yields these steps, then a ROLLBACK for each session as soon as it is free. Statements
        that are still deferred after the last step are dropped."""
        yield from steps
        for queue in self.queues.values():
            queue.clear()
        left = list(self.sessions)
        while left:
            name = next((name for name in left if not self.sessions[name].pending), None)
            if name is None:
                self.take_late()
                continue
            left.remove(name)
            yield name, "ROLLBACK"

    def take_late(self) -> None:
        """Takes late answers. No session holds a lock any more, so a session that seems to wait for
        a lock is only slow: its thread sleeps until a busy machine runs the thread it waits for."""
        late = select.select([session for session in self.sessions.values() if session.pending],
                             [], [], LATE_SECONDS)[0]
        if not late:
            raise Failure("sessions wait though every other transaction has ended: "
                          + ", ".join(self.under_way))
        for session in late:
            self.answer(session, session.take(), self.entries[-1])

    def finish(self) -> None:
        for step in self.steps([]):
            self.run([step], len(self.entries))
