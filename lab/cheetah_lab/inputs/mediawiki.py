"""MediaWiki's XML dumps into MediaWiki's tables: page, revision, text (and slots, when a revision
has more than its main one).

The tables are those of MediaWiki before it split comments and actors off, with every column that a
dump can fill. What a dump does not have is made from what it has, the same each time: page_random
from the id, page_touched from the newest revision.

Pages are inserted in transactions, each with the place that was reached (table `lab_import`), so
that an import that ended at any moment goes on behind the last page that was whole; until it is
finished, `lab_import` says so.
"""

import hashlib
import json
from pathlib import Path

import pymysql

from cheetah_tools.corpus import Inserts, escaped
from cheetah_tools.paths import show
from cheetah_tools.say import Failure, note

from . import packed
from .mediaxml import Page, PageEnd, Reader, Revision

COMMIT_BYTES = 8 << 20
IDENTITY_BYTES = 1 << 20
DELETED_TEXT, DELETED_COMMENT, DELETED_USER = 1, 2, 4     # bits of rev_deleted
FRACTION = 0.6180339887498949                             # its multiples lie evenly between 0 and 1
MARKER = "lab_import"
# The key on titles is not unique here, unlike in MediaWiki: a page that was moved while the dump
# was written is in it twice.
TABLES = {
    "page": (
        "\n"
        "  page_id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, page_namespace int NOT NULL, "
        "page_title varbinary(255) NOT NULL,\n"
        "  page_restrictions tinyblob NOT NULL, "
        "page_is_redirect tinyint unsigned NOT NULL DEFAULT 0, "
        "page_is_new tinyint unsigned NOT NULL DEFAULT 0,\n"
        "  page_random real unsigned NOT NULL, page_touched binary(14) NOT NULL DEFAULT '', "
        "page_latest int unsigned NOT NULL, page_len int unsigned NOT NULL,\n"
        "  page_content_model varbinary(32) DEFAULT NULL, "
        "page_redirect_title varbinary(767) DEFAULT NULL,\n"
        "  KEY name_title (page_namespace,page_title), KEY page_random (page_random), "
        "KEY page_len (page_len),\n"
        "  KEY page_redirect_namespace_len (page_is_redirect,page_namespace,page_len)"),
    "revision": (
        "\n"
        "  rev_id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, "
        "rev_page int unsigned NOT NULL, rev_text_id int unsigned NOT NULL,\n"
        "  rev_comment blob NOT NULL, rev_user int unsigned NOT NULL DEFAULT 0, "
        "rev_user_text varbinary(255) NOT NULL DEFAULT '',\n"
        "  rev_timestamp binary(14) NOT NULL DEFAULT '', "
        "rev_minor_edit tinyint unsigned NOT NULL DEFAULT 0, "
        "rev_deleted tinyint unsigned NOT NULL DEFAULT 0,\n"
        "  rev_len int unsigned DEFAULT NULL, rev_parent_id int unsigned DEFAULT NULL, "
        "rev_sha1 varbinary(32) NOT NULL DEFAULT '',\n"
        "  rev_content_model varbinary(32) DEFAULT NULL, "
        "rev_content_format varbinary(64) DEFAULT NULL, rev_origin int unsigned DEFAULT NULL,\n"
        "  UNIQUE KEY rev_page_id (rev_page,rev_id), KEY rev_timestamp (rev_timestamp), "
        "KEY page_timestamp (rev_page,rev_timestamp),\n"
        "  KEY user_timestamp (rev_user,rev_timestamp), "
        "KEY usertext_timestamp (rev_user_text,rev_timestamp)"),
    "text": (
        "old_id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, old_text mediumblob NOT NULL, "
        "old_flags tinyblob NOT NULL"),
}
SLOTS = (
    "\n"
    "  slot_revision_id int unsigned NOT NULL, slot_role varbinary(64) NOT NULL, "
    "slot_text_id int unsigned NOT NULL, slot_origin int unsigned DEFAULT NULL,\n"
    "  slot_content_model varbinary(32) NOT NULL, slot_content_format varbinary(64) NOT NULL, "
    "slot_len int unsigned DEFAULT NULL, slot_sha1 varbinary(32) NOT NULL,\n"
    "  PRIMARY KEY (slot_revision_id,slot_role)")
MARKERS = (
    "\n"
    "  id int PRIMARY KEY, source varbinary(255) NOT NULL, pages bigint NOT NULL, "
    "last_page bigint NOT NULL, revisions bigint NOT NULL, texts bigint NOT NULL,\n"
    "  finished tinyint NOT NULL, siteinfo mediumblob NOT NULL")


def check(path: Path) -> None:
    """Failure when the file does not begin as a dump of pages. Reads its beginning."""
    with packed.opened(path) as source:
        next(iter(Reader(source, show(path))), None)


def goes_on_after(failure: Failure) -> bool:
    """Whether the same import can go on after this: the server failed it, not the file."""
    return isinstance(failure.__cause__, (pymysql.OperationalError, pymysql.InternalError))


class Import:
    """One dump into one database. `pages`, `revisions`, `texts`: what is committed; `ignored`:
    elements without a column, and how many; `doubts`: those of mediaxml.Reader."""

    def __init__(self, server, database: str, path: Path,
                 on_progress=lambda done, size, pages: None, commit_bytes: int = COMMIT_BYTES):
        """`on_progress` is told bytes of the file that were read, its size, and pages."""
        self.server, self.database, self.path, self.on_progress, self.commit_bytes = (
            server, database, Path(path), on_progress, commit_bytes)
        self.pages = self.revisions = self.texts = self.last_page = 0
        self.ignored, self.doubts, self._slots = {}, {}, False

    def run(self) -> None:
        """Import, or go on. Blocks. Failure for a dump that is not whole or not right; what was
        committed stays, not finished."""
        self.server.sql(f"CREATE DATABASE IF NOT EXISTS `{self.database}`")
        self.connection = self.server.connect(self.database, autocommit=False)
        try:
            self.packet = self._value("SELECT @@max_allowed_packet")
            if not self._begin():
                self._read()
        except pymysql.MySQLError as failure:
            raise Failure(f"{show(self.path)}: after page {self.last_page}: the server refuses a "
                          f"row: {failure.args[-1]}{hint(failure)}") from failure
        finally:
            self.connection.close()

    def _begin(self) -> bool:
        """Make the tables, or learn where the last import ended; whether there is nothing to do."""
        self._query("SET SESSION sql_mode = 'STRICT_ALL_TABLES', unique_checks = 1")
        for name, columns in [*TABLES.items(), (MARKER, MARKERS)]:
            self._query(f"CREATE TABLE IF NOT EXISTS `{name}` ({columns}) "
                        "ENGINE=InnoDB DEFAULT CHARSET=binary")
        mark = identity(self.path)
        self._query(f"INSERT IGNORE INTO {MARKER} VALUES (1, '{mark}', 0, 0, 0, 0, 0, '')")
        self.connection.commit()
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT source, pages, last_page, revisions, texts, finished "
                           f"FROM {MARKER}")
            source, self.pages, self.last_page, self.revisions, self.texts, finished = (
                cursor.fetchone())
        if source.decode() != mark:
            raise Failure(f"the database {self.database} has an import of another file (or the "
                          f"file has changed): drop it to import {show(self.path)}")
        if self.pages and not finished:
            note(f"going on behind page {self.last_page}: {self.pages:,} pages are there")
        return bool(finished)

    def _read(self) -> None:
        with packed.opened(self.path) as source:
            reader = Reader(source, show(self.path))
            left, page, seen = self.pages, None, 0
            self._out = {name: Inserts(self, name) for name in (*TABLES, "slots")}
            self._since = 0
            for item in reader:
                if isinstance(item, Page):
                    page, seen = item, seen + 1
                    if seen == left and page.id != self.last_page:
                        raise Failure(f"{show(self.path)}: page {left:,} is {page.id}, and was "
                                      f"{self.last_page} when the import began: drop the database "
                                      f"{self.database}")
                    newest, count = None, 0
                elif seen <= left:
                    continue
                elif isinstance(item, Revision):
                    newest, count = max(newest, item, key=age) if newest else item, count + 1
                    self._add_revision(page, item)
                elif isinstance(item, PageEnd):
                    self._add_page(page, newest, count, reader.site)
                    self.pages, self.last_page = seen, page.id
                    if self._since >= self.commit_bytes:
                        self._commit(reader.site)
                        self.on_progress(source.raw.done(), source.raw.size, seen)
            self.ignored, self.doubts = reader.ignored, reader.doubts
            self._commit(reader.site, finished=1)
            self.on_progress(source.raw.size, source.raw.size, seen)

    def write(self, statement: bytes) -> None:
        """For Inserts: what it collected goes to the server."""
        self.connection.query(statement)

    def _add(self, table: str, row: bytes, what: str) -> None:
        if len(row) + 1000 > self.packet:
            raise Failure(f"{show(self.path)}: {what} needs a statement of {len(row):,} bytes; the "
                          f"server's max_allowed_packet is {self.packet:,}: raise it")
        if len(row) + self._out[table].size > self.packet // 2:
            self._out[table].flush()
        self._out[table].add(row)
        self._since += len(row)

    def _add_revision(self, page: Page, revision: Revision) -> None:
        main, *others = revision.slots
        what = f"{page}, revision {revision.id}"
        text = self._add_text(main, what)
        deleted = (DELETED_TEXT * main.deleted + DELETED_COMMENT * revision.comment_deleted
                   + DELETED_USER * revision.user_deleted)
        self._add("revision", row(revision.id, page.id, text, revision.comment, revision.user_id,
                                  revision.user or "", digits(revision.timestamp),
                                  int(revision.minor), deleted, length(main), revision.parent,
                                  revision.sha1 or main.sha1, main.model or None,
                                  main.format or None, main.origin), what)
        self.revisions += 1
        for slot in others:
            self._make_slots()
            self._add("slots", row(revision.id, slot.role, self._add_text(slot, what), slot.origin,
                                   slot.model, slot.format, length(slot), slot.sha1), what)

    def _add_text(self, slot, what: str) -> int:
        """Its old_id; 0 for a text that is deleted, or not in the dump."""
        if slot.text is None:
            return 0
        self.texts += 1
        self._add("text", row(self.texts, slot.text, "utf-8"), what)
        return self.texts

    def _make_slots(self) -> None:
        if not self._slots:
            # a statement that would end this connection's transaction
            with self.server.connect(self.database) as other:
                other.query(f"CREATE TABLE IF NOT EXISTS slots ({SLOTS}) "
                            "ENGINE=InnoDB DEFAULT CHARSET=binary")
            self._slots = True

    def _add_page(self, page: Page, newest: Revision, count: int, site) -> None:
        random = page.id * FRACTION % 1
        latest = ((digits(newest.timestamp), newest.id, length(newest.slots[0]) or 0,
                   newest.slots[0].model or None)
                  if newest else ("", 0, 0, None))
        is_new = int(count == 1 and not newest.parent)
        self._add("page", row(page.id, page.ns, stored_title(page, site.namespaces),
                              page.restrictions, int(page.redirect is not None), is_new, random,
                              latest[0], *latest[1:], page.redirect), str(page))

    def _commit(self, site, finished: int = 0) -> None:
        for inserts in self._out.values():
            inserts.flush()
        about = json.dumps({**site.said, "namespaces": site.namespaces},
                           ensure_ascii=False).encode()
        self._query(b"UPDATE %s SET pages = %d, last_page = %d, revisions = %d, texts = %d, "
                    b"finished = %d, siteinfo = '%s'"
                    % (MARKER.encode(), self.pages, self.last_page, self.revisions, self.texts,
                       finished, escaped(about)))
        self.connection.commit()
        self._since = 0

    def _query(self, statement) -> None:
        self.connection.query(statement)

    def _value(self, statement: str) -> int:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]


def finished(server, database: str) -> bool:
    """Whether a whole dump was imported."""
    return bool(server.sql("SELECT 1 FROM information_schema.tables "
                           f"WHERE table_schema = '{database}' AND table_name = '{MARKER}'")
                and server.sql(f"SELECT 1 FROM {MARKER} WHERE finished = 1", database))


def identity(path: Path) -> str:
    """Tells a file from another without reading it all: its size and its ends."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(IDENTITY_BYTES)
        file.seek(max(size - IDENTITY_BYTES, 0))
        return f"{size}-{hashlib.sha256(head + file.read(IDENTITY_BYTES)).hexdigest()[:32]}"


def row(*values) -> bytes:
    """The row in an INSERT."""
    return b"(" + b",".join(literal(value) for value in values) + b")"


def literal(value) -> bytes:
    """A value in SQL."""
    if value is None:
        return b"NULL"
    if isinstance(value, (int, float)):
        return repr(value).encode()
    return b"_binary '" + escaped(value if isinstance(value, bytes) else value.encode()) + b"'"


def digits(timestamp: str) -> str:
    """2001-01-15T13:15:00Z as MediaWiki keeps it: 20010115131500."""
    return "".join(character for character in timestamp if character.isdigit())


def length(slot) -> int:
    """Bytes of a text as the dump says, or as it is; None when neither is known."""
    return slot.bytes if slot.bytes is not None else None if slot.text is None else len(slot.text)


def age(revision: Revision) -> tuple:
    """Orders revisions of a page."""
    return revision.timestamp, revision.id


def stored_title(page: Page, namespaces: dict) -> str:
    """The title as MediaWiki keeps it: without the namespace's name, with underscores."""
    prefix = namespaces.get(page.ns, "")
    title = page.title.removeprefix(f"{prefix}:") if prefix else page.title
    return title.replace(" ", "_")


def hint(failure) -> str:
    """What to do about an error of the server, when it is known."""
    if failure.args[0] == pymysql.constants.ER.DUP_ENTRY:
        return (": the dump has the id of a page or of a revision twice: it was put together from "
                "parts, or is damaged")
    return ""
