"""The texts for the Wikipedia experiment, from a dump of articles or an archive of text files."""

import io
import shutil
import subprocess
import tarfile

import pytest
from cheetah_tools import texts
from cheetah_tools.paths import SERVER
from cheetah_tools.say import Failure

DUMP = b"""CREATE TABLE `page` (
  `page_id` int(10)
) ENGINE=InnoDB;
INSERT INTO `page` VALUES
(1),
(2);
INSERT INTO `text` VALUES
(1,'Anarchism\\n\\nis, (said\\');','utf-8'),
(2,'Caf\xc3\xa9','utf-8');
INSERT INTO `text` VALUES
(3,'third','utf-8');
UNLOCK TABLES;
"""
ROWS = [b"(1,'Anarchism\\n\\nis, (said\\');','utf-8')", b"(2,'Caf\xc3\xa9','utf-8')",
        b"(3,'third','utf-8')"]


def compressed(folder, content):
    """Returns a compressed dump, stored like the shared data set."""
    tool = shutil.which("zstd") or str(SERVER / "usr/bin/zstd")
    if not shutil.which(tool):
        pytest.skip("no zstd on this machine")
    place = folder / f"{texts.WIKIPEDIA}.sql.zst"
    place.write_bytes(subprocess.run([tool, "-c"], input=content, capture_output=True,
                                     check=True).stdout)
    return place


def archive(folder, files):
    place = folder / "source.tar.gz"
    with tarfile.open(place, "w:gz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return place


def test_only_the_texts_of_a_dump_are_taken(tmp_path):
    assert list(texts.wikipedia_rows(compressed(tmp_path, DUMP))) == ROWS


def test_a_dump_that_is_cut_off_is_a_failure(tmp_path):
    place = compressed(tmp_path, DUMP * 1000)
    place.write_bytes(place.read_bytes()[:-20])
    with pytest.raises(Failure, match="Is the file whole"):
        list(texts.wikipedia_rows(place))


def test_files_of_an_archive_become_rows_when_they_are_text(tmp_path):
    place = archive(tmp_path, {"a/readme": b"it's\nthis", "a/picture": b"\x89PNG\0\0",
                               "a/latin": b"caf\xe9", "a/empty": b"", "a/last": "Käse".encode()})
    assert list(texts.source_rows(place)) == [b"(1,'it\\'s\\nthis','utf-8')",
                                              "(2,'Käse','utf-8')".encode()]


def test_a_small_dump_is_the_beginning_of_a_large_one(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "rows", lambda: (row for row in ROWS))
    assert texts.write_dump(tmp_path / "small.sql", 5) == len(ROWS[0])
    assert texts.write_dump(tmp_path / "large.sql", 10**9) == sum(map(len, ROWS))
    small, large = (tmp_path / "small.sql").read_bytes(), (tmp_path / "large.sql").read_bytes()
    assert large.startswith(small.removesuffix(b";\n"))
    assert large.endswith(b"INSERT INTO `text` VALUES\n" + b",\n".join(ROWS) + b";\n")


def test_without_texts_the_reason_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("CHEETAH_DATA", str(tmp_path))
    monkeypatch.setattr(texts.setup, "SOURCE", tmp_path)
    assert "no *.orig.tar.*" in texts.missing()
    (tmp_path / "mariadb_1.orig.tar.gz").touch()
    assert texts.missing() == "" and not texts.from_wikipedia()
    (tmp_path / f"{texts.WIKIPEDIA}.sql.zst").touch()
    assert texts.missing() == "" and texts.from_wikipedia()
