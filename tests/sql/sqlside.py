"""One run of an SQL script on one engine, and a record of everything that a client can see."""

import re
import threading
import time
from collections import namedtuple

import sqlshell
from cheetah_tools.say import Failure
from cheetah_tools.server import connect

DATABASE = "sqltest"
SETTINGS = [
    "SET time_zone = '+00:00'", "SET timestamp = 1700000000", "SET group_concat_max_len = 1000000",
    "SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET innodb_strict_mode = 1", "SET lock_wait_timeout = 20", "SET innodb_lock_wait_timeout = 20"]
WAIT_SECONDS = 30
Record = namedtuple("Record", "step lines error", defaults=[0])
# Statements whose row counts depend on the engine's choice to copy a table or change it in place.
COPIES = re.compile(r"^\s*(ALTER|CREATE\s+(UNIQUE\s+)?INDEX|DROP\s+INDEX)\b", re.I)
LOST_CONNECTION = {0, 2006, 2013}
DEFINITION_CHANGED, INSUFFICIENT_HISTORY = 1412, 159


class Lost(Exception):
    """The server is gone."""


class Side:
    def __init__(self, server, engine: str, folder):
        self.server, self.engine, self.folder = server, engine, folder
        self.connections, self.numbers, self.sent = {}, {}, {}
        self.current, self.records = "default", []

    def prepare(self) -> None:
        drop_databases(self.server)
        self.server.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 "
                        "COLLATE utf8mb4_general_ci")

    def run(self, steps: list) -> list:
        """Runs all steps for this engine and returns their records."""
        try:
            for step in steps:
                self.step(step)
            self.check_tables()
        finally:
            self.close(*self.connections)
        return self.records

    def step(self, step) -> None:
        if not step.action:
            self.statement(step)
        elif step.action == "connection":
            self.current = step.text
        elif step.action == "disconnect":
            self.close(step.text)
        elif step.action == "reap":
            self.reap(step)
        elif step.action == "wait":
            self.wait(step)
        elif step.action in ("restart", "kill"):
            self.close(*self.connections)
            self.server.stop() if step.action == "restart" else self.server.kill()
            self.server.start()
        else:
            self.records.append(Record(step, sqlshell.run(self, step.text)))

    def statement(self, step) -> None:
        """Runs a statement, or starts it if its answer is read later."""
        text = self.fill(step.text)
        connection = self.connection()
        if "send" in step.options:
            self.sent[self.current] = (step, Sent(connection, text))
        else:
            self.records.append(record(step, self.engine, *ask(connection, text)))

    def reap(self, step) -> None:
        if self.current not in self.sent:
            raise Failure(f"line {step.line}: nothing was sent on connection {self.current}")
        sent, answer = self.sent.pop(self.current)
        self.records.append(record(sent, self.engine, *answer.result()))

    def wait(self, step) -> None:
        """Waits until the query's result is not 0, on a connection apart from transactions."""
        query = self.fill(step.text)
        deadline = time.monotonic() + WAIT_SECONDS
        while not int(self.server.value(query) or 0):
            if time.monotonic() > deadline:
                self.records.append(Record(step, ["waited in vain"]))
                return
            time.sleep(0.02)

    def check_tables(self) -> None:
        tables = self.server.sql("SELECT table_name FROM information_schema.tables "
                                 f"WHERE table_schema = '{DATABASE}' "
                                 "AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1")
        for (name,) in tables:
            quoted = name.replace("`", "``")
            for row in self.server.sql(f"CHECK TABLE `{DATABASE}`.`{quoted}` EXTENDED"):
                if row[2] == "error" or (row[2] == "status" and row[3] != "OK"):
                    raise Failure(f"CHECK TABLE {name} after the script, on {self.engine}: "
                                  f"{row[3]}")

    def fill(self, text: str) -> str:
        text = (text.replace("$ENGINE", self.engine).replace("$DB", DATABASE)
                .replace("$FOLDER", str(self.folder)))
        return re.sub(r"\$ID\((\w+)\)", lambda found: str(self.numbers[found.group(1)]), text)

    def connection(self):
        if self.current not in self.connections:
            opened = connect(self.server.socket, DATABASE, conv={}, use_unicode=False,
                             local_infile=True, read_timeout=120)
            with opened.cursor() as cursor:
                for text in [*SETTINGS, f"SET default_storage_engine = {self.engine}",
                             "SET cheetah_lock_wait_timeout = 20"]:
                    try:
                        cursor.execute(text)
                    except Exception:  # this server lacks Cheetah
                        pass
            self.connections[self.current] = opened
            self.numbers[self.current] = opened.thread_id()
        return self.connections[self.current]

    def close(self, *names: str) -> None:
        """Closes connections, and waits for each until the server has removed it."""
        for name in names:
            connection = self.connections.pop(name, None)
            self.sent.pop(name, None)
            try:
                connection.close()
            except Exception:  # not opened, or already closed
                continue
            number, deadline = self.numbers[name], time.monotonic() + WAIT_SECONDS
            while (time.monotonic() < deadline and not self.server.died() and self.server.value(
                    f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {number}")):
                time.sleep(0.005)


class Sent(threading.Thread):
    """A statement that runs in a thread until its answer is read."""

    def __init__(self, connection, text: str):
        super().__init__(daemon=True)
        self.connection, self.text, self.answer, self.failure = connection, text, None, None
        self.start()

    def run(self) -> None:
        try:
            self.answer = ask(self.connection, self.text)
        except Exception as failure:  # handed to the thread that reaps
            self.failure = failure

    def result(self) -> tuple:
        """Returns the outcome of the statement. Raises Lost if the server is gone."""
        self.join(150)
        if self.failure:
            raise self.failure
        return self.answer


def drop_databases(server) -> None:
    for (name,) in server.sql("SHOW DATABASES LIKE 'sqltest%'"):
        server.sql(f"DROP DATABASE `{name.replace('`', '``')}`")


def ask(connection, text: str) -> tuple:
    """Returns error number, message, result sets, affected rows, info text and warnings."""
    import pymysql
    cursor = connection.cursor()
    error, message, results, affected, info, warned = 0, "", [], 0, "", 0
    try:
        affected = cursor.execute(text)
        while True:
            # PyMySQL's public API has neither the info text nor the warning count.
            result = cursor._result
            # The text is still preceded by its length.
            info, warned = shown((result.message or b"")[1:]), result.warning_count or 0
            if cursor.description:
                results.append(([shown(column[0]) for column in cursor.description],
                                list(cursor.fetchall())))
            if not cursor.nextset():
                break
    except pymysql.MySQLError as failure:
        error = failure.args[0] if failure.args and isinstance(failure.args[0], int) else 0
        message = str(failure.args[-1]) if failure.args else repr(failure)
        if error in LOST_CONNECTION:
            raise Lost(message) from failure
    finally:
        cursor.close()
    warnings = warnings_of(connection) if error or warned else []
    return error, message, results, affected, info, warnings


def warnings_of(connection) -> list:
    """Returns SHOW WARNINGS as (level, number, message)."""
    import pymysql
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW WARNINGS")
            return [tuple(map(shown, row)) for row in cursor.fetchall()]
    except pymysql.MySQLError as failure:
        raise Lost(str(failure)) from failure


def record(step, engine: str, error: int, message: str, results: list, affected: int, info: str,
           warnings: list) -> Record:
    """Returns the lines to compare."""
    lines = []
    if "any" in step.options:
        return Record(step, [])
    by_number = "numbers" in step.options
    if error:
        lines.append(f"error {error}" + ("" if by_number else f": {message}"))
    if "ignore" not in step.options:
        for head, rows in results:
            lines += result_lines(step, head, rows)
        if not error and not results and not COPIES.match(step.text):
            lines.append(f"affected {affected}" + (f" ({info})" if info else ""))
        # Without InnoDB's extra warnings about a snapshot that is too old: it warns about indexes
        # and once for each layer of the server that reports the error.
        lines += [f"{level.lower()} {number}" + ("" if by_number else f": {text}")
                  for level, number, text in warnings
                  if not (error and int(number) == error and level == "Error")
                  and error != DEFINITION_CHANGED and int(number) != INSUFFICIENT_HISTORY]
    engine_name = re.compile(rf"\b{re.escape(engine)}\b", re.I)
    return Record(step, [engine_name.sub("ENGINE", line) for line in lines], error)


def result_lines(step, head: list, rows: list) -> list:
    """Returns a result set as text. The rows are sorted if their order is not compared."""
    chosen = range(len(head))
    if "columns" in step.options:
        wanted = [name.strip().lower() for name in step.options["columns"].split(",")]
        chosen = [index for index, name in enumerate(head) if name.lower() in wanted]
    lines = ["\t".join(shown(row[index]) for index in chosen) for row in rows]
    return ([" | ".join(head[index] for index in chosen)]
            + (lines if step.in_order() else sorted(lines)))


def shown(value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").replace("\n", "\\n").replace("\t", "\\t")
    return str(value)
