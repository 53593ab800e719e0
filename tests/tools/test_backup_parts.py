"""Tests the decisions of cheetah-backup without a server."""

import errno
import json
import os
import sys
from types import SimpleNamespace

import pytest
from cheetah_backup import (clone, copying, listening, make, record, replication, rest, snapshot,
                            stages)
from cheetah_backup.program import parser
from cheetah_backup.record import File, Record
from cheetah_client.connection import Lost
from cheetah_client.say import Failure

MANIFEST = ("cheetah snapshot 1\ndatabase 07\nepoch 3\nlog 1 2\nwithdrawn 0\nnote by backup\n"
            "note binlog b.000007 1234\nnote gtid \nfile seg/1.seg 3 - linked\n"
            "file CONTROL 3 0123abcd copied\nend 00000000\n")


@pytest.fixture
def made(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    target = copying.Folder(tmp_path / "backup")
    files = []
    for name in ("one", "two"):
        (source / name).write_text(name)
        there = (source / name).stat()
        digest = target.take(f"cheetah/{name}", source / name, copying.Pace(None))
        files.append(File(f"cheetah/{name}", there.st_size, digest, there.st_ino,
                          there.st_mtime_ns))
    target.finish(Record("full", "2026-11-26T00:00:00Z", "10.11", files=files).encode())
    return tmp_path / "backup"


def test_a_record_is_read_as_it_was_written_and_damage_is_found(made):
    found = record.read(made)
    assert [file.path for file in found.files] == ["cheetah/one", "cheetah/two"]
    assert record.decode(found.encode(), "BACKUP") == found
    data = (made / record.NAME).read_bytes()
    for wrong in (data[:-5], data.replace(b'"full"', b'"fall"'), b"[]", b"\xff"):
        with pytest.raises(Failure, match="damaged"):
            record.decode(wrong, "BACKUP")
    newer = json.dumps({**json.loads(data), "format": 2}).encode()
    with pytest.raises(Failure, match="newer cheetah-backup"):
        record.decode(newer, "BACKUP")
    with pytest.raises(Failure, match="it has no file BACKUP"):
        record.read(made / "cheetah")


def test_a_file_is_the_one_before_only_with_the_same_bytes(made, tmp_path):
    base, pace = make.Base(made, record.read(made)), copying.Pace(None)
    source = tmp_path / "source/one"
    digest = base.files["cheetah/one"].digest
    assert base.same("cheetah/one", source, pace) == digest
    os.utime(source, ns=(0, 0))
    assert base.same("cheetah/one", source, pace) == digest, "it is read then"
    source.write_text("ten")
    assert not base.same("cheetah/one", source, pace)
    assert not base.same("cheetah/three", source, pace)
    (made / "cheetah/two").unlink()
    assert not base.same("cheetah/two", tmp_path / "source/two", pace)


def test_manifests_of_other_versions_and_their_beginnings_are_refused():
    found = snapshot.parse(MANIFEST, "MANIFEST")
    assert found.notes == {"by": "backup", "binlog": "b.000007 1234", "gtid": ""}
    assert found.paths == ["seg/1.seg", "CONTROL"] and found.withdrawn == 0
    for text, why in ((MANIFEST.replace("snapshot 1", "snapshot 2"), "another version"),
                      (MANIFEST[:-14], "not written to its end"), ("", "no manifest")):
        with pytest.raises(Failure, match=why):
            snapshot.parse(text, "MANIFEST")


def test_a_snapshot_that_is_not_of_this_run_is_refused(tmp_path):
    def check(info: str, **notes):
        (tmp_path / "xtrabackup_binlog_info").write_text(info)
        notes = {"by": "backup", "pinned": "2026-11-26T10:00:00Z", "binlog": "b.1 77", **notes}
        manifest = snapshot.Manifest(notes, [], 0)
        return make.check_position(manifest, tmp_path, "2026-11-26T09:59:59Z")
    assert check("b.1\t77\t0-7-9\n") == ["b.1", "77", "0-7-9"]
    for wrong in ({"by": "statement"}, {"pinned": "2026-11-26T09:00:00Z"}):
        with pytest.raises(Failure, match="is gone"):
            check("b.1\t77\n", **wrong)
    with pytest.raises(Failure, match="another backup ran meanwhile"):
        check("b.1\t78\n")


class Watch:
    """A fake target and data folder. It records the snapshot's remaining files at each take."""

    def __init__(self, folder, snapshot_folder):
        self.folder, self.snapshot, self.left, self.shared_bytes = folder, snapshot_folder, [], 0

    def take(self, *_):
        places = sorted(place for place in self.snapshot.rglob("*") if place.is_file())
        self.left.append([str(place.relative_to(self.snapshot)) for place in places])
        return "digest"


def test_each_file_of_a_snapshot_goes_as_soon_as_it_is_taken(tmp_path):
    """Each file is deleted as soon as it is taken. Otherwise the space of all files that the server
    has released would stay in use until the last byte is copied. If a kill interrupts this, the
    next start of the server removes the remaining files, as CONTROL and MANIFEST are gone."""
    options = parser().parse_args(["full", "there"])
    for take in (lambda folder, found, watch: make.Making(options, tmp_path, watch).take_engine(
            folder, found, None), lambda *words: clone.take_engine(options, *words)):
        folder = tmp_path / "snapshot"
        (folder / "seg").mkdir(parents=True)
        for path in ("seg/1.seg", "CONTROL", "MANIFEST"):
            (folder / path).write_text(path)
        watch = Watch(tmp_path / "target", folder)
        take(folder, snapshot.parse(MANIFEST, "MANIFEST"), watch)
        assert watch.left == [["CONTROL", "MANIFEST", "seg/1.seg"], ["CONTROL", "seg/1.seg"],
                              ["seg/1.seg"]]
        snapshot.remove(folder)


def take_all(root, base):
    folder, target = root / "snapshot", copying.Folder(root)
    paths = ["seg/1.seg", "chg/3.chg", "map-1.base", "map-1.log", "wal/000000000001.log", "CONTROL"]
    for path in (*paths, "MANIFEST"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    making = make.Making(parser().parse_args(["full", "there"]), root, target)
    making.take_engine(folder, snapshot.Manifest({}, paths, 0), base)
    return root / "cheetah", Record("full", "now", "10.11", files=making.files)


def test_only_files_that_nobody_writes_to_are_links_into_the_backup_before(tmp_path):
    """A server or cheetah-cli that runs in the folder of a backup writes to the other files."""
    before, record_before = take_all(tmp_path / "before", None)
    after, _ = take_all(tmp_path / "after", make.Base(tmp_path / "before", record_before))
    links = {str(place.relative_to(after)) for place in after.rglob("*") if place.is_file()
             and place.samefile(before / place.relative_to(after))}
    assert links == {"seg/1.seg", "chg/3.chg", "map-1.base"}


def test_a_snapshot_of_a_moment_with_prepared_transactions_is_refused():
    """InnoDB still has these transactions, so a server would not start from the backup."""
    make.check_withdrawn(snapshot.parse(MANIFEST, "MANIFEST"))
    with pytest.raises(Failure, match="3 transactions were prepared"):
        make.check_withdrawn(snapshot.parse(MANIFEST.replace("withdrawn 0", "withdrawn 3"),
                                            "MANIFEST"))


@pytest.mark.parametrize("counted, is_alone", [(5, True), (6, True), (7, False), (4, False),
                                               (-3, False)])
def test_a_count_of_stages_that_another_backup_or_a_flush_has_changed_is_refused(counted, is_alone):
    server = SimpleNamespace(connection=SimpleNamespace(
        run=lambda _: [["Com_backup", str(10 + counted)]]))
    if is_alone:
        stages.check_alone(server, 10)
    else:
        with pytest.raises(Failure, match=f"another backup .* FLUSH GLOBAL STATUS.* {counted}"):
            stages.check_alone(server, 10)


def test_ctrl_c_leaves_no_other_sql_thread_of_a_replica_stopped():
    said = []

    def run(statement):
        said.append(statement)
        if said.count("START SLAVE SQL_THREAD") == 1 and statement.startswith("START"):
            raise KeyboardInterrupt
    with pytest.raises(Failure, match="START SLAVE 'a' SQL_THREAD: interrupted$"):
        replication.go_on(SimpleNamespace(run=run), ["a", "b"])
    assert said.count("START SLAVE SQL_THREAD") == 2


def test_sql_threads_go_on_in_another_session_when_the_one_of_the_backup_is_lost():
    sessions = []

    def run(statement):
        if not sessions:
            raise Lost("gone")
        sessions[-1].append(statement)
    server = SimpleNamespace(run=run, connect_again=lambda: sessions.append([]))
    with pytest.raises(Failure, match="Begin again$"):
        replication.go_on(server, ["a", "b"])
    assert len(sessions) == 1 and sessions[0].count("START SLAVE SQL_THREAD") == 2


def test_a_rate_is_kept(monkeypatch):
    now, slept = [0.0], []
    monkeypatch.setattr(copying.time, "monotonic", lambda: now[0])

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds
    monkeypatch.setattr(copying.time, "sleep", sleep)
    pace = copying.Pace(1000)
    for _ in range(10):
        pace.moved(500)
    assert abs(sum(slept) - 5) < 0.01
    pace.skipped(1 << 30)
    assert abs(sum(slept) - 5) < 0.01


def test_little_of_a_copy_waits_for_the_disk_at_any_time(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(11 << 20))
    sizes, real = [], {name: getattr(os, name) for name in ("fdatasync", "fsync")}
    for name, sync in real.items():
        def synced(handle, sync=sync):
            sizes.append(os.fstat(handle).st_size)
            sync(handle)
        monkeypatch.setattr(copying.os, name, synced)
    digest = copying.copy(source, target, copying.Pace(None))
    assert target.read_bytes() == source.read_bytes()
    assert digest == copying.digest_of(target, copying.Pace(None))
    assert sizes == [4 << 20, 8 << 20, 11 << 20]


@pytest.mark.parametrize("code, steps", [(0, 3), (errno.EIO, 1), (errno.ENOSYS, 1)])
def test_an_error_of_the_disk_is_told_by_the_step_that_meets_it(tmp_path, monkeypatch, code, steps):
    """The error is reported at that step, because the final sync would not report it again."""
    firsts = []

    def step(_handle, first, _count, _flags):
        firsts.append(first.value)
        copying.ctypes.set_errno(code)
        return -1 if code else 0
    monkeypatch.setattr(copying.ctypes, "CDLL",
                        lambda *_, **__: SimpleNamespace(sync_file_range=step))
    place = tmp_path / "t.ibd"
    place.write_bytes(b"x" * (9 << 20))
    if code == errno.EIO:
        with pytest.raises(OSError) as told:
            copying.sync_file(place)
        assert (told.value.errno, told.value.filename) == (code, str(place))
    else:
        copying.sync_file(place)
    assert firsts == [0, 4 << 20, 8 << 20][:steps]


@pytest.fixture
def synced(monkeypatch):
    numbers, sync = set(), os.fsync

    def noted(handle):
        sync(handle)
        numbers.add(os.fstat(handle).st_ino)
    monkeypatch.setattr(copying.os, "fsync", noted)
    return numbers


def write_rest(folder) -> list:
    """Writes unsynced files like those of mariadb-backup; returns their paths."""
    places = [folder / name for name in ("ibdata1", "d/t.ibd", "d/t.frm")]
    (folder / "d").mkdir(parents=True)
    for place in places:
        place.write_bytes(b"x" * (9 << 20 if place.suffix == ".ibd" else 100))
    (folder / "d/empty").touch()
    return [*places, folder / "d/empty"]


def test_what_mariadb_backup_has_written_is_synced_before_a_backup_is_complete(tmp_path, synced):
    target, options = tmp_path / "backup", parser().parse_args(["full", "there"])
    assert not make.make_empty(target) and make.make_empty(target)
    assert tmp_path.stat().st_ino in synced, "the name of the backup's folder"
    places = write_rest(target / record.SERVER)
    making = make.Making(options, target, copying.Folder(target))
    making.take_rest(target / record.SERVER)
    assert {place.stat().st_ino for place in places} <= synced and len(making.files) == len(places)


def test_what_mariadb_backup_has_put_into_a_data_folder_is_synced(tmp_path, synced, monkeypatch):
    places = []
    monkeypatch.setattr(rest, "mariadb_backup", lambda *_: places.extend(write_rest(tmp_path)))
    (tmp_path / "#cheetah").mkdir()
    (tmp_path / "#cheetah/CONTROL").touch()
    rest.put_into_place(None, "the other engines", tmp_path, "--copy-back")
    assert {place.stat().st_ino for place in places} <= synced
    assert (tmp_path / "#cheetah/CONTROL").stat().st_ino not in synced, "it is durable already"


def test_help_says_what_each_command_does(capsys):
    for words in (["--help"], ["full", "--help"], ["restore", "--help"]):
        with pytest.raises(SystemExit):
            parser().parse_args(words)
        assert "docs/users/backup.md" in capsys.readouterr().out or words != ["--help"]
    options = parser().parse_args(["full", "there", "--rate", "20M", "--more=--parallel=4"])
    assert (options.target, options.rate, options.more) == ("there", 20 << 20, ["--parallel=4"])


def test_of_two_positions_each_domain_has_the_later_gtid():
    for found, wanted in ((("", ""), ""), (("0-1-5", ""), "0-1-5"), (("", "0-7-3"), "0-7-3"),
                          (("0-1-5,1-1-2", "0-7-12,2-7-9"), "0-7-12,1-1-2,2-7-9"),
                          (("0-1-10", "0-1-9"), "0-1-10")):
        assert make.later_gtids(*found) == wanted


def test_files_are_moved_where_nobody_else_has_them(tmp_path):
    for copies in (False, True):
        source, target = tmp_path / f"source-{copies}", tmp_path / f"target-{copies}"
        source.mkdir()
        (source / "alone").write_text("alone")
        (source / "linked").write_text("linked")
        os.link(source / "linked", source / "other")
        data = clone.Data(target, source.stat(), copies)
        for name in ("alone", "linked"):
            data.take(source / name, target / name, copying.Pace(None))
            assert (target / name).read_text() == name
        assert not (source / "alone").exists()
        shared = (target / "linked").stat().st_ino == (source / "other").stat().st_ino
        assert shared != copies and data.shared_bytes == (0 if copies else 6)


def test_files_are_cloned_or_that_is_refused_without_a_trace(tmp_path):
    (tmp_path / "one").write_text("one")
    if copying.clone(tmp_path / "one", tmp_path / "two"):
        assert (tmp_path / "two").read_text() == "one"
    else:
        assert not (tmp_path / "two").exists()


def test_statements_of_a_clone_are_sql_whatever_the_names():
    said = clone.how_to_go_on(["db1", "3306"], "0-1-5")
    assert "gtid_slave_pos = '0-1-5';" in said and "MASTER_HOST = 'db1', MASTER_PORT = 3306" in said
    assert "X'" in clone.how_to_go_on(["d'b", "3306"], "")
    assert "MASTER_PORT" not in clone.how_to_go_on(["db1", "0"], "")


# Prints what mariadb-backup prints when it stops its thread, then how long its last lines took.
SPEAKER = """
import array, fcntl, os, resource, termios, time
def say(words):
    os.write(1, words.encode())
def is_heard():
    waiting = array.array("i", [0])
    fcntl.ioctl(1, termios.FIONREAD, waiting)
    return not waiting[0]
def wait_until_heard():
    while not is_heard():
        time.sleep(0.001)
say("[00] Copying a.frm\\n" * 100)
say("[00] Flushed Logs\\n")
if {blocks}:
    say("[00] Acquired locks for BACKUP STAGE BLOCK_COMMIT\\n")
    for _ in range(100):
        if fcntl.fcntl(1, fcntl.F_GETPIPE_SZ) > resource.getpagesize():
            say("[00] Copied file\\n")
            wait_until_heard()
say("[00] Flushed Logs\\n")
wait_until_heard()
began = time.monotonic()
say("[00] mariabackup: The latest check point is 7\\n")
say("mariabackup: Stopping log copying thread")
say(f"\\nwaited {{time.monotonic() - began}}\\n")
raise SystemExit(7)
"""


@pytest.mark.parametrize("blocks", [True, False])
def test_mariadb_backup_waits_where_it_stops_its_thread(blocks):
    status, said = listening.run([sys.executable, "-c", SPEAKER.format(blocks=blocks)],
                                 dict(os.environ))
    waited = float(said.split()[-1])
    assert status == 7 and said.startswith("[00] Copying a.frm\n" * 100)
    assert "is 7\nmariabackup: Stopping log copying thread\nwaited" in said
    assert not blocks or waited >= listening.HELD_SECONDS, said


def test_a_program_that_cannot_be_run_is_an_error():
    with pytest.raises(OSError):
        listening.run(["/nowhere/mariadb-backup"], {})
