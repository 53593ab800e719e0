"""Dumps: reads them (plain, .gz, .bz2, .xz, .zst), adapts them to an engine, and loads them.

SPATIAL keys are removed, since Cheetah does not have them yet; so are statements that choose a
database. A dump of several is refused, because tables with the same name would replace each other.
"""

import bz2
import gzip
import io
import lzma
import re
import shutil
import subprocess
import threading
from pathlib import Path

from .paths import SERVER
from .say import Failure, Progress

ENGINE_WORDS = re.compile(rb"ENGINE\s*=\s*\w+", re.I)
LAYOUT_WORDS = re.compile(rb"\s(ROW_FORMAT|KEY_BLOCK_SIZE)\s*=\s*\w+"
                          rb"|\s`?(PAGE_COMPRESSED|ENCRYPTED|ENCRYPTION_KEY_ID|COMPRESSION"
                          rb"|COMPRESSION_LEVEL)`?\s*=\s*[^\s,;)]+"
                          rb"|\s(DATA|INDEX)\s+DIRECTORY\s*=\s*'(?:[^'\\]|\\.|'')*'", re.I)
# Words of keys that may have to go; and the tokens of a statement: strings and comments are one.
KEY_WORDS = re.compile(rb"\b(FULLTEXT|SPATIAL|FOREIGN)\b", re.I)
TOKENS = re.compile(rb"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`"
                    rb"|/\*.*?\*/|(?:--\s|#)[^\n]*|[(),]", re.S)
UNSUPPORTED_KEY = re.compile(rb"^\s*SPATIAL\s+(KEY|INDEX)\b", re.I)
DATABASE_CHOICE = re.compile(rb"^\s*(USE |CREATE DATABASE |/\*!40000 DROP DATABASE |/\*M?!999999)",
                             re.I)
CHOSEN_DATABASE = re.compile(rb"^\s*USE\s+`?([^`;]+)", re.I)
LOAD_SECONDS_MAX = 7200
PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}   # a program unpacks .zst
# A condition on information_schema.tables: the tables that have their own rows.
WITH_ROWS = "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"


def open_dump(path: Path):
    """Returns a binary stream of the dump's text; for .zst, the process that writes it."""
    path = Path(path)
    if not path.is_file():
        raise Failure(f"no such dump: {path}")
    if path.suffix in PACKED:
        return PACKED[path.suffix](path, "rb")
    if path.suffix == ".zst":
        tool = shutil.which("zstd") or str(SERVER / "usr/bin/zstd")
        # zstd also writes what a truncated file has, so the reader must check its exit status.
        return subprocess.Popen([tool, "-dc", "--long=27", str(path)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
    if path.suffix == ".sql":
        return open(path, "rb")
    raise Failure(f"{path.name}: expected a dump named .sql, .sql.gz, .bz2, .xz or .zst")


def unpack(path: Path, target: Path) -> None:
    """Writes the dump's plain text to `target`; raises Failure if the dump is truncated."""
    source = open_dump(path)
    fresh = target.with_suffix(".new")
    why = ""
    try:
        with open(fresh, "wb") as out:
            shutil.copyfileobj(source.stdout if isinstance(source, subprocess.Popen) else source,
                               out, 1 << 20)
        if isinstance(source, subprocess.Popen) and source.wait() != 0:
            why = source.stderr.read().decode(errors="replace").strip().replace("\n", " ")
    except (EOFError, OSError, lzma.LZMAError) as failure:
        why = str(failure)
    if why:
        fresh.unlink(missing_ok=True)
        raise Failure(f"{path}: cannot be read to its end: {why}. Is the file whole?")
    fresh.rename(target)


def statements(source):
    """Yields (lines, whether they are a CREATE TABLE), which is whole; other lines one by one."""
    definition = []
    for line in source:
        if not definition and not line.startswith(b"CREATE TABLE"):
            yield [line], False
            continue
        definition.append(line)
        if line.rstrip().endswith(b";"):
            yield definition, True
            definition = []
    if definition:
        yield definition, False


def lines_for(source, clause: str):
    """Yields the dump's lines with `clause` in every table's definition."""
    databases = []
    for lines, defines in statements(source):
        if defines:
            yield fit_table(lines, clause)
        elif DATABASE_CHOICE.match(lines[0][:60]):
            chosen = CHOSEN_DATABASE.match(lines[0])
            databases += [chosen.group(1).decode(errors="replace")] if chosen else []
            if len(set(databases)) > 1:
                raise Failure("the dump has several databases "
                              f"({', '.join(dict.fromkeys(databases))}, ..): make one of a single "
                              "database")
        else:
            yield from lines


def fit_table(lines: list, clause: str) -> bytes:
    names_engine = any(map(ENGINE_WORDS.search, lines))
    if any(map(KEY_WORDS.search, lines)) or (len(lines) == 1 and not names_engine):
        lines = definition_lines(b"".join(lines))
    end = next((number for number, line in enumerate(lines) if line.startswith(b")")),
               len(lines) - 1)
    columns = [line for line in lines[:end] if not UNSUPPORTED_KEY.match(line)]
    if 0 < len(columns) < end:
        columns[-1] = re.sub(rb",(\s*)$", rb"\1", columns[-1])
    # The first mention is the table's. Later ones are partitions', which allow only a bare name.
    mentions = iter([clause.encode()])
    bare = clause.split()[0].encode()
    tail = ENGINE_WORDS.sub(lambda _: next(mentions, bare),
                            LAYOUT_WORDS.sub(b"", b"".join(lines[end:])))
    if clause.encode() not in tail:     # the dump names no engine: insert after the parenthesis
        tail = re.sub(rb"^\)|\)(?=\s*;\s*$)", lambda _: b") " + clause.encode(), tail, count=1)
    return b"".join(columns) + tail


def definition_lines(statement: bytes) -> list:
    """Breaks CREATE TABLE into lines like mariadb-dump: columns, keys, the closing parenthesis."""
    depth, breaks = 0, []
    for token in TOKENS.finditer(statement):
        depth += (token[0] == b"(") - (token[0] == b")")
        if depth == 1 and token[0] in (b"(", b","):
            breaks.append(token.end())
        elif depth == 0 and token[0] == b")":
            breaks.append(token.start())
            break
    if not breaks:      # CREATE TABLE .. LIKE, or AS
        return [statement]
    first, *others, last = [statement[start:end].strip()
                            for start, end in zip([0, *breaks], [*breaks, len(statement)])]
    return (b"\n  ".join([first, *others]) + b"\n" + last + b"\n").splitlines(keepends=True)


def load(server, database: str, source, clause: str, label: str = "", total: int = 0) -> float:
    """Feeds a dump to the client; returns the seconds. Raises Failure with the client's message."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    client = server.client("--binary-mode", database, stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    messages = io.BytesIO()
    reader = threading.Thread(target=shutil.copyfileobj, args=(client.stderr, messages))
    reader.start()
    bar = Progress(label or database, total)
    try:
        for line in lines_for(source, clause):
            client.stdin.write(line)
            bar.add(len(line))
        client.stdin.close()
    except BrokenPipeError:
        pass
    except BaseException:
        client.kill()
        raise
    status = client.wait()
    reader.join()
    if status != 0:
        text = messages.getvalue().decode(errors="replace").strip()
        log = (f"\nthe server ended; the end of its log:\n{server.log_tail(20)}"
               if server.died() else "")
        raise Failure(f"loading into {database} ({clause}) failed:\n{text[-1500:]}{log}")
    return bar.finish() if total else bar.done


def feed(server, database: str, script, what: str) -> None:
    """Runs a file through the ordinary client. Raises Failure with `what` and its message."""
    with open(script, "rb") as source:
        client = server.client("--binary-mode", database, stdin=source, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        try:
            _, complaint = client.communicate(timeout=LOAD_SECONDS_MAX)
        except BaseException:
            client.kill()
            raise
    if client.returncode != 0:
        raise Failure(f"{what}: {complaint.decode(errors='replace').strip()[-1500:]}")


def base_tables(server, database: str) -> list:
    return [row[0] for row in server.sql(
        "SELECT table_name FROM information_schema.tables "
        f"WHERE {WITH_ROWS} AND table_schema = '{database}' ORDER BY 1")]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def checksums(server, database: str) -> dict:
    """Returns CHECKSUM TABLE of every table, or a sum over the rows if it has generated columns, of
    which CHECKSUM TABLE reads undefined bytes (virtual ones, in InnoDB also stored ones)."""
    found = {}
    for name in base_tables(server, database):
        columns = server.sql(f"SHOW COLUMNS FROM {quoted(name)}", database)
        found[name] = (rows_sum(server, database, name)
                       if any("GENERATED" in column[5] for column in columns)
                       else server.sql(f"CHECKSUM TABLE {quoted(name)}", database)[0][1])
    return found


def rows_sum(server, database: str, table: str):
    columns = [quoted(row[0]) for row in server.sql(f"SHOW COLUMNS FROM {quoted(table)}", database)]
    values = ", ".join(f"IFNULL(HEX({column}), '-')" for column in columns)
    return server.value(f"SELECT SUM(CRC32(CONCAT_WS(',', {values}))) FROM {quoted(table)}",
                        database)
