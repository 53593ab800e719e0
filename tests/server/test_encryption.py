"""Encryption at rest: the contents of files, startups without keys, and key rotation."""

import functools
import hashlib
import re
import shutil

import pytest
from binlog import replay
from servers import begun, Client, check_table, cli, crash, kill_beside, run, Session, wait_until
from test_backup import BINLOG, make_tables, rows, writers
from test_backup_tool import MARIADB_BACKUP, backup, position_of

KEYS = "1;770a8a65da156d24ee2a093277530142\n2;18420b5cba31ccdffe9716e91eb61374\n"
OTHER_KEYS = "1;00000000da156d24ee2a093277530142\n2;18420b5cba31ccdffe9716e91eb61374\n"
SERVICE = "plugin-load-add"   # in addition to `plugin_load_add`, which loads the engine
FILE = "file_key_management_filename"
ROWS = 6000
FRAGMENT = 12   # the number of a marker's digits that prove its presence
COLUMNS = ("fixed", "variable", "indexed", "words", "large")
CHECKPOINT = "SET GLOBAL cheetah_checkpoint_now = ON"
TABLE_W = "CREATE TABLE d.w (a INT PRIMARY KEY, b VARCHAR(40), KEY (b)) ENGINE=CHEETAH"


def with_keys(new_server, **options):
    """Returns a server, not started yet, with a key file in its folder."""
    server = new_server(options)
    server.folder.mkdir(parents=True, exist_ok=True)
    keys = server.folder / "keys"
    keys.write_text(KEYS)
    server.options |= {SERVICE: "file_key_management", FILE: keys}
    return server


def files_of(server, folder=None) -> dict:
    folder = folder or server.data / "#cheetah"
    return {str(place.relative_to(folder)): place.read_bytes()
            for place in sorted(folder.rglob("*")) if place.is_file()}


def marker(kind: str, number: int) -> str:
    """Returns digits that are unique to this value of this row: MD5(CONCAT(kind, number))."""
    return hashlib.md5(f"{kind}{number}".encode()).hexdigest()


@functools.lru_cache(1)
def fragments(kinds: tuple) -> dict:
    return {marker(kind, number)[at:at + FRAGMENT]: kind for kind in kinds
            for number in range(1, ROWS + 1) for at in range(32 - FRAGMENT + 1)}


def kinds_in(content: bytes, known: dict):
    """Yields the kinds of markers that have a fragment in these bytes, in any case of letters."""
    for found in re.findall(rb"[0-9a-f]{%d,}" % FRAGMENT, content.lower()):
        text = found.decode()
        yield from {known.get(text[at:at + FRAGMENT])
                    for at in range(len(text) - FRAGMENT + 1)} - {None}


def write_rows(server, options: str) -> None:
    """Creates a table with markers in all columns, and changes it in all ways. The last changes are
    only in the log, and the last transaction is open."""
    server.sql(f"CREATE TABLE d.t (a INT PRIMARY KEY, fixed CHAR(32) CHARACTER SET ascii, "
               f"variable VARCHAR(100), indexed VARBINARY(40), words TEXT, large LONGBLOB, "
               f"KEY (indexed), FULLTEXT (words)) ENGINE=CHEETAH COMPRESSION='none' {options}")
    values = ", ".join(f"MD5(CONCAT('{kind}', seq))" for kind in COLUMNS[:-1])
    large = "IF(seq % 40 = 0, REPEAT(MD5(CONCAT('large', seq)), 1000), NULL)"
    server.sql(f"INSERT INTO d.t SELECT seq, {values}, {large} FROM seq_1_to_{ROWS // 2}", "d")
    server.sql(f"INSERT INTO d.t SELECT seq, {values}, {large} "
               f"FROM seq_{ROWS // 2 + 1}_to_{ROWS} ORDER BY MD5(seq)", "d")
    run(server, "UPDATE t SET variable = MD5(CONCAT('changed', a)) WHERE a % 3 = 0",
        "DELETE FROM t WHERE a % 10 = 1", "ALTER TABLE t ADD KEY (variable), ADD KEY (fixed)",
        "ANALYZE TABLE t", CHECKPOINT, "UPDATE t SET fixed = MD5(CONCAT('logged', a)) "
        "WHERE a % 7 = 0")


class Writer(Client):
    rounds = 0

    def work(self, cursor) -> None:
        self.rounds += 1
        cursor.execute("REPLACE INTO w SELECT seq, MD5(RAND()) FROM seq_1_to_200")
        cursor.execute(f"DELETE FROM w WHERE MOD(a, 7) = {self.rounds % 7}")


def sums(server) -> list:
    return server.sql("SELECT COUNT(*), SUM(CRC32(fixed)), SUM(CRC32(variable)), "
                      "SUM(CRC32(indexed)), SUM(CRC32(words)), SUM(CRC32(large)) FROM d.t")


@pytest.mark.parametrize(("table", "log"), [(True, True), (True, False), (False, True),
                                            (False, False)])
def test_no_row_stands_in_what_is_encrypted(table, log, new_server):
    """The plain text of encrypted tables is only in the log, and not there if the log is encrypted.
    Text that is not encrypted is found, which proves that the search works."""
    server = begun(with_keys(new_server, loose_cheetah_encrypt_log="ON" if log else "OFF"))
    write_rows(server, "ENCRYPTED=YES ENCRYPTION_KEY_ID=2" if table else "ENCRYPTED=NO")
    rows = sums(server)
    opened = Session(server, autocommit=False)
    opened.run("UPDATE t SET words = MD5(CONCAT('opened', a)) WHERE a % 5 = 0")
    server.sql("CREATE TABLE d.flushes (a INT) ENGINE=CHEETAH")
    known = fragments((*COLUMNS, "changed", "logged", "opened"))
    server.kill()
    look_in(files_of(server), known, table, log, "logged")
    server.start()
    assert sums(server) == rows
    check_table(server, "d.t")
    look_in(files_of(server), known, table, log)
    server.restart()
    assert sums(server) == rows
    look_in(files_of(server), known, table, log)


def look_in(files: dict, known: dict, table: bool, log: bool, *logged: str) -> None:
    """Asserts that rows are in the log (until emptied) and in other files, unless encrypted."""
    for of_log, is_encrypted, missing in ((True, log, set(logged)), (False, table, set(COLUMNS))):
        found = ((kind, name) for name, content in files.items()
                 if name.startswith("wal/") == of_log for kind in kinds_in(content, known))
        while kind_and_name := (is_encrypted or missing) and next(found, None):
            assert not is_encrypted, kind_and_name
            missing.discard(kind_and_name[0])
        assert is_encrypted or not missing, f"the search finds no {missing} where it must be"


def test_a_snapshot_is_encrypted_too(new_server):
    server = begun(with_keys(new_server, loose_cheetah_encrypt_log="ON",
                             loose_cheetah_encrypt_tables="ON"))
    write_rows(server, "ENCRYPTION_KEY_ID=2")
    server.sql(TABLE_W)
    rows, writer, place = sums(server), Writer(server), server.folder / "snapshot"
    writer.start()
    wait_until(lambda: writer.rounds > 1, "nobody writes")
    server.sql(f"SET GLOBAL cheetah_create_snapshot = '{place}'")
    kill_beside(server, [writer])
    look_in(files_of(server, place), fragments((*COLUMNS, "changed", "logged")), True, True)
    shutil.rmtree(server.data / "#cheetah")
    place.rename(server.data / "#cheetah")
    starts_without_keys(server, "encryption key 1")
    server.start()
    assert sums(server) == rows
    check_table(server, "t", "w")


@pytest.mark.skipif(not MARIADB_BACKUP.exists(), reason="mariadb-backup is not there")
def test_backups_of_an_encrypted_server_are_encrypted_and_restored_with_its_keys(new_server):
    """Full and incremental backups and a clone are made during writes. InnoDB is not encrypted, so
    if it started without the keys, transactions open during the backup would appear committed."""
    server = begun(with_keys(new_server, **BINLOG, loose_cheetah_encrypt_log="ON",
                             loose_cheetah_encrypt_tables="ON"))
    write_rows(server, "ENCRYPTION_KEY_ID=2")
    make_tables(server, "InnoDB")
    full, later, of_t = server.folder / "full", server.folder / "later", sums(server)
    with writers(server):
        backup(server, "full", full)
        said = backup(server, "incremental", later, "--base", full)
        clone = with_keys(new_server, **BINLOG)
        backup(server, "clone", "--data-dir", clone.data)
    assert "is whole" in backup(server, "verify", later)
    look_in(files_of(server, later / "cheetah"), fragments((*COLUMNS, "changed", "logged")),
            True, True)
    restored = with_keys(new_server, server_id=8)
    backup(server, "restore", later, "--data-dir", restored.data)
    starts_without_keys(restored, "encryption key 1", "load the plugin")
    for each in (restored, clone):
        each.start()
        assert sums(each) == of_t
        check_table(each, "a", "t")
    replay(server, restored, [position_of(said)[0]], position_of(said)[1])
    assert rows(restored) == rows(server)


def starts_without_engine(server, *words: str) -> None:
    """Asserts that the server starts without the engine, whose log line has these words."""
    server.log.unlink(missing_ok=True)
    server.options["cheetah"] = "ON"
    server.start()
    assert not server.has_engine("CHEETAH"), "the engine started without its keys"
    lines = [line for line in server.log.read_text().splitlines()
             if "[ERROR] CHEETAH: cannot open" in line]
    assert len(lines) == 1 and all(word in lines[0] for word in words), lines
    server.stop()
    del server.options["cheetah"]


def starts_without_keys(server, *words: str) -> None:
    """Like `starts_without_engine`, on a server without keys."""
    kept = dict(server.options)
    del server.options[SERVICE], server.options[FILE]
    starts_without_engine(server, *words)
    server.options = kept


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_startup_without_keys_is_refused_and_changes_nothing(ends, new_server):
    server = begun(with_keys(new_server, loose_cheetah_encrypt_log="ON"))
    write_rows(server, "ENCRYPTED=YES ENCRYPTION_KEY_ID=2")
    rows = sums(server)
    getattr(server, ends)()
    before, keys = files_of(server), server.folder / "keys"
    starts_without_keys(server, "encryption key 1", "load the plugin")
    assert files_of(server) == before
    for text, *words in ((OTHER_KEYS, "encryption key 1", "gave another key"),
                         (KEYS.splitlines()[0] + "\n", "encryption key 2", "does not have it")):
        keys.write_text(text)
        starts_without_engine(server, *words)
        assert files_of(server) == before
    keys.write_text(KEYS)
    server.start()
    assert sums(server) == rows
    check_table(server, "d.t")


def refusal(server, statement: str) -> tuple:
    with Session(server) as session:
        return session.error(statement), " ".join(row[2] for row in session.run("SHOW WARNINGS"))


def test_without_a_key_plugin_nothing_gets_encrypted(server):
    number, texts = refusal(server, "CREATE TABLE t (a INT) ENGINE=CHEETAH ENCRYPTED=YES")
    assert number == 1005 and "ENCRYPTION_KEY_ID 1 not available" in texts, texts
    assert not server.sql("SHOW TABLES", "d")
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=CHEETAH ENCRYPTION_KEY_ID=2")
    for name in ("cheetah_encrypt_tables", "cheetah_encrypt_log"):
        number, texts = refusal(server, f"SET GLOBAL {name} = ON")
        assert number == 1231 and "encryption plugin is not available" in texts, texts
        assert server.value(f"SELECT @@{name} IN ('OFF', 0)")
        server.stop()
        server.options[name] = "ON"
        before = files_of(server)
        starts_without_engine(server, "encryption key 1")
        assert files_of(server) == before
        del server.options[name]
        server.start()
    assert server.value("SELECT COUNT(*) FROM d.t") == 0


ROTATING = {SERVICE: "debug_key_management", "plugin_maturity": "experimental",
            "loose_cheetah_encrypt_log": "ON", "loose_cheetah_io_capacity": 50}


def encryption_of(server, table: str) -> dict:
    names = ("scheme", "oldest", "current", "page", "pages", "key", "rotating", "requests")
    rows = server.sql("SELECT ENCRYPTION_SCHEME, MIN_KEY_VERSION, CURRENT_KEY_VERSION, "
                      "KEY_ROTATION_PAGE_NUMBER, KEY_ROTATION_MAX_PAGE_NUMBER, CURRENT_KEY_ID, "
                      "ROTATING_OR_FLUSHING, KEYSERVER_REQUESTS FROM "
                      f"information_schema.CHEETAH_TABLESPACES_ENCRYPTION WHERE NAME = 'd/{table}'")
    assert len(rows) == 1, rows
    return dict(zip(names, rows[0]))


def is_rotated(server, table: str, version: int) -> bool:
    """Makes a checkpoint and returns whether no older key version is needed."""
    server.sql(CHECKPOINT)
    state = encryption_of(server, table)
    return (state["oldest"], state["current"], state["rotating"]) == (version, version, 0)


@pytest.mark.options(ROTATING | {"loose_cheetah_encrypt_tables": "ON"})
def test_kills_while_keys_rotate_lose_no_row(server):
    write_rows(server, "ENCRYPTED=YES")
    server.sql(TABLE_W)
    rows = sums(server)
    for version in (2, 3):
        writer = Writer(server)
        writer.start()
        server.sql(f"SET GLOBAL debug_key_management_version = {version}")
        server.options["debug_key_management_version"] = version
        wait_until(lambda: encryption_of(server, "t")["current"] == version, "no new version")
        found = wait_until(lambda: (encryption_of(server, "t")["page"] or 0) > 0
                           and encryption_of(server, "t"), "no rotation")
        assert found["oldest"] < version and found["rotating"] == 1
        kill_beside(server, [writer])
        assert writer.rounds > 1
        server.start()
        assert sums(server) == rows
        check_table(server, "d.w")
    server.sql("SET GLOBAL cheetah_io_capacity = 4000")
    for table in ("t", "w"):
        wait_until(lambda name=table: is_rotated(server, name, 3), "the rotation does not end")
    check_table(server, "d.t")
    server.restart()
    assert sums(server) == rows


@pytest.mark.options(ROTATING | {"loose_cheetah_io_capacity": 4000})
def test_tables_are_encrypted_and_decrypted_as_the_variable_says(server):
    """It also applies to existing tables, except those with an explicit ENCRYPTED option."""
    write_rows(server, "")
    rows = sums(server)
    server.sql("CREATE TABLE d.never (a INT PRIMARY KEY) ENGINE=CHEETAH ENCRYPTED=NO")
    before = encryption_of(server, "t")
    assert before["scheme"] == before["oldest"] == 0
    server.sql("SET GLOBAL cheetah_encrypt_tables = ON")
    wait_until(lambda: is_rotated(server, "t", 1), "the table is not encrypted")
    after = encryption_of(server, "t")
    assert after["scheme"] == 1
    wait_until(lambda: encryption_of(server, "t")["requests"] > after["requests"],
               "the key service is asked for newer versions")
    assert encryption_of(server, "never")["scheme"] == encryption_of(server, "never")["oldest"] == 0
    assert sums(server) == rows
    server.sql("SET GLOBAL cheetah_encrypt_tables = OFF")
    wait_until(lambda: is_rotated(server, "t", 0), "the table is not decrypted")
    crash(server)
    assert encryption_of(server, "t")["scheme"] == 0
    assert sums(server) == rows
    check_table(server, "d.t")


@pytest.mark.options(ROTATING | {"loose_cheetah_encryption_rotate_key_age": 0})
def test_age_0_rotates_nothing(server):
    write_rows(server, "ENCRYPTED=YES")
    server.sql("SET GLOBAL cheetah_io_capacity = 4000")
    wait_until(lambda: is_rotated(server, "t", 1), "the first pass does not end")
    server.sql("SET GLOBAL debug_key_management_version = 2")
    wait_until(lambda: encryption_of(server, "t")["current"] == 2, "no new version")
    wait_until(lambda: not encryption_of(server, "t")["rotating"], "the pass does not end")
    server.sql("SET GLOBAL cheetah_checkpoint_now = ON")
    assert encryption_of(server, "t")["oldest"] == 1
    server.sql("SET GLOBAL cheetah_encryption_rotate_key_age = 1")
    wait_until(lambda: is_rotated(server, "t", 2), "the rotation does not end")


def test_the_tool_writes_nothing_in_plain_text(new_server):
    server = begun(with_keys(new_server, loose_cheetah_encrypt_log="ON",
                             loose_cheetah_encrypt_tables="ON"))
    write_rows(server, "")
    rows, known = sums(server), fragments((*COLUMNS, "changed", "logged", "opened"))
    opened = Session(server, autocommit=False)
    opened.run("UPDATE t SET words = MD5(CONCAT('opened', a)), "
               "fixed = MD5(CONCAT('opened', a + 1)) WHERE a % 2 = 0")
    server.sql("CREATE TABLE d.flushes (a INT) ENGINE=CHEETAH")
    server.kill()
    look_in(files_of(server), known, True, True)
    refused = cli("check", server.data / "#cheetah")
    assert refused.returncode == 2 and "cheetah-cli --keys FILE" in refused.stderr, refused
    done = cli("--keys", server.folder / "keys", "check", server.data / "#cheetah")
    assert done.returncode == 0 and "d/t: ok" in done.stdout, done
    look_in(files_of(server), known, True, True)
    server.start()
    assert sums(server) == rows
    check_table(server, "d.t")
