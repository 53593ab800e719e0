"""A history: what clients did and saw. `checker.py FILE` checks a saved one again.

Times are numbers from one counter, taken when a statement is sent and when its answer arrives. The
server executed the statement between these two times."""

import gzip
import json
from pathlib import Path

# Kinds of operations.
READ = "read"            # consistent read: seen = {key: value}
# FOR UPDATE, LOCK IN SHARE MODE, or a write that found no row: seen = {key: value}
LOCKING = "locking"
# append to a list, or a register's new value: key, value; value None deletes the register
WRITE = "write"
SNAPSHOT = "snapshot"    # START TRANSACTION WITH CONSISTENT SNAPSHOT

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


class Op:
    __slots__ = ("kind", "sent", "answered", "seen", "key", "value", "undone", "lengths", "covered",
                 "words")

    def active_at(self, place: int) -> bool:
        """Returns whether a write was still in effect at the transaction's operation `place`."""
        return not self.undone or place < self.undone

    def __init__(self, kind, sent, answered, seen=None, key=None, value=None, undone=0,
                 lengths=False, covered=False, words=None):
        self.kind, self.sent, self.answered = kind, sent, answered
        self.seen, self.key, self.value = seen, key, value
        # the number of operations at the ROLLBACK TO SAVEPOINT that undid this one; 0: not undone
        self.undone = undone
        self.lengths = lengths    # `seen` has the lengths of lists instead of the lists
        self.covered = covered    # read from a secondary index alone
        # A full-text search: the pairs of key and value that were searched for; `seen` has the rows
        # found. The list is empty if the search was for a word that each row has.
        self.words = words


class Txn:
    __slots__ = ("number", "client", "level", "status", "ops", "end", "autocommit")

    def __init__(self, number, client, level, ops=None, status=COMMITTED, end=(0, 0),
                 autocommit=False):
        self.number, self.client, self.level = number, client, level
        self.ops, self.status, self.end = ops if ops is not None else [], status, tuple(end)
        self.autocommit = autocommit   # a single statement outside BEGIN

    def name(self) -> str:
        return f"T{self.number}"


class History:
    def __init__(self, model: str, txns: list, final: dict, snapshot_isolation=False, engine="",
                 dirty_reads=False):
        self.model = model                              # "list" or "register"
        self.txns, self.final = txns, final             # final: key -> list, or value
        self.snapshot_isolation = snapshot_isolation    # write conflicts are errors
        # READ UNCOMMITTED really reads uncommitted data
        self.dirty_reads = dirty_reads
        self.engine = engine

    def save(self, place: Path) -> None:
        """Saves the history as one compressed JSON document."""
        txns = [[t.number, t.client, t.level, t.status, t.end, t.autocommit,
                 [[o.kind, o.sent, o.answered, list(o.seen.items()) if o.seen is not None else None,
                   o.key, o.value, o.undone, o.lengths, o.covered, o.words]
                  for o in t.ops]]
                for t in self.txns]
        text = json.dumps({"model": self.model, "final": list(self.final.items()),
                           "snapshot_isolation": self.snapshot_isolation,
                           "dirty_reads": self.dirty_reads, "engine": self.engine, "txns": txns})
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(text.encode()))

    @classmethod
    def load(cls, place: Path):
        return cls.of(json.loads(gzip.decompress(place.read_bytes())))

    @classmethod
    def of(cls, read: dict):
        txns = [Txn(number, client, level,
                    [Op(kind, sent, answered, None if seen is None else dict(seen), *rest)
                     for kind, sent, answered, seen, *rest in ops],
                    status, end, autocommit)
                for number, client, level, status, end, autocommit, ops in read["txns"]]
        return cls(read["model"], txns, dict(read["final"]), read["snapshot_isolation"],
                   read["engine"], read["dirty_reads"])
