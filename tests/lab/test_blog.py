"""Tests of the blog shard: bytes by seed, compression like English, COMPRESS()'s format."""

import random
import re
import struct
import zlib

from cheetah_lab.inputs import blog
from cheetah_tools import formatdata

ROWS = 300


def dump(folder, seed=1, **form):
    written = blog.write_dump(folder / "dump.sql", random.Random(seed), ROWS, **form)
    found = (folder / "dump.sql").read_bytes()
    assert len(found) == written
    return found


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    assert dump(tmp_path, 5) == dump(tmp_path, 5) != dump(tmp_path, 6)


def test_every_row_is_there_with_an_address_of_its_own(tmp_path):
    rows = re.findall(rb"^\((\d+),\d+,'[^']+','[^']+','(http[^']+)','([0-9a-f]{32})',",
                      dump(tmp_path), re.M)
    assert [int(number) for number, _, _ in rows] == list(range(1, ROWS + 1))
    assert (len({address for _, address, _ in rows}) == len({digest for _, _, digest in rows})
            == ROWS)


def test_the_text_compresses_about_as_english_does(tmp_path):
    text = dump(tmp_path)[2000:]
    parts = [text[place:place + 16000] for place in range(0, len(text), 16000)]
    ratio = sum(len(zlib.compress(part)) for part in parts) / len(text)
    assert 0.35 < ratio < 0.52, ratio    # the shared sample of Wikipedia has 0.42


def test_all_keys_but_the_primary_one_are_added_by_one_statement(tmp_path):
    dump(tmp_path)
    (statement,) = formatdata.index_statements(tmp_path)
    assert statement.count("ADD ") == len(blog.KEYS) == 7 and "ADD UNIQUE KEY" in statement


def test_a_compressed_body_is_its_length_and_what_zlib_gives():
    plain, packed = (blog.Posts(random.Random(3)).row(1),
                     blog.Posts(random.Random(3), compressed=True).row(1))
    text = re.search(rb"'([^']*)'\)$", plain).group(1)
    literal = packed[packed.index(b"_binary '") + 9:-2]
    body = re.sub(rb"\\(.)",
                  lambda found: {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"Z": b"\x1a"}.get(
                      found.group(1), found.group(1)),
                  literal, flags=re.S)
    assert struct.unpack("<I", body[:4])[0] == len(text) and zlib.decompress(body[4:]) == text


def test_characters_of_four_bytes_are_there_for_utf8mb4_alone(tmp_path):
    assert "\U0001f406".encode() in dump(tmp_path, charset="utf8mb4") and dump(tmp_path).isascii()
