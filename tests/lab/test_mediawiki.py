"""Tests of MediaWiki's XML dumps: every byte arrives, an import that was killed goes on, and what
is not whole is not taken."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import export
import pytest
from cheetah_lab.inputs import mediawiki, mediaxml, packed
from cheetah_tools import dump
from cheetah_tools.paths import shared_data
from cheetah_tools.say import Failure
from cheetah_tools.server import PrivateServer

HERE = Path(__file__).resolve().parent
FIXTURE = HERE / "data/export-0.11.xml"
# how many bytes of each
SETS = {"enwiki_raw_sample": 10**9, "ltgwiki": 10**9, "enwiki_text_plain": 5_000_000}
HARD = ("""\n\n '''x''' <nowiki>&amp; '' </nowiki> <math>a < b</math><!-- c --> {{t|1=[[a|b]]}} """
        """{|\n|-\n| 🐆 \U0010fffd || \\' \\n %s\n|}\t"' ]]> \r\n \x85\u2028 \n""")
OPTIONS = {"innodb_log_file_size": "64M", "innodb_buffer_pool_size": "64M",
           "innodb_flush_log_at_trx_commit": 2, "innodb_flush_method": "nosync"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PrivateServer(tmp_path_factory.mktemp("server"), OPTIONS, plugin=False) as started:
        yield started


@pytest.fixture
def database(server):
    server.sql("DROP DATABASE IF EXISTS w")
    return "w"


def program(way):
    """Skip without what packs it."""
    try:
        if way == ".7z":
            packed.seven_zip()
    except Failure as failure:
        pytest.skip(str(failure))


def imported(server, database, place, **more):
    made = mediawiki.Import(server, database, place, **more)
    made.run()
    assert mediawiki.finished(server, database)
    return made


def contents(server, database):
    return {table: server.sql(f"SELECT * FROM `{table}` ORDER BY 1", database)
            for table in dump.base_tables(server, database)}


def test_every_hard_case_of_the_sample_arrives(server, database):
    made = imported(server, database, FIXTURE)
    assert (made.pages, made.revisions, made.texts, made.ignored) == (3, 5, 5, {})
    found = contents(server, database)
    title = 'Cheetah_"🐆"_&_cats'.encode()
    assert [line[:6] for line in found["page"]] == [
        (5, 0, title, b"edit=autoconfirmed:move=sysop", 0, 0),
        (6, 10, b"Speed_of__it", b"", 1, 1),
        (9, 3, b"Ann", b"", 0, 0)]
    texts = [line[1] for line in found["text"]]
    hard = texts[1].decode()
    assert hard.startswith("\n\n<!-- a comment --> '''Cheetah''' &amp; \"friends\" 'run'! "
                           "🐆\U0010fffd é e\u0301 \u202eעברית\u202c \u00a0\u2028\n{{Infobox|")
    assert hard.endswith("\n    four blanks at the end of a line    \n[[Category:Cats]] \r\n\n\n")
    assert ("| 1 || \\'; DROP TABLE page; --\n|}\n<nowiki>'''not bold''' &lt;</nowiki> "
            "<math>\\frac{a}{b} < \\pi</math> <ref name=\"x\" />\n"
            "\ttab, back\\slash \\n \\0 %s ?\t]]> \x85\n") in hard
    assert texts[0] == b"" and texts[2:] == [b"#REDIRECT [[Cheetah#Speed & range]]", b"   ",
                                             '{"labels":{"en":"a cheetah 🐆"}}'.encode()]
    latest = [line[7:10] for line in found["page"]]
    assert latest == [(b"20240229235959", 12, len(texts[1])),
                      (b"20101010101010", 14, len(texts[2])),
                      (b"20200101000000", 15, 3)]
    assert [line[11] for line in found["page"]] == [None, 'Cheetah "🐆" & cats'.encode(), None]
    empty = b"phoiac9h4m842xq45sp7s6u21eteeq1"
    kind = (b"wikitext", b"text/x-wiki")
    assert found["revision"][:3] == [
        (11, 5, 1, "  begun: <b> 🐆 ".encode(), 0, b"2001:DB8:0:0:0:0:0:1", b"20010115131500", 0, 0,
         0, None, empty, *kind, 11),
        (12, 5, 2, b"", 42, "Ünïcode 🐈".encode(), b"20240229235959", 1, 0, len(texts[1]), 11,
         export.sha1(texts[1]).encode(), *kind, 12),
        (13, 5, 0, b"", 0, b"", b"20240229235958", 0, 7, 77, 12, b"", *kind, 13)]
    assert found["slots"] == [(15, b"mediainfo", 5, 15, b"wikibase-mediainfo", b"application/json",
                               34, export.sha1(texts[4]).encode())]


def source_rows(server, name, bytes_max):
    """Pages of a shared data set, as the writer wants them; revisions that the set does not have
    are made up, the same each time."""
    place = shared_data() / f"{name}.sql.zst"
    if not place.exists():
        pytest.skip(f"the shared data sets are not there: {place.name}")
    database = f"source_{name}"
    server.sql(f"CREATE DATABASE {database}")
    script = place_of_beginning(server.folder / f"{name}.sql", place, bytes_max)
    with open(script, "rb") as lines:
        dump.load(server, database, lines, "ENGINE=InnoDB")
    columns = ("rev_comment, rev_timestamp, rev_parent_id"
               if "revision" in dump.base_tables(server, database)
               else "'', '20150101000000', NULL")
    joined = ("JOIN revision ON rev_id = page_latest JOIN text ON old_id = rev_text_id"
              if "revision" in dump.base_tables(server, database)
              else "JOIN text ON old_id = page_latest")
    return server.sql("SELECT page_id, page_namespace, page_title, page_is_redirect, page_latest, "
                      f"old_text, {columns} FROM page {joined} ORDER BY page_id", database)


def place_of_beginning(target, place, bytes_max):
    """The first bytes of a dump that has a row in each line, up to the end of a row."""
    written, with_text = 0, False
    with packed.opened(place) as lines, open(target, "wb") as out:
        for line in lines:
            with_text |= line.startswith(b"INSERT INTO `text`")
            written += len(line) * with_text
            if written > bytes_max and line.endswith(b"),\n"):
                out.write(line[:-2] + b";\n")
                return target
            out.write(line)
    return target


def as_pages(rows, rng):
    """Every page with its text, its comment and its time as the newest revision, and older ones
    that begin as the text does."""
    pages = []
    for ident, ns, title, is_redirect, latest, text, comment, timestamp, parent in rows:
        name = export.NAMESPACES[ns] if ns in export.NAMESPACES else None
        title = title.decode().replace("_", " ")
        when = timestamp.decode() if isinstance(timestamp, bytes) else timestamp
        revisions = [{"id": latest, "parent": parent, "timestamp": iso(when),
                      "user": rng.choice(["192.0.2.7", ("Ünïcode 🐈", 42), ("O'Brien <b>", 7)]),
                      "minor": rng.random() < 0.3,
                      "comment": comment.decode() if isinstance(comment, bytes) else comment,
                      "text": text}]
        for number in range(rng.choice([0, 0, 1, 3])):
            older = rng.choice([HARD.encode(), None, b"",
                                text.decode()[:rng.randrange(2000)].encode()])
            revisions.insert(0, {"id": 2_000_000_000 + len(pages) * 4 + number, "parent": None,
                                 "timestamp": "2000-01-01T00:00:00Z", "user": ("🐆", 0),
                                 "minor": False,
                                 "comment": rng.choice(["", " /* ü */ <i>&amp;</i> \"🐆\" "]),
                                 "text": older})
        target = re.search(r"\[\[([^]|#]+)", text.decode())
        pages.append({"id": ident, "ns": ns, "title": f"{name}:{title}" if name else title,
                      "redirect": (target.group(1) if target else "") if is_redirect else None,
                      "restrictions": rng.choice(["", "", "edit=sysop:move=sysop"]),
                      "revisions": revisions})
    return pages


def iso(when):
    """20010115131500 as the dump has it."""
    return f"{when[:4]}-{when[4:6]}-{when[6:8]}T{when[8:10]}:{when[10:12]}:{when[12:14]}Z"


def expected(pages, version):
    """What the tables should have, by id: written down from the pages, not from the XML."""
    made_pages, revisions = {}, {}
    for page in pages:
        newest = max(page["revisions"], key=lambda one: (one["timestamp"], one["id"]))
        prefix = export.NAMESPACES.get(page["ns"], "")
        title = page["title"][len(prefix) + 1:] if prefix else page["title"]
        made_pages[page["id"]] = (
            page["ns"], title.replace(" ", "_").encode(), page["restrictions"].encode(),
            int(page["redirect"] is not None), newest["id"], len(newest["text"]),
            None if page["redirect"] is None else page["redirect"].encode())
        for one in page["revisions"]:
            user = ((0, one["user"].encode()) if isinstance(one["user"], str)
                    else (one["user"][1], one["user"][0].encode()))
            text = one["text"]
            revisions[one["id"]] = (
                page["id"], one["comment"].encode(), *user,
                re.sub(r"\D", "", one["timestamp"]).encode(), int(one["minor"]), int(text is None),
                len(text or b""), one["parent"] or None,
                b"" if text is None else export.sha1(text).encode(), b"wikitext", b"text/x-wiki",
                one["id"] if version == "0.11" else None, text)
    return made_pages, revisions


def found_rows(server, database):
    pages = server.sql("SELECT page_id, page_namespace, page_title, page_restrictions, "
                       "page_is_redirect, page_latest, page_len, page_redirect_title "
                       "FROM page", database)
    revisions = server.sql("SELECT rev_id, rev_page, rev_comment, rev_user, rev_user_text, "
                           "rev_timestamp, rev_minor_edit, rev_deleted, rev_len, rev_parent_id, "
                           "rev_sha1, rev_content_model, rev_content_format, rev_origin, old_text "
                           "FROM revision LEFT JOIN text ON old_id = rev_text_id", database)
    return {line[0]: line[1:] for line in pages}, {line[0]: line[1:] for line in revisions}


@pytest.mark.parametrize("name, way, version", [
    ("enwiki_raw_sample", "", "0.11"),
    ("ltgwiki", ".bz2", "0.10"),
    ("enwiki_text_plain", ".7z", "0.11"),
    ("enwiki_raw_sample", ".zst", "0.10")])
def test_every_byte_of_real_wikis_arrives(server, database, tmp_path, name, way, version):
    program(way)
    server.sql(f"DROP DATABASE IF EXISTS source_{name}")
    pages = as_pages(source_rows(server, name, SETS[name]), random.Random(5))
    assert len(pages) > 100
    places = []
    imported(server, database, export.write(tmp_path / f"dump.xml{way}", pages, version),
             commit_bytes=1 << 18, on_progress=lambda *said: places.append(said))
    assert [found == wanted
            for found, wanted in zip(found_rows(server, database),
                                     expected(pages, version))] == [True, True]
    assert (len(places) > 2 and all(0 <= done <= size for done, size, _ in places)
            and places[-1][0] == places[-1][1] and places[0][0] > 0)
    assert places == sorted(places)


def made_up(count, rng=None):
    """Pages without any data set."""
    rng = rng or random.Random(1)
    return [{"id": number, "ns": 0, "title": f"Page {number} 🐆", "redirect": None,
             "restrictions": "", "revisions": [
                 {"id": 10 * number + one, "parent": 10 * number + one - 1 if one else None,
                  "timestamp": f"2020-01-01T00:00:0{one}Z", "user": "192.0.2.1", "minor": False,
                  "comment": "c" * one,
                  "text": (HARD + str(rng.random()) * rng.randrange(300)).encode()}
                 for one in range(rng.randrange(1, 4))]}
            for number in range(1, count)]


@pytest.mark.parametrize("way", ["", ".gz", ".bz2", ".xz", ".zst", ".7z"])
def test_all_packings_give_the_same_rows(server, database, tmp_path, way):
    program(way)
    pages = made_up(250)
    imported(server, database, export.write(tmp_path / f"dump.xml{way}", pages))
    assert found_rows(server, database) == expected(pages, "0.11")


def test_carriage_returns_are_kept_however_they_are_written(server, database, tmp_path):
    pages = made_up(30, random.Random(7))
    place = export.write(tmp_path / "dump.xml", pages)
    content = place.read_bytes().replace(b"&#13;", b"\r")
    assert b" \r\n" in content
    place.write_bytes(b'<?xml version="1.0" encoding="utf-8"?>\r\n' + content + b"\r\n")
    imported(server, database, place)
    assert found_rows(server, database) == expected(pages, "0.11")


def test_an_archive_says_what_it_has(tmp_path):
    program(".7z")
    place = export.write(tmp_path / "dump.xml.7z", made_up(20))
    assert packed.expected_bytes(place) == (tmp_path / "dump.xml").stat().st_size
    (tmp_path / "second").write_bytes(b"x")
    subprocess.run([packed.seven_zip(), "a", str(place), str(tmp_path / "second")], check=True,
                   stdout=subprocess.DEVNULL)
    with pytest.raises(Failure, match="has 2 files"):
        packed.expected_bytes(place)


KILLED = """
import sys
from pathlib import Path
from cheetah_lab.inputs import mediawiki
from cheetah_tools.server import connect
class Server:
    def connect(self, database="", **more): return connect(sys.argv[1], database, **more)
    def sql(self, statement): self.connect().query(statement)
def told(*said):
    print(*said, flush=True)
    sys.stdin.readline()
mediawiki.Import(Server(), "w", Path(sys.argv[2]), told, commit_bytes=20000).run()
"""


@pytest.mark.parametrize("way", ["", ".bz2", ".zst"])
def test_an_import_that_is_killed_goes_on(server, database, tmp_path, way):
    pages = made_up(1500)
    place = export.write(tmp_path / f"dump.xml{way}", pages)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(server.socket), str(place)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                          env=environment) as child:
        for _ in range(5):   # it waits for each answer, so that it does not end before it is killed
            assert child.stdout.readline()
            child.stdin.write(b"\n")
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while (server.sql("SELECT 1 FROM information_schema.processlist WHERE db = 'w'")
           and time.monotonic() < deadline):
        time.sleep(0.02)
    before = server.value("SELECT COUNT(*) FROM page", "w")
    assert 0 < before < len(pages) and not mediawiki.finished(server, "w")
    assert server.sql("SELECT pages, last_page, finished FROM lab_import", "w") == [
        (before, pages[before - 1]["id"], 0)]
    inserted = []
    made = mediawiki.Import(server, "w", place)
    original, made.write = made.write, lambda statement: (inserted.append(statement),
                                                          original(statement))
    made.run()
    assert found_rows(server, "w") == expected(pages, "0.11")
    assert sum(statement.count(b"Page_") for statement in inserted) == len(pages) - before, (
        "what was there was not inserted again")
    again = contents(server, "w")
    mediawiki.Import(server, "w", place).run()
    assert contents(server, "w") == again


def refusal(server, place, match):
    """The import fails with this message, and is not taken for whole."""
    server.sql("DROP DATABASE IF EXISTS w")
    with pytest.raises(Failure, match=match):
        mediawiki.Import(server, "w", place).run()
    assert not mediawiki.finished(server, "w")


@pytest.mark.parametrize("way", ["", ".gz", ".bz2", ".xz", ".zst", ".7z"])
def test_a_dump_that_is_cut_off_is_not_taken(server, tmp_path, way):
    program(way)
    place = export.write(tmp_path / f"dump.xml{way}", made_up(300))
    whole = place.read_bytes()
    for part in (0.5, 0.98):
        place.write_bytes(whole[:int(len(whole) * part)])
        refusal(server, place, "cut off")


def test_a_dump_that_ends_between_pages_is_cut_off(server, tmp_path):
    refusal(server,
            export.pack(tmp_path / "a.xml.bz2", [export.head("0.11").encode(),
                                                 export.page(made_up(2)[0], "0.11").encode()]),
            "cut off.*fetch it again")


def variants():
    """What is changed in the sample, and what is said of it."""
    whole = FIXTURE.read_bytes()
    return {
        "nothing": (b"", "is empty"),
        "no XML": (b"just some words\n", "not XML.*is it the dump's file"),
        "another XML": (b"<rss version='2.0'><page/></rss>", "first element is <rss>"),
        "a web page": (b"<!DOCTYPE html><html><body>404</body></html>", "DOCTYPE"),
        "bombs": (b'<!DOCTYPE mediawiki [<!ENTITY a "b">]>' + whole, "DOCTYPE"),
        "no pages": (whole[:whole.index(b"  <page>")] + b"</mediawiki>", "has no pages"),
        "logs": (whole.replace(b"<page>", b"<logitem>", 1), "a dump of logs"),
        "another version": (whole.replace(b'version="0.11"', b'version="0.99"'),
                            "export format 0.99; known are 0.3 to 0.11"),
        "Latin-1": (whole.replace("Ünïcode".encode(), "Ünïcode".encode("latin-1")),
                    r"page 5 \(Cheetah.*byte 0xdc is not UTF-8"),
        "declared Latin-1": (b'<?xml version="1.0" encoding="ISO-8859-1"?>\n' + whole,
                             "says that it is ISO-8859-1"),
        "UTF-16": (whole.decode().encode("utf-16"), "UTF-16.*iconv"),
        "a stub": (re.sub(rb'<text bytes="[0-9]+"([^>/]*)>[^<]+</text>',
                          b'<text bytes="9" id="7" />', whole),
                   "has no texts.*take pages-articles"),
        "an id that is none": (whole.replace(b"<id>6</id>", b"<id>six</id>"),
                               "'six', wanted a number"),
        "a page twice": (whole.replace(b"<id>6</id>", b"<id>5</id>"),
                         "'5' for key 'PRIMARY'.*twice"),
        "a revision twice": (whole.replace(b"<id>14</id>", b"<id>11</id>"), "twice"),
        "damaged tags": (whole.replace(b"</comment>", b"</commend>", 1),
                         r"page 5 .*mismatched tag.*byte [\d,]+"),
        "two files": (whole + whole, "several files in one"),
        "a wrong name": (b"BZh91AY&SY", "its first bytes say .bz2"),
        "a long title": (whole.replace(b"User talk:Ann", b"x" * 300), "page_title"),
    }


@pytest.mark.parametrize("what", list(variants()))
def test_what_is_wrong_is_said(server, tmp_path, what):
    place = tmp_path / "dump.xml"
    content, match = variants()[what]
    place.write_bytes(content)
    refusal(server, place, match)


def test_texts_that_were_lost_or_brought_into_another_form_are_counted(server, database, tmp_path):
    """MediaWiki's own exporter writes both into dumps that are whole."""
    pages = made_up(30)
    place = export.write(tmp_path / "dump.xml", pages)
    content, texts = place.read_text(), 0
    for number in (5, 17):
        content, count = re.subn(rf"(<id>{number}0</id>.*?<text bytes=\"\d+\")[^>]*>[^<]*</text>",
                                 r"\1 />", content, count=1, flags=re.S)
        texts += count
    assert texts == 2
    place.write_text(content.replace("a &lt; b", "a &lt; c", 1), newline="")
    made = imported(server, database, place)
    assert made.doubts == {mediaxml.OTHER: (1, "page 1 (Page 1 \U0001f406), revision 10"),
                           mediaxml.ABSENT: (2, "page 5 (Page 5 \U0001f406), revision 50")}
    lost = server.sql("SELECT rev_id, rev_text_id, rev_len, rev_deleted FROM revision "
                      "WHERE rev_text_id = 0 ORDER BY 1", database)
    assert lost == [(10 * page["id"], 0, len(page["revisions"][0]["text"]), 0)
                    for page in (pages[4], pages[16])]
    assert (server.value("SELECT COUNT(*) FROM text", database)
            == sum(len(page["revisions"]) for page in pages) - 2)


def test_a_text_that_no_mediumblob_holds_is_refused(server, database, tmp_path):
    page = made_up(2)[0]
    page["revisions"] = [{**page["revisions"][0], "text": b"x" * ((1 << 24) - 1)}]
    imported(server, database, export.write(tmp_path / "most.xml", [page]))
    assert server.value("SELECT LENGTH(old_text) FROM text", "w") == (1 << 24) - 1
    page["revisions"][0]["text"] += b"x"
    refusal(server, export.write(tmp_path / "more.xml", [page]),
            r"page 1 \(Page 1.*more than 16,777,215 bytes.*leave that page out")


def test_a_row_that_the_server_does_not_let_in_is_refused(server, tmp_path):
    page = made_up(2)[0]
    page["revisions"] = [{**page["revisions"][0], "text": b"x" * (2 << 20)}]
    before = server.value("SELECT @@max_allowed_packet")
    server.sql("SET GLOBAL max_allowed_packet = 1048576")
    try:
        refusal(server, export.write(tmp_path / "a.xml", [page]),
                "max_allowed_packet is 1,048,576: raise it")
    finally:
        server.sql(f"SET GLOBAL max_allowed_packet = {before}")


def test_another_file_does_not_go_on_where_one_ended(server, database, tmp_path):
    imported(server, database, export.write(tmp_path / "a.xml", made_up(3)))
    with pytest.raises(Failure, match="import of another file"):
        mediawiki.Import(server, database, export.write(tmp_path / "b.xml", made_up(4))).run()


def test_memory_stays_small(tmp_path):
    """A page with many revisions and a long dump: the reader keeps one piece of it."""
    code = ("import sys, resource\nfrom pathlib import Path\n"
            "from cheetah_lab.inputs import packed, mediaxml\n"
            "base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "print(sum(1 for _ in mediaxml.Reader(packed.opened(Path(sys.argv[1])), 'x')), "
            "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)")
    page = made_up(2)[0]
    page["revisions"] = [{**page["revisions"][0], "id": number, "text": b"0123456789" * 10_000}
                         for number in range(1, 600)]
    place = export.write(tmp_path / "a.xml.gz", [page])
    done = subprocess.run([sys.executable, "-c", code, str(place)],
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          capture_output=True, text=True, check=True)
    items, grown = map(int, done.stdout.split())
    assert items == 599 + 3 and grown < 16 * 1024, f"{grown} KiB for 60 MB of XML"
