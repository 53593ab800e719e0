"""A connection to the server, through the `mariadb` program that every server's machine has.

The program runs in batch mode for as long as the connection lives. A statement goes to its standard
input, followed by a SELECT of a word that nobody else knows: when that word comes back, the
statement has ended, and what the program wrote to standard error is its error. Values come back
with tabs, newlines, zero bytes and backslashes escaped, so nothing is lost.
"""

import os
import re
import secrets
import selectors
import subprocess

ERROR = re.compile(r"^ERROR (\d+) \(\w+\)(?: at line \d+)?: ", re.M)
# The connection is gone, or will be: 1053 shutdown, 1927 killed, 2xxx the client's own.
LOST = {1053, 1927, *range(2000, 2028)}
ESCAPED = {"t": "\t", "n": "\n", "0": "\0", "\\": "\\"}
READ_BYTES = 1 << 16


class ServerError(Exception):
    """The server refused a statement: its number and its words."""

    def __init__(self, number: int, text: str):
        super().__init__(f"{text} (error {number})")
        self.number = number


class Lost(Exception):
    """The connection has ended."""


def name(*parts: str) -> str:
    """An identifier as SQL, parts joined by dots."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def text(value: str) -> str:
    """A string as SQL, whatever it holds and whatever sql_mode says."""
    return "_utf8mb4 X'" + value.encode().hex() + "'"


def value(what) -> str:
    """A value as SQL: None, a number or a string."""
    if what is None:
        return "NULL"
    return text(what) if isinstance(what, str) else str(what)


def unescaped(field: str) -> str:
    """A field as it was before the program escaped it."""
    return re.sub(r"\\(.)", lambda found: ESCAPED.get(found[1], found[0]), field)


class Connection:
    """One session. `words` is the command line of the client program, with how to connect."""

    def __init__(self, words: list, password: str = None):
        environment = {**os.environ, "MYSQL_PWD": password} if password is not None else None
        options = ["--batch", "--skip-column-names", "--unbuffered", "--force", "--skip-reconnect",
                   "--default-character-set=utf8mb4", "--max-allowed-packet=1G"]
        try:
            # A session of its own: Ctrl-C is for us, and we decide what ends.
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
        """The rows of a statement, each a list of strings. Blocks until it has ended."""
        self.start(statement)
        while not self.has_ended(None):
            pass
        return self.result()

    def value(self, statement: str) -> str:
        """The first column of the first row."""
        return self.run(statement)[0][0]

    def start(self, statement: str) -> None:
        """Send a statement; `has_ended` and `result` follow. After a KeyboardInterrupt in between
        nothing more may be sent: what comes back would be of both statements."""
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
        """Whether the statement has ended, after waiting so long for it (None: for ever). Lost if
        the connection is gone."""
        self._drain(seconds)
        if self._out.endswith(self._end):
            return True
        errors = self._errors.decode(errors="replace")
        if any(int(number) in LOST for number in ERROR.findall(errors)):
            raise self._lost()
        return False

    def result(self) -> list:
        """Rows of the statement that has ended; ServerError if it was refused."""
        self._drain(0)   # the program wrote the error before it sent the word
        errors = self._errors.decode(errors="replace").strip()
        found = ERROR.search(errors)
        if found:
            if int(found[1]) in LOST:
                raise self._lost()
            raise ServerError(int(found[1]), errors[found.end():])
        lines = self._out[:-len(self._end)].decode(errors="surrogateescape").split("\n")[:-1]
        return [[unescaped(field) for field in line.split("\t")] for line in lines]

    def close(self) -> None:
        """End the session; the server undoes what is open in it, its locks among them."""
        try:
            self._program.stdin.close()
        except OSError:
            pass
        self._program.kill()
        self._program.wait()

    def _drain(self, seconds) -> None:
        """Read what has come, waiting so long for something."""
        for key, _ in self._ready.select(seconds):
            while True:
                try:
                    chunk = os.read(key.fd, READ_BYTES)
                except BlockingIOError:
                    break
                if not chunk:
                    self._ready.unregister(key.fileobj)
                    if key.fileobj is self._program.stdout:
                        self._drain(0)
                        raise self._lost()
                    break
                if key.fileobj is self._program.stdout:
                    self._out += chunk
                else:
                    self._errors += chunk

    def _lost(self) -> Lost:
        said = self._errors.decode(errors="replace").strip()
        return Lost(ERROR.sub("", said).splitlines()[0] if said else "the connection has ended")
