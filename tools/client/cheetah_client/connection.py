"""A connection to the server through the `mariadb` program, which every server machine has.

The program runs in batch mode as long as the connection lives. Each statement is sent to its
standard input, followed by a SELECT of a random word. When the word is returned, the statement has
ended, and the program's output to standard error is the statement's error. In returned values,
tabs, newlines, zero bytes and backslashes are escaped, so nothing is lost."""

import contextlib
import os
import re
import secrets
import selectors
import subprocess

ERROR = re.compile(r"^ERROR (\d+) \(\w+\)(?: at line \d+)?: ", re.M)
# Errors of a lost connection: 1053 for a shutdown, 1927 for a kill, and 2xxx from the client.
LOST = {1053, 1927, *range(2000, 2028)}
ESCAPED = {"t": "\t", "n": "\n", "0": "\0", "\\": "\\"}
READ_BYTES = 1 << 16


class ServerError(Exception):
    """The server refused a statement. Contains the error number and the message."""

    def __init__(self, number: int, text: str):
        super().__init__(f"{text} (error {number})")
        self.number = number


class Lost(Exception):
    """The connection has ended."""


def name(*parts: str) -> str:
    """Returns an identifier as SQL, with its parts joined by dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def text(value: str) -> str:
    """Returns a string as an SQL literal that works for any content and any sql_mode."""
    return "_utf8mb4 X'" + value.encode().hex() + "'"


def value(what) -> str:
    """Returns None, a number or a string as an SQL literal."""
    if what is None:
        return "NULL"
    return text(what) if isinstance(what, str) else str(what)


def unescaped(field: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPED.get(found[1], found[0]), field)


class Connection:
    """One session. `words`: the client program's command line with connection options."""

    def __init__(self, words: list, password: str = None):
        environment = {**os.environ, "MYSQL_PWD": password} if password is not None else None
        options = ["--batch", "--skip-column-names", "--unbuffered", "--force", "--skip-reconnect",
                   "--default-character-set=utf8mb4", "--max-allowed-packet=1G"]
        try:
            # A separate process session: Ctrl-C reaches only this program, which decides.
            self._program = subprocess.Popen(
                [*words, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=environment, start_new_session=True)
        except OSError as failure:
            raise Lost(f"cannot run {words[0]}: {failure.strerror}") from failure
        self._ready = selectors.DefaultSelector()
        for stream in (self._program.stdout, self._program.stderr):
            os.set_blocking(stream.fileno(), False)
            self._ready.register(stream, selectors.EVENT_READ)
        self._out, self._errors, self._end = b"", b"", b""
        self.id = int(self.value("SELECT CONNECTION_ID()"))

    def run(self, statement: str) -> list:
        """Runs a statement and returns its rows, each a list of strings. Blocks until it ends."""
        self.start(statement)
        while not self.has_ended(None):
            pass
        return self.result()

    def value(self, statement: str) -> str:
        return self.run(statement)[0][0]

    def start(self, statement: str) -> None:
        """Sends a statement, for `has_ended` and `result`. After a KeyboardInterrupt in between, no
        other may be sent, because the answers of both would mix."""
        self._out, self._errors = b"", b""
        word = "end-" + secrets.token_hex(16)
        self._end = (word + "\n").encode()
        try:
            self._program.stdin.write(f"{statement};\nSELECT '{word}';\n".encode())
            self._program.stdin.flush()
        except OSError:
            self._drain(1)
            raise self._lost() from None

    def has_ended(self, seconds) -> bool:
        """Waits up to `seconds` (None: no limit) for the statement's end. Raises Lost."""
        self._drain(seconds)
        if self._out.endswith(self._end):
            return True
        errors = self._errors.decode(errors="replace")
        if any(int(number) in LOST for number in ERROR.findall(errors)):
            raise self._lost()
        return False

    def result(self) -> list:
        """Returns the rows of the ended statement, or raises ServerError with its refusal."""
        self._drain(0)   # the program writes the error before the word
        errors = self._errors.decode(errors="replace").strip()
        if found := ERROR.search(errors):
            if int(found[1]) in LOST:
                raise self._lost()
            raise ServerError(int(found[1]), errors[found.end():])
        lines = self._out[:-len(self._end)].decode(errors="surrogateescape").split("\n")[:-1]
        return [[unescaped(field) for field in line.split("\t")] for line in lines]

    def close(self) -> None:
        """Ends the session. The server rolls back its transaction and releases its locks."""
        with contextlib.suppress(OSError):
            self._program.stdin.close()
        self._program.kill()
        self._program.wait()

    def _drain(self, seconds) -> None:
        """Reads the available output, waiting up to `seconds` for some."""
        for key, _ in self._ready.select(seconds):
            is_out = key.fileobj is self._program.stdout
            with contextlib.suppress(BlockingIOError):
                while chunk := os.read(key.fd, READ_BYTES):
                    if is_out:
                        self._out += chunk
                    else:
                        self._errors += chunk
                self._ready.unregister(key.fileobj)   # the stream has ended
                if is_out:
                    self._drain(0)
                    raise self._lost()

    def _lost(self) -> Lost:
        said = self._errors.decode(errors="replace").strip()
        return Lost(ERROR.sub("", said).splitlines()[0] if said else "the connection has ended")
