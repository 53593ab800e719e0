"""MediaWiki's export format (0.3 to 0.11), read as a stream: one revision at a time, never the
whole.

What comes out: `SiteInfo` once, for each page a `Page`, its `Revision`s, and `PageEnd`. All
characters are kept: those between the tags of a text, blanks and newlines at its ends, and what
entities stand for; CR, too, which other readers of XML drop. Whatever is wrong is a Failure with
the byte and the page. But for two things that whole dumps have, and that are counted: MediaWiki
writes an element without content for a text that its storage has lost, and brings texts into
Unicode's form NFC, so that those of old versions no longer have the SHA-1 that is written beside
them. (Damaged files show by their packing's checksums.)
"""

import hashlib
from dataclasses import dataclass, field
from xml.parsers import expat

from cheetah_tools.say import Failure

VERSIONS = [f"0.{number}" for number in range(3, 12)]
CHUNK_BYTES = 1 << 18
TEXT_BYTES_MAX = (1 << 24) - 1      # of MEDIUMBLOB
OTHER_BYTES_MAX = 1 << 16           # of anything but a text
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SHA1_DIGITS = 31
STUBS_MAX = 1000                    # texts that may be absent before there is one
ABSENT, OTHER = ("texts are not in the dump, though they are not deleted",
                 "texts do not have the SHA-1 that the dump says")
# What stands in for characters that XML cannot hold; the sha1 of such a text is that of another
# one.
REPLACED = "\N{REPLACEMENT CHARACTER}".encode()


@dataclass
class SiteInfo:
    """Of the wiki. `namespaces`: number -> name."""

    said: dict = field(default_factory=dict)
    namespaces: dict = field(default_factory=dict)


@dataclass
class Page:
    """The title is as in the dump: with the namespace's name and with blanks. `redirect` is None
    when it is no redirect."""

    title: str = ""
    ns: int = 0
    id: int = 0
    redirect: str = None
    restrictions: str = ""

    def __str__(self):
        return f"page {self.id} ({self.title})" if self.id else f"page ({self.title})"


@dataclass
class Slot:
    """The content of a revision. `text` is None when it is deleted."""

    role: str = "main"
    origin: int = None
    model: str = ""
    format: str = ""
    text: bytes = None
    deleted: bool = False
    bytes: int = None
    sha1: str = ""


@dataclass
class Revision:
    """`timestamp` is as in the dump: 2001-01-15T13:15:00Z. `slots`: the main one first. `user` and
    `comment` are None when they are deleted."""

    id: int = 0
    parent: int = None
    timestamp: str = ""
    user: str = None
    user_id: int = 0
    user_deleted: bool = False
    minor: bool = False
    comment: str = ""
    comment_deleted: bool = False
    sha1: str = ""
    slots: list = field(default_factory=lambda: [Slot()])


class PageEnd:
    """The page is whole."""


class Reader:
    """Iterates over what a stream of bytes has. `page`: the one that is being read; `position`:
    bytes that were parsed; `doubts`: ABSENT or OTHER -> how many, and the first of them."""

    def __init__(self, source, name: str):
        """`source` has read(); `name`: how people know the file."""
        self.source, self.name = source, name
        self.page, self.site, self.ignored, self.doubts = None, SiteInfo(), {}, {}
        self._filled = False      # whether there was a text that is not empty
        self.position = 0
        self._revision = self._slot = None
        self._path, self._text, self._size = [], [], 0
        self._ready = []
        self._pages = 0
        parser = self._parser = expat.ParserCreate()
        parser.buffer_text, parser.buffer_size = True, CHUNK_BYTES
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
            self._start, self._end, self._data)
        parser.XmlDeclHandler, parser.StartDoctypeDeclHandler = self._declaration, self._doctype

    def __iter__(self):
        """Blocks for the time of the reading."""
        chunk = b"-"
        while chunk:
            chunk = self.source.read(CHUNK_BYTES)
            if b"\r" in chunk:
                chunk = self._with_returns(chunk)
            try:
                self._parser.Parse(chunk, not chunk)
            except expat.ExpatError as failure:
                raise self._malformed(failure, chunk) from failure
            self.position += len(chunk)
            ready, self._ready = self._ready, []
            yield from ready
        if not self._pages:
            raise Failure(f"{self.name} has no pages: wanted a dump of pages, such as "
                          "pages-articles")
        if ABSENT in self.doubts and not self._filled:
            raise self._stub()

    def _with_returns(self, chunk: bytes) -> bytes:
        """CR as an entity, between the first element's tags: MediaWiki writes those of texts as
        they are."""
        begin = (0 if self._path
                 else max(chunk.find(b"<siteinfo"), 0) or max(chunk.find(b"<page"), 0)
                 or len(chunk))
        end = chunk.find(b"</mediawiki>")
        end = len(chunk) if end < 0 else end
        return chunk[:begin] + chunk[begin:end].replace(b"\r", b"&#13;") + chunk[end:]

    def wrong(self, what: str, do: str = "fetch the dump again, or leave that page out") -> Failure:
        """A Failure with the place."""
        byte = max(self._parser.CurrentByteIndex, 0)
        return Failure(f"{self.name}: {f'{self.page}: ' if self.page else ''}{what} "
                       f"(at byte {byte:,} of the XML); {do}")

    def _declaration(self, _version, encoding, _standalone) -> None:
        if encoding and encoding.lower() not in ("utf-8", "utf8"):
            raise self.wrong(f"the file says that it is {encoding}; MediaWiki writes UTF-8 only",
                             "fetch the original dump")

    def _doctype(self, *_) -> None:
        raise self.wrong("a DOCTYPE: this is a web page or another XML, not MediaWiki's export",
                         "is it the dump's file?")

    def _malformed(self, failure, chunk: bytes) -> Failure:
        if not chunk:
            return self.wrong("the file ends here, in the middle: it is cut off", "fetch it again")
        at = self._parser.ErrorByteIndex - self.position
        near = chunk[max(at, 0):max(at, 0) + 4]
        if failure.code == expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
            return self.wrong("more follows behind the end of the dump: several files in one",
                              "import them one by one")
        if near and near[0] >= 0x80:
            return self.wrong(f"byte 0x{near[0]:02x} is not UTF-8: the text was written or "
                              "converted in another encoding", "fetch the original dump")
        if not self._path:
            return self.wrong(f"this is not XML ({expat.ErrorString(failure.code)})",
                              "is it the dump's file?")
        return self.wrong(f"not well-formed XML ({expat.ErrorString(failure.code)})",
                          "the file is damaged: fetch it again")

    def _start(self, name: str, attributes: dict) -> None:
        depth = len(self._path)
        if depth == 0:
            self._root(name, attributes)
        self._path.append(name)
        self._text, self._size = [], 0
        path = "/".join(self._path[1:])
        if path == "page":
            self.page = Page()
        elif path == "logitem":
            raise self.wrong("a dump of logs", "wanted one of pages, such as pages-articles")
        elif path == "page/redirect":
            self.page.redirect = attributes.get("title", "")
        elif path == "page/revision":
            self._begin_pages_first_revision()
            self._revision = Revision()
            self._slot = self._revision.slots[0]
        elif path == "page/revision/content":
            self._slot = Slot()
            self._revision.slots.append(self._slot)
        elif path in ("page/revision/text", "page/revision/content/text"):
            self._slot.deleted = "deleted" in attributes
            self._slot.bytes = (self._number(attributes["bytes"], "bytes")
                                if attributes.get("bytes") else None)
            self._slot.sha1 = attributes.get("sha1", "")
        elif path == "page/revision/comment":
            self._revision.comment_deleted = "deleted" in attributes
        elif path == "page/revision/contributor":
            self._revision.user_deleted = "deleted" in attributes
        elif path == "siteinfo/namespaces/namespace":
            self._namespace = self._number(attributes.get("key", ""), "key")

    def _root(self, name: str, attributes: dict) -> None:
        version = attributes.get("version", "")
        if name != "mediawiki":
            raise self.wrong(f"XML of another kind: its first element is <{name}>, wanted "
                             "<mediawiki>", "is it the dump's file?")
        if version not in VERSIONS:
            raise self.wrong(f"export format {version or 'without a version'}; known are "
                             f"{VERSIONS[0]} to {VERSIONS[-1]}",
                             ("export it by another MediaWiki" if version
                              else "is the file whole, and MediaWiki's?"))

    def _begin_pages_first_revision(self) -> None:
        if self._revision is None:
            if not self.page.id:
                raise self.wrong("a page without an id")
            self._pages += 1
            self._ready.append(self.page)

    def _data(self, data: str) -> None:
        self._size += len(data)
        most = TEXT_BYTES_MAX if self._path and self._path[-1] == "text" else OTHER_BYTES_MAX
        if self._size > most:
            if not self._text and not data.strip():
                self._size = 0      # blanks between elements
                return
            raise self.wrong(f"<{self._path[-1]}> has more than {most:,} bytes, the most that its "
                             "column holds", "leave that page out of the dump")
        self._text.append(data)

    def _end(self, name: str) -> None:
        path, text = "/".join(self._path[1:]), "".join(self._text)
        self._path.pop()
        self._text, self._size = [], 0
        if path == "page":
            self._begin_pages_first_revision()
            self._ready.append(PageEnd())
            self.page = self._revision = None
        elif path.startswith("page/revision/"):
            self._of_revision(path.removeprefix("page/revision/"), text)
        elif path == "page/revision":
            if not self._revision.id or not self._revision.timestamp:
                raise self.wrong("a revision without an id or a time")
            self._check(self._revision)
            self._ready.append(self._revision)
        elif path.startswith("page/"):
            self._of_page(path.removeprefix("page/"), text)
        elif path == "siteinfo/namespaces/namespace":
            self.site.namespaces[self._namespace] = text
        elif path.startswith("siteinfo/") and path != "siteinfo/namespaces":
            self.site.said[name] = text
        elif path == "siteinfo":
            self._ready.append(self.site)

    def _of_page(self, path: str, text: str) -> None:
        if path == "title":
            self.page.title = text
        elif path in ("id", "ns"):
            setattr(self.page, path, self._number(text, path))
        elif path == "restrictions":
            self.page.restrictions = text
        elif path != "redirect":
            self.ignored[path] = self.ignored.get(path, 0) + 1

    def _of_revision(self, path: str, text: str) -> None:
        revision, slot = self._revision, self._slot
        if path in ("text", "content/text"):
            slot.text = None if slot.deleted else text.encode()
        elif path.removeprefix("content/") in ("model", "format"):
            setattr(slot, path.removeprefix("content/"), text)
        elif path == "content/role":
            slot.role = text
        elif path in ("origin", "content/origin"):
            slot.origin = self._number(text, "origin")
        elif path in ("id", "parentid"):
            setattr(revision, {"id": "id", "parentid": "parent"}[path], self._number(text, path))
        elif path in ("timestamp", "sha1", "comment"):
            setattr(revision, path, text)
        elif path in ("contributor/username", "contributor/ip"):
            revision.user = text
        elif path == "contributor/id":
            revision.user_id = self._number(text, "id")
        elif path == "minor":
            revision.minor = True
        elif path == "content":
            self._slot = revision.slots[0]
        elif path != "contributor":
            self.ignored[f"revision/{path}"] = self.ignored.get(f"revision/{path}", 0) + 1

    def _number(self, text: str, what: str) -> int:
        try:
            return int(text)
        except ValueError as failure:
            raise self.wrong(f"{what} is {text[:40]!r}, wanted a number") from failure

    def _check(self, revision: Revision) -> None:
        """The texts against what the dump says of them; those with characters that were replaced
        have another SHA-1 for sure."""
        for slot in revision.slots:
            said = slot.sha1 or (revision.sha1 if len(revision.slots) == 1 else "")
            if slot.text is None:
                continue
            if len(slot.text) > TEXT_BYTES_MAX:
                raise self.wrong(f"the text of revision {revision.id} has {len(slot.text):,} "
                                 f"bytes; a MEDIUMBLOB holds {TEXT_BYTES_MAX:,}",
                                 "leave that page out of the dump")
            self._filled = self._filled or bool(slot.text)
            if not slot.text and slot.bytes:
                slot.text = None
                self._doubt(ABSENT, revision)
            elif said and REPLACED not in slot.text and base36(slot.text) != said:
                self._doubt(OTHER, revision)

    def _doubt(self, what: str, revision: Revision) -> None:
        count, first = self.doubts.get(what, (0, f"{self.page}, revision {revision.id}"))
        self.doubts[what] = count + 1, first
        if what == ABSENT and count + 1 >= STUBS_MAX and not self._filled:
            raise self._stub()

    def _stub(self) -> Failure:
        return Failure(f"{self.name} has no texts, only how long they are (a dump of stubs): take "
                       "pages-articles or pages-meta")


def base36(content: bytes) -> str:
    """The sha1 as MediaWiki writes it."""
    number, digits = int.from_bytes(hashlib.sha1(content).digest(), "big"), []
    while number:
        number, digit = divmod(number, 36)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits)).rjust(SHA1_DIGITS, "0")
