"""Statements that change nothing and statements on temporary tables (case 03) do not sync the log.
Statements that change something do. InnoDB is compared."""

import contextlib
from pathlib import Path

import listed
import pymysql
import pytest
from cheetah_tools.say import note
from servers import run, Session, started

TIMES = 3   # background work may sync meanwhile, so the minimum counts
SYNCS = {"CHEETAH": "Cheetah_log_syncs", "InnoDB": "Innodb_data_fsyncs"}
# For statements that are rolled back, InnoDB syncs the undo log.
TABLES, UNCHANGING, TAKEN_BACK, CHANGING, TEMPORARY = listed.statements(
    Path(__file__).with_name("syncs.sql")).values()
# InnoDB refuses this clause for temporary tables.
OF_CHEETAH_ALONE = "ADD FULLTEXT"


def syncs_of(server, session, engine: str, statements: str) -> int:
    """Returns the number of log syncs for statements, some of which are refused."""
    before = server.status(SYNCS[engine])
    for statement in statements.split("; "):
        with contextlib.suppress(pymysql.MySQLError):
            session.run(statement)
    return server.status(SYNCS[engine]) - before


@pytest.mark.parametrize("binlog", [{}, {"log_bin": "bin", "binlog_format": "ROW"}],
                         ids=["without", "with_binlog"])
def test_only_what_changes_something_syncs_the_log(new_server, binlog):
    server, sessions = started(new_server(binlog)), {}
    for engine in SYNCS:
        run(server, f"CREATE DATABASE {engine}", *(text.format(engine) for text in TABLES),
            database="")
        sessions[engine] = Session(server, engine)
    wrong = []
    for statements in UNCHANGING + TAKEN_BACK + CHANGING:
        counts = [min(syncs_of(server, sessions[engine], engine, statements) for _ in range(TIMES))
                  for engine in SYNCS]
        note(f"{counts[0]} syncs of Cheetah, {counts[1]} of InnoDB: {statements}")
        promises = binlog and statements in TAKEN_BACK
        if not promises and (counts[0] > 0) != (statements in CHANGING):
            wrong.append((statements, counts))
    assert not wrong
    for engine in SYNCS:
        assert server.sql(f"SELECT COUNT(*), SUM(id < 3) FROM {engine}.t") == [(2, 2)], engine


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_no_statement_on_temporary_tables_syncs_the_log(server, mode):
    server.sql(f"SET GLOBAL cheetah_flush_log_at_trx_commit = {mode}")
    least = {}
    for engine in SYNCS:
        session = Session(server)
        session.run(f"SET default_storage_engine = {engine}")
        for statement in TEMPORARY * TIMES:
            if engine == "CHEETAH" or OF_CHEETAH_ALONE not in statement:
                before = server.status(SYNCS[engine])
                session.run(statement)
                syncs = server.status(SYNCS[engine]) - before
                least[engine, statement] = min(least.get((engine, statement), syncs), syncs)
    for statement in TEMPORARY:
        note(f"{least['CHEETAH', statement]} syncs of Cheetah, "
             f"{least.get(('InnoDB', statement), '-')} of InnoDB: {statement}")
    assert not [statement for statement in TEMPORARY if least["CHEETAH", statement] > 0]
