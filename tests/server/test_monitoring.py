"""Stalls and latencies in views, status and error log, and the names that tools/monitoring uses."""

import json
import re
import time

from cheetah_tools.paths import PROJECT
from servers import Client, expect_nothing_without_process, run, Session, wait_until, working
from stalls import StalledDisk, busy

# A few statements fill this log and this memory limit. The engine does not sleep for waits shorter
# than `WARNING_S`.
WARNING_S = 0.0005
OPTIONS = {"loose_cheetah_buffer_pool_size": "8M", "loose_cheetah_log_file_size": "1M",
           "loose_cheetah_log_size_max": "8M", "loose_cheetah_stall_warning": WARNING_S,
           "loose_cheetah_flush_log_at_trx_commit": 2}
WRITERS = 3
MONITORING = PROJECT / "tools" / "monitoring"
REASONS = ["row lock", "table lock", "log space", "memory", "rollback", "disk", "checkpoint"]
LINE = re.compile(r"\[Warning\] CHEETAH: stall: (?:(?:connection (\d+)|a thread of the engine) "
                  r"(?:waited|has been waiting) ([\d.]+) s for ([a-z ]+)|"
                  r"\d+ threads (?:waited|have been waiting) for ([a-z ]+), "
                  r"(?:connection (\d+)|a thread of the engine) for ([\d.]+) s)$", re.M)


def stall(server, reason: str) -> dict:
    rows = server.sql("SELECT current_count, current_max_us, count, max_us FROM "
                      f"information_schema.cheetah_stalls WHERE reason = '{reason}'")
    return dict(zip(("current", "current_max_us", "count", "max_us"), rows[0]))


def table(server, name: str) -> None:
    run(server, "CREATE DATABASE IF NOT EXISTS d", f"CREATE TABLE d.{name} (a INT PRIMARY KEY "
        "AUTO_INCREMENT, b BLOB) ENGINE=CHEETAH", f"INSERT INTO d.{name} VALUES (1, '')",
        database="")


class Writer(Client):
    """Writes more than the log and the memory limit can hold."""

    def work(self, cursor) -> None:
        cursor.execute("INSERT INTO w (b) SELECT RANDOM_BYTES(900) FROM seq_1_to_1000")


def test_stalls_for_log_space_and_memory_are_in_the_error_log(pair):
    table(pair, "w")
    started, since = time.monotonic(), len(pair.log.read_text(errors="replace"))
    try:
        with working([Writer(pair, number) for number in range(WRITERS)]) as writers:
            for what, reason in (("room in the log", "log space"), ("free memory", "memory")):
                wait_until(lambda: any(line[2] == what for line in lines(pair, since)),
                           f"no line for {what}")
                told = stall(pair, reason)
                assert told["count"] >= 1 and told["max_us"] >= WARNING_S * 1e6, f"{reason}: {told}"
            told = lines(pair, since)
            seconds = time.monotonic() - started
            assert len(told) <= seconds + 2, f"{len(told)} lines in {seconds:.1f} s: {told}"
            rooms = [line for line in told if line[2] in ("room in the log", "free memory")]
            numbers = {str(writer.connection.thread_id()) for writer in writers}
            assert {line[0] for line in rooms} <= numbers | {""}, f"not of {numbers}: {told}"
            assert all(line[1] >= WARNING_S for line in told), f"{told}"
            pair.sql("SET GLOBAL cheetah_stall_warning = 0")
            before, count = len(lines(pair)), stall(pair, "memory")["count"]
            wait_until(lambda: stall(pair, "memory")["count"] > count, "no further stall")
            time.sleep(1.1)   # by now the next line would have been logged
            assert len(lines(pair)) <= before + 1, "stalls are reported though it is off"
    finally:
        pair.sql("SET GLOBAL cheetah_stall_warning = DEFAULT")
    assert pair.value("SELECT @@global.cheetah_stall_warning") == 5
    text = pair.log.read_text()[since:]
    assert "stall" in text and "row lock" not in text and "table lock" not in text


def is_named(server, reason: str, line: str) -> None:
    """Waits until a stall is in the view, with its duration, and in the error log."""
    wait_until(lambda: stall(server, reason)["current_max_us"] >= 1e6, f"{reason}: not in the view")
    assert stall(server, reason)["current"] >= 1
    wait_until(lambda: re.search(line, server.log.read_text(errors="replace")),
               f"no line {line} in the error log", seconds=10)


def test_a_stalled_disk_a_slow_checkpoint_a_full_log_and_a_pile_up_are_named(new_server):
    server = new_server({**OPTIONS, "loose_cheetah_stall_warning": 1,
                         "loose_cheetah_flush_log_at_trx_commit": 1})
    disk = StalledDisk(server)
    server.start()
    table(server, "w")
    disk.stall("#cheetah")
    with busy(server, 1, "INSERT INTO w (b) VALUES ('x')"):
        is_named(server, "disk", "stall: .* waiting [0-9.]+ s for the disk")
        disk.go_on()
    ended = stall(server, "disk")
    assert ended["count"] >= 1 and ended["max_us"] >= 1e6, f"{ended}"
    fill = "INSERT INTO w (b) SELECT RANDOM_BYTES(900) FROM seq_1_to_30000"
    disk.stall("#cheetah/seg")
    with busy(server, 1, fill) as (writer,):
        is_named(server, "checkpoint", r"waiting [0-9.]+ s for a step of a checkpoint to end")
        is_named(server, "log space", rf"connection {writer} .* for room in the log")
        disk.go_on()
    with Session(server, autocommit=False) as owner:
        owner.run("UPDATE w SET b = 'y' WHERE a = 1")
        with busy(server, 12, "UPDATE w SET b = 'z' WHERE a = 1"):
            is_named(server, "row lock", r"stall: 1[0-2] threads have been waiting for row locks, "
                                         r"connection \d+ for ")
            owner.run("ROLLBACK")


def lines(server, since: int = 0) -> list:
    """Returns the log's stall lines from a position on: connection, seconds and reason."""
    found = LINE.findall(server.log.read_text(errors="replace")[since:])
    return [(one[0] or one[4], float(one[1] or one[5]), one[2] or one[3]) for one in found]


def test_latencies_are_in_the_view_and_in_the_status(pair):
    table(pair, "l")
    pair.restart()
    run(pair, "UPDATE l SET b = 'x'", "SET GLOBAL cheetah_checkpoint_now = ON")
    counts = {}
    for operation, from_us, below_us, count in pair.sql(
            "SELECT * FROM information_schema.cheetah_latency"):
        assert below_us is None or below_us == max(1, 2 * from_us), f"{operation}: {from_us}"
        counts[operation] = counts.get(operation, 0) + count
    assert {"commit", "log sync", "checkpoint step", "page read"} <= set(counts), f"{counts}"
    name = "Cheetah_latency_{}_{}"
    assert pair.status(name.format("commit", "count")) == counts["commit"] >= 1
    for operation in counts:
        status = {end: pair.status(name.format(operation.replace(" ", "_"), end))
                  for end in ("count", "us", "us_max")}
        assert status["count"] >= counts[operation] and status["us"] >= status["us_max"], operation
    text = pair.sql("SHOW ENGINE CHEETAH STATUS")[0][2]
    assert "LATENCIES AND STALLS" in text and "latency commit us max" in text, text


def test_views_need_the_privilege_process(pair):
    rows = pair.sql("SELECT reason FROM information_schema.cheetah_stalls")
    assert [reason for reason, in rows] == REASONS
    expect_nothing_without_process(pair, "stalls", "latency")


def metrics(text: str) -> set:
    return set(re.findall(r"\bmysql_global_(?:status|variables)_cheetah_\w+", text))


def test_every_name_of_the_dashboard_and_the_alerts_is_one_of_the_engine(pair):
    """mysqld_exporter derives names from status variables and settings. All used must exist."""
    known = {f"mysql_global_{kind}_{name.lower()}"
             for kind, show in (("status", "STATUS"), ("variables", "VARIABLES"))
             for name, _ in pair.sql(f"SHOW GLOBAL {show} LIKE 'cheetah%'")}
    dashboard = (MONITORING / "cheetah-dashboard.json").read_text()
    alerts = (MONITORING / "cheetah-alerts.yml").read_text()
    for text, least in ((dashboard, 60), (alerts, 12)):
        named = metrics(text)
        assert len(named) >= least, f"the test no longer finds names: {named}"
        assert named <= known, f"unknown: {sorted(named - known)}"
    targets = [target for panel in json.loads(dashboard)["panels"]
               for target in panel.get("targets", [])]
    assert all(metrics(target["expr"]) for target in targets) and len(targets) > 50
