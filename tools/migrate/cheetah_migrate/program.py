"""The commands and options of cheetah-migrate."""

import argparse
import getpass
import re
import signal
import sys

from cheetah_client.connection import Connection, Lost, ServerError, text, value
from cheetah_client.options import add_connection, add_files, byte_count, connect
from cheetah_client.say import Failure, line, several, show_table, size, span

from . import estimate, orphans, tables
from .convert import Conversion, same
from .journal import DATABASE, Journal
from .plan import CHEETAH, INNODB, Plan, Selection, make_plan
from .tables import SYSTEM, Place

ABOUT = """Brings tables, with the foreign keys between them, from InnoDB to Cheetah and back.

The server refuses ALTER TABLE .. ENGINE for tables that foreign keys connect. This program takes
such tables together: it writes their constraints into a journal in the server (the database
cheetah_migrate), drops them, converts the tables, and adds the constraints again; the server checks
all rows then. Tables that cannot go stay, with those that are connected to them, and it says why.
"""
EXAMPLES = """examples:
  cheetah-migrate plan shop                what goes, what stays, how large, how long
  cheetah-migrate run shop                 do it
  cheetah-migrate run shop.a crm.b         two tables alone
  cheetah-migrate run --to innodb shop     and back
  cheetah-migrate status                   what is under way, and what was done
  cheetah-migrate resume                   go on after a kill, an error or Ctrl-C
  cheetah-migrate undo                     or give the group under way its old engine again

It may be killed at any moment, and so may the server: `resume`, or the same `run` again, goes on.
It connects with the client program `mariadb` and what that reads of option files. The user needs
all privileges. All statements are written to the binary log, and replicas do the same, unless
--local is given. Read docs/users/migrate.md first; the package has it too.
"""
LOCK_NAME, LOCK_POLL_SECONDS = "cheetah_migrate", 5
PART = r"(`(?:[^`]|``)+`|[^`.]+)"


class Program:
    """One run. The connection `look` reads the current state and writes the journal. The connection
    `work` changes tables and is opened when the changes begin."""

    def __init__(self, options):
        self.options = options
        self.password = getpass.getpass() if options.password else None
        self.look = self.connect(0)
        self.journal = Journal(self.look)
        self.work = None

    def connect(self, binlog: int) -> Connection:
        """Opens a session with settings for copying tables, so that rows are copied unchanged."""
        found = connect(self.options, self.password)
        settings = {"sql_mode": "'NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
                    "foreign_key_checks": 1, "unique_checks": 1, "autocommit": 1,
                    "tx_isolation": "'READ-COMMITTED'", "max_statement_time": 0,
                    "wait_timeout": 604800, "innodb_strict_mode": 0,
                    "lock_wait_timeout": self.options.lock_wait, "sql_quote_show_create": 1}
        if not binlog:
            settings["sql_log_bin"] = 0
        if found.value("SELECT IFNULL(@@enforce_storage_engine, '')"):
            settings["enforce_storage_engine"] = "NULL"
        if found.run("SHOW VARIABLES LIKE 'cheetah\\_strict\\_mode'"):
            settings["cheetah_strict_mode"] = 0
        found.run("SET " + ", ".join(f"SESSION {key} = {setting}"
                                     for key, setting in settings.items()))
        return found

    def close(self) -> None:
        for connection in (self.work, self.look):
            if connection:
                connection.close()

    def plan(self) -> None:
        self.need_engine()
        self.journal.make()
        found = self.planned()
        if not found.going:
            return
        need, free = estimate.needed(found.ordered()), self.free()
        line(f"room: {size(need)} must be free at the start, "
             + (f"{size(free[0])} are, in {free[1]}" if free[0] is not None else
                f"and how much is free is not known: {free[1]}. Give --free"))
        if free[0] is not None and free[0] < need:
            line("there is not enough: `run` would refuse")

    def run(self) -> None:
        conversion = self.begin()
        self.go_on(conversion)
        found = self.planned()
        if not found.going:
            return
        self.need_room(found.ordered())
        if not self.options.unchecked:
            constraints = [one for group in found.going for one in group.constraints]
            if wrong := orphans.found(self.look, constraints):
                raise Failure("rows without their parent are there already, and the constraints "
                              "could not be added again. Nothing was changed.\n"
                              f"{orphans.told(wrong)}\nMend the rows, or have constraints added "
                              "without a check of the rows: --unchecked")
        for number, group in enumerate(found.going, 1):
            line(f"group {number} of {len(found.going)}: {several(len(group.places), 'table')}, "
                 f"{several(len(group.constraints), 'constraint')}")
            self.need_room([found.weights[place] for place in
                            sorted(set(found.weights) & set(group.places),
                                   key=lambda place: found.weights[place].before)])
            entry = conversion.begin(group, found.engine)
            conversion.finish(entry, is_held=True)
        line("done")

    def resume(self, goal: str = "") -> None:
        if not self.go_on(self.begin(), goal):
            line("nothing is under way")

    def undo(self) -> None:
        self.resume("before")

    def forget(self) -> None:
        self.begin()
        place = parse(self.options.table)
        if not isinstance(place, Place):
            raise Failure(f"{self.options.table}: a table is written DATABASE.TABLE")
        for entry in self.journal.under_way():
            for member in [member for member in entry.members if member.place == place]:
                if tables.read_tables(self.look, place=place):
                    raise Failure(f"{place} is there: only tables that are gone are forgotten")
                for constraint in entry.constraints:
                    if place in (constraint.child, constraint.parent):
                        line(f"not added again: {constraint.statement()};")
                self.journal.forget(entry, member)
                line(f"{place} is out of the group; next: cheetah-migrate resume")
                return
        raise Failure(f"{place} is in no group that is under way")

    def status(self) -> None:
        if not self.journal.exists():
            line("nothing was done here yet")
            return
        holder = self.look.value(f"SELECT IFNULL(IS_USED_LOCK({text(LOCK_NAME)}), 0)")
        if holder != "0":
            line(f"at work: {self.told(holder)}")
        for entry in self.journal.under_way():
            self.show_entry(entry)
        rows = [[*told, size(float(before)), size(float(after)), span(float(seconds))]
                for *told, before, after, seconds in self.journal.closed()]
        if rows:
            show_table(["group", "state", "ended", "tables", "before", "after", "copying"], rows)

    def show_entry(self, entry) -> None:
        """Shows which steps of an open group are done and which are missing."""
        line(f"under way: group {entry.id}, which is to "
             + ("get its new engine" if entry.goal == "after" else "get its old engine again"))
        there = set()
        for member in entry.members:
            found = tables.read_tables(self.look, place=member.place)
            engine = found[0].engine if found else "gone"
            done = same(engine, entry.engine(member))
            wanted = "" if done else f", to be {entry.engine(member)}"
            line(f"  {member.place}: {engine}{wanted}")
            there |= set(tables.read_constraints(self.look, member.place)) if found else set()
        for constraint in entry.constraints:
            if constraint not in there:
                line(f"  not there now: {constraint.statement()};")

    def begin(self) -> Conversion:
        """Ensures that no other run converts tables and that the journal exists."""
        self.need_engine()
        self.work = self.connect(not self.options.local)
        told = ""
        while self.work.value(f"SELECT GET_LOCK({text(LOCK_NAME)}, {LOCK_POLL_SECONDS})") != "1":
            holder = self.look.value(f"SELECT IFNULL(IS_USED_LOCK({text(LOCK_NAME)}), 0)")
            if told != holder:
                line("another run, or the last statement of one that was killed, is at work: "
                     f"{self.told(holder)}. Waiting for its end")
                told = holder
        self.journal.make()
        return Conversion(self.work, self.look, not self.options.no_lock,
                          not self.options.unchecked)

    def told(self, connection: str) -> str:
        rows = self.look.run("SELECT IFNULL(INFO, 'idle'), PROGRESS FROM "
                             f"information_schema.PROCESSLIST WHERE ID = {connection}")
        if not rows:
            return "its connection has just ended"
        return f"connection {connection}, {rows[0][0][:100]}, {float(rows[0][1]):.0f} %"

    def go_on(self, conversion: Conversion, goal: str = "") -> int:
        """Finishes the open groups, with another goal if one is given; returns their number."""
        entries = self.journal.under_way()
        for entry in entries:
            if goal and entry.goal != goal:
                self.journal.set_goal(entry, goal)
            line(f"going on with group {entry.id}: {several(len(entry.members), 'table')}, "
                 f"{several(len(entry.constraints), 'constraint')}")
            now = [(conversion.table(member.place), entry.engine(member))
                   for member in entry.members]
            left = [estimate.weigh(self.look, table, engine) for table, engine in now
                    if not same(table.engine, engine)]
            self.need_room(sorted(left, key=lambda weight: weight.before))
            conversion.finish(entry)
            line(f"group {entry.id} is complete")
        return len(entries)

    def planned(self) -> Plan:
        selection = Selection(is_all=self.options.all)
        schemas = {row[0] for row in self.look.run("SHOW DATABASES")}
        for word in self.options.names:
            place = parse(word)
            schema = place.schema if isinstance(place, Place) else place
            if schema not in schemas:
                raise Failure(f"there is no database {schema}")
            if schema in SYSTEM:
                raise Failure(f"{word} is the system's: it stays as it is")
            if isinstance(place, Place):
                if not tables.read_tables(self.look, place=place):
                    raise Failure(f"there is no table {place}")
                selection.places.add(place)
            else:
                selection.schemas.add(place)
        if not self.options.names and not self.options.all:
            raise Failure("name databases or tables, or give --all")
        found = make_plan(self.look, selection, CHEETAH if self.options.to == "cheetah" else INNODB)
        found.show()
        return found

    def free(self) -> tuple:
        """Returns the free bytes and their location, from `estimate.free_bytes` or --free."""
        if self.options.free is not None:
            return self.options.free, "what --free says"
        return estimate.free_bytes(self.look)

    def need_room(self, weights: list) -> None:
        """Raises Failure unless there is enough space for these conversions."""
        need = estimate.needed(weights)
        free, where = self.free()
        if free is None and need:
            raise Failure(f"how much room there is cannot be told from here: {where}. Look there, "
                          f"and give --free BYTES; {size(need)} are needed")
        if need and free < need:
            raise Failure(f"not enough room: {size(need)} must be free, {size(free)} are, in "
                          f"{where}. The conversion stops here")

    def need_engine(self) -> None:
        """Raises Failure unless the server supports the engine."""
        found = {row[0].upper(): row[1] for row in self.look.run("SHOW ENGINES")}
        if found.get(CHEETAH) not in ("YES", "DEFAULT"):
            raise Failure("this server has no engine CHEETAH: INSTALL SONAME 'ha_cheetah'")
        if self.look.run("SHOW VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'"):
            raise Failure("this server is part of a Galera cluster, which Cheetah is not made for")


def parse(word: str):
    """Parses a table's Place or a database's name, with backquotes as in SQL."""
    found = re.fullmatch(PART + r"(?:\." + PART + ")?", word)
    if not found:
        raise Failure(f"{word}: write DATABASE or DATABASE.TABLE; names with dots in backquotes")
    parts = [part[1:-1].replace("``", "`") if part[0] == "`" else part
             for part in found.groups() if part]
    return Place(*parts) if len(parts) == 2 else parts[0]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("cheetah-migrate", description=ABOUT, epilog=EXAMPLES,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen, changing, common = (argparse.ArgumentParser(add_help=False) for _ in range(3))
    chosen.add_argument("names", nargs="*", metavar="NAME", help="DATABASE or DATABASE.TABLE")
    chosen.add_argument("--all", action="store_true", help="all databases but the system's")
    chosen.add_argument("--to", choices=("cheetah", "innodb"), default="cheetah",
                        help="the engine that tables get (cheetah)")
    common.add_argument("--free", type=byte_count, metavar="BYTES",
                        help="so much room is free for the server's data; needed when the server "
                             "is on another machine without the plugin DISKS")
    changing.add_argument("--no-lock", action="store_true",
                          help="let others use the tables of a group between its steps. Without "
                               "constraints they can leave rows without parents, and deletes do "
                               "not cascade")
    changing.add_argument("--unchecked", action="store_true",
                          help="add constraints without a check of the rows that are there")
    changing.add_argument("--local", action="store_true",
                          help="write nothing to the binary log: replicas stay as they are")
    common.add_argument("--lock-wait", type=int, default=60, metavar="SECONDS",
                        help="how long a statement waits for others that use a table, and keeps "
                             "new ones waiting, before it steps back and tries again (60)")
    add_files(common)
    add_connection(common)
    for label, parents, says in (
            ("plan", [chosen, common], "show what would be done; changes nothing"),
            ("run", [chosen, changing, common], "do it; goes on first with what is under way"),
            ("resume", [changing, common], "go on with what is under way"),
            ("undo", [changing, common], "give the tables under way their old engine again"),
            ("status", [common], "show what is under way and what was done"),
            ("forget", [common], "take a table that is gone out of the group under way")):
        command = commands.add_parser(label, parents=parents, help=says, description=says)
        if label == "forget":
            command.add_argument("table", metavar="DATABASE.TABLE")
        command.set_defaults(no_lock=False, unchecked=False, local=False)
    return found


def main() -> int:
    options = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    program = None
    try:
        program = Program(options)
        getattr(program, options.command)()
        return 0
    except (Failure, ServerError) as failure:
        complain(f"error: {failure}")
        advise(program)
        return 1
    except Lost as failure:
        complain(f"error: no connection with the server: {failure}")
        if program:
            complain("What is under way is in the journal; when the server is there: "
                     "cheetah-migrate status, resume")
        return 1
    except KeyboardInterrupt:
        stop(program)
        complain("\nstopped")
        advise(program)
        return 130
    finally:
        if program:
            program.close()


def complain(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def stop(program: Program) -> None:
    """Kills the running statements. The server discards incomplete copies."""
    for connection in filter(None, (program.work, program.look) if program else ()):
        try:
            killer = connect(program.options, program.password)
            killer.run(f"KILL QUERY {value(connection.id)}")
            killer.close()
        except (Lost, ServerError):
            pass


def advise(program: Program) -> None:
    """Prints advice if a group is unfinished."""
    try:
        fresh = connect(program.options, program.password)
        journal = Journal(fresh)
        if journal.exists() and journal.under_way():
            complain(f"A group is under way; its constraints are safe in {DATABASE}. Next:\n"
                     "  cheetah-migrate status    what is missing\n"
                     "  cheetah-migrate resume    go on\n"
                     "  cheetah-migrate undo      back to the start")
        fresh.close()
    except (Lost, ServerError, AttributeError):
        pass
