"""Generates a shard of a blog search as a dump: posts with texts under several secondary indexes.

The words are made up. Their frequencies follow Zipf's law, as in natural language, so the texts
compress about as well as English. The same seed gives the same bytes. The dump has the form that
mariadb-dump writes, including the statements before and after a table's rows: unique_checks = 0,
LOCK TABLES, DISABLE KEYS."""

import hashlib
import itertools
import random
import struct
import time
import zlib

from cheetah_tools.texts import Inserts, escaped

TABLE = "post"
# A UNIQUE key, and keys on strings, on times, and on columns with few and with many values.
KEYS = ["UNIQUE KEY `url_md5` (`url_md5`)", "KEY `blog_published` (`blog_id`,`published`)",
        "KEY `author` (`author`,`published`)", "KEY `title` (`title`)", "KEY `url` (`url`)",
        "KEY `published` (`published`)", "KEY `links` (`links_in`,`published`)"]
COLUMNS = """  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `blog_id` int(10) unsigned NOT NULL,
  `author` varchar(64) NOT NULL,
  `title` varchar(255) NOT NULL,
  `url` varchar(255) NOT NULL,
  `url_md5` char(32) NOT NULL,
  `published` datetime NOT NULL,
  `crawled` datetime NOT NULL,
  `links_in` int(10) unsigned NOT NULL,
  `bodyuc` {body} NOT NULL,
  PRIMARY KEY (`id`),
"""
HEAD = b"""/*!40101 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
"""
BEFORE_ROWS = b"LOCK TABLES `post` WRITE;\n/*!40000 ALTER TABLE `post` DISABLE KEYS */;\n"
AFTER_ROWS = b"/*!40000 ALTER TABLE `post` ENABLE KEYS */;\nUNLOCK TABLES;\n"
WORDS, SLOTS = 12_000, 1 << 16
SYLLABLES = [a + b for a in "b c d f g h k l m n p r s t v w st tr pl".split()
             for b in "a e i o u ar en is on at".split()]
ONSETS = "a e i o u an be de in re un".split() + SYLLABLES
BODY_WORDS = 290                  # the median number of words in a body
FIRST_TIME, SPAN_SECONDS = 1_199_145_600, 110 * 86_400   # from 2008 to the date of the document


def vocabulary() -> list:
    """Returns a list of SLOTS words in which the frequency of a word follows from its rank."""
    rng, words = random.Random(2008), {}
    while len(words) < WORDS:
        length = 1 + sum(len(words) > rank for rank in (90, 700, 5000)) + rng.choice((0, 0, 1))
        words[rng.choice(ONSETS) + "".join(rng.choices(SYLLABLES, k=length - 1))] = None
    slots, scale = [], sum(1 / (rank + 2.7) for rank in range(WORDS))
    share = 0.0
    for rank, word in enumerate(words):
        share += SLOTS / (rank + 2.7) / scale
        number = round(share) - len(slots)
        ends = round(number / 9)      # the number of words that end a sentence or precede a comma
        slots += [word] * (number - ends) + [
            word + mark for mark in itertools.islice(itertools.cycle((".", ",")), ends)]
    return (slots + [next(iter(words))] * SLOTS)[:SLOTS]


class Posts:
    def __init__(self, rng: random.Random, compressed: bool = False, four_byte: bool = False):
        """`compressed`: bodies are the output of MariaDB's COMPRESS(). `four_byte`: titles and
        bodies contain characters that only utf8mb4 can represent."""
        self.rng, self.compressed, self.mark = rng, compressed, " \U0001f406" if four_byte else ""
        self.words = vocabulary()
        self.authors = [self.text(2).title() for _ in range(400)]

    def text(self, count: int) -> str:
        """Returns this many random words, some of which end in a comma or a full stop."""
        draws = self.rng.randbytes(2 * count)
        return " ".join(map(self.words.__getitem__, struct.unpack(f"<{count}H", draws)))

    def row(self, number: int) -> bytes:
        rng = self.rng
        blog = min(int(rng.paretovariate(0.5)), 5000)
        title = self.text(rng.randint(3, 9)).strip(".,").capitalize()
        url = (f"http://blog{blog}.example.org/{1 + number % 12:02d}/"
               f"{title.replace(' ', '-').replace('.', '').replace(',', '').lower()}"
               f"-{number}")[:255]
        published = (FIRST_TIME + SPAN_SECONDS * number // max(number + 1000, 50_000)
                     + rng.randint(0, 86_400))
        body = self.text(max(5, round(rng.lognormvariate(0, 0.8) * BODY_WORDS))) + self.mark
        return b"(%d,%d,'%s','%s','%s','%s','%s','%s',%d,%s)" % (
            number, blog, rng.choice(self.authors).replace(".", "").replace(",", "").encode(),
            (title + self.mark).encode(), url.encode(),
            hashlib.md5(url.encode()).hexdigest().encode(), moment(published),
            moment(published + rng.randint(60, 7200)),
            int(rng.paretovariate(0.9)) - 1 if rng.random() < 0.7 else 0, self.body(body.encode()))

    def body(self, text: bytes) -> bytes:
        """Returns the text as a literal, plain or like COMPRESS(): length, then zlib's output."""
        if self.compressed:
            return b"_binary '%s'" % escaped(
                struct.pack("<I", len(text)) + zlib.compress(text)).replace(b"\0", b"\\0")
        return b"'%s'" % text


def moment(seconds: int) -> bytes:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)).encode()


def definition(charset: str = "latin1", compressed: bool = False) -> str:
    columns = COLUMNS.format(body="mediumblob" if compressed else "mediumtext")
    keys = ",\n".join("  " + key for key in KEYS)
    return (f"CREATE TABLE `{TABLE}` (\n{columns}{keys}\n) "
            f"ENGINE=InnoDB DEFAULT CHARSET={charset};\n")


def write_dump(target, rng: random.Random, rows: int, charset: str = "latin1",
               compressed: bool = False) -> int:
    """Writes a dump with this many posts; returns its size in bytes."""
    posts = Posts(rng, compressed, four_byte=charset == "utf8mb4")
    with open(target, "wb") as out:
        out.write(HEAD + definition(charset, compressed).encode() + BEFORE_ROWS)
        inserts = Inserts(out, TABLE)
        for number in range(1, rows + 1):
            inserts.add(posts.row(number))
        inserts.flush()
        out.write(AFTER_ROWS)
        return out.tell()
