"""Dumps: reading them (plain, .gz, .zst), fitting them to an engine, loading them through the ordinary client.

FULLTEXT and SPATIAL keys are taken out, since Cheetah has none yet; so are statements that choose a database.
"""

import gzip
import io
import re
import shutil
import subprocess
import threading
from pathlib import Path

from .paths import SERVER
from .say import Failure, Progress

ENGINE_WORDS = re.compile(rb"ENGINE\s*=\s*\w+", re.I)
LAYOUT_WORDS = re.compile(rb"\s(ROW_FORMAT|KEY_BLOCK_SIZE)\s*=\s*\w+|\s`?(PAGE_COMPRESSED|ENCRYPTED)`?\s*=\s*\S+", re.I)
UNSUPPORTED_KEY = re.compile(rb"^\s*(FULLTEXT|SPATIAL)\s+(KEY|INDEX)\b", re.I)
DATABASE_CHOICE = re.compile(rb"^\s*(USE |CREATE DATABASE |/\*!40000 DROP DATABASE |/\*M?!999999)", re.I)


def open_dump(path: Path):
    """A binary stream of the dump's text."""
    path = Path(path)
    if not path.is_file():
        raise Failure(f"no such dump: {path}")
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".zst":
        tool = shutil.which("zstd") or str(SERVER / "usr/bin/zstd")
        # Its end of input is an error when the file was cut off: the reader checks it with `close_dump`.
        return subprocess.Popen([tool, "-dc", "--long=27", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if path.suffix == ".sql":
        return open(path, "rb")
    raise Failure(f"{path.name}: expected a dump named .sql, .sql.gz or .sql.zst")


def unpack(path: Path, target: Path) -> None:
    """Write the dump's plain text to `target`; Failure when it is cut off."""
    source = open_dump(path)
    fresh = target.with_suffix(".new")
    why = ""
    try:
        with open(fresh, "wb") as out:
            shutil.copyfileobj(source.stdout if isinstance(source, subprocess.Popen) else source, out, 1 << 20)
        if isinstance(source, subprocess.Popen) and source.wait() != 0:
            why = source.stderr.read().decode(errors="replace").strip().replace("\n", " ")
    except (EOFError, OSError) as failure:
        why = str(failure)
    if why:
        fresh.unlink(missing_ok=True)
        raise Failure(f"{path}: cannot be read to its end: {why}. Is the file whole?")
    fresh.rename(target)


def lines_for(source, clause: str):
    """The dump's lines with every table declared by `clause`."""
    definition = None
    for line in source:
        if definition is not None:
            definition.append(line)
            if line.rstrip().endswith(b";"):
                yield fit_table(definition, clause)
                definition = None
        elif line.startswith(b"CREATE TABLE"):
            if line.rstrip().endswith(b";"):
                yield fit_table([line], clause)
            else:
                definition = [line]
        elif not DATABASE_CHOICE.match(line[:60]):
            yield line
    if definition is not None:
        yield b"".join(definition)


def fit_table(lines: list, clause: str) -> bytes:
    """One CREATE TABLE statement for the engine."""
    end = next((number for number, line in enumerate(lines) if line.startswith(b")")), len(lines) - 1)
    columns = [line for line in lines[:end] if not UNSUPPORTED_KEY.match(line)]
    if len(columns) > 1:
        columns[-1] = re.sub(rb",(\s*)$", rb"\1", columns[-1])
    # The first mention is the table's; later ones stand in partitions, where only the engine's bare name may be.
    mentions = iter([clause.encode()])
    bare = clause.split()[0].encode()
    tail = ENGINE_WORDS.sub(lambda _: next(mentions, bare), LAYOUT_WORDS.sub(b"", b"".join(lines[end:])))
    return b"".join(columns) + tail


def load(server, database: str, source, clause: str, label: str = "", total: int = 0) -> float:
    """Feed a dump to the `mariadb` client; the seconds it took. Failure with the client's message."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    client = server.client("--binary-mode", database, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
        log = f"\nthe server ended; the end of its log:\n{server.log_tail(20)}" if server.died() else ""
        raise Failure(f"loading into {database} ({clause}) failed:\n{text[-1500:]}{log}")
    return bar.finish() if total else bar.done


def base_tables(server, database: str) -> list:
    """The names of the tables of a database, in order."""
    return [row[0] for row in server.sql("SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
                                         f"AND table_schema = '{database}' ORDER BY 1")]


def checksums(server, database: str) -> dict:
    """CHECKSUM TABLE of every table."""
    return {name: server.sql(f"CHECKSUM TABLE `{name}`", database)[0][1] for name in base_tables(server, database)}
