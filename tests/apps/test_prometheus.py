"""Prometheus with mysqld_exporter: the dashboard and the alert rules in tools/monitoring."""

import contextlib
import functools
import json
import subprocess
import urllib.parse
import urllib.request

import fetched
import pytest
import servers
import sides
import stalls
from cheetah_tools.paths import PROJECT

MONITORING = PROJECT / "tools" / "monitoring"
ALERTS = MONITORING / "cheetah-alerts.yml"
PROGRAMS = ["usr/bin/prometheus", "usr/bin/promtool"]
EXPORTER = "usr/bin/prometheus-mysqld-exporter"
SCRAPED = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - {{job_name: mariadb, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}
"""


@pytest.fixture
def prometheus():
    return fetched.debian("prometheus", ["prometheus"], PROGRAMS)


def promtool(root, *words) -> None:
    done = subprocess.run([root / "usr/bin/promtool", *map(str, words)], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules_and_they_say_what_they_should(prometheus):
    promtool(prometheus, "check", "rules", ALERTS)
    promtool(prometheus, "test", "rules", PROJECT / "tests/apps/prometheus/alerts_test.yml")


@contextlib.contextmanager
def watched(prometheus, server):
    """Runs Prometheus and an exporter that samples the server each second. Yields the port."""
    root = fetched.debian("mysqld-exporter", ["prometheus-mysqld-exporter"], [EXPORTER])
    server.sql("CREATE USER exporter@localhost IDENTIFIED BY 'exporter'")
    server.sql("GRANT PROCESS, REPLICATION CLIENT, SLAVE MONITOR, SELECT ON *.* "
               "TO exporter@localhost")
    port, own = sides.free_port(), sides.free_port()
    settings = server.folder / "prometheus.yml"
    settings.write_text(SCRAPED.format(rules=ALERTS, port=port))
    promtool(prometheus, "check", "config", settings)
    name = f"exporter:exporter@unix({server.socket})/"
    with sides.running([root / EXPORTER, f"--web.listen-address=127.0.0.1:{port}"],
                 server.folder / "exporter.log", DATA_SOURCE_NAME=name), \
            sides.running([prometheus / "usr/bin/prometheus", f"--config.file={settings}",
                     f"--web.listen-address=127.0.0.1:{own}",
                     f"--storage.tsdb.path={server.folder / 'tsdb'}"],
                    server.folder / "prometheus.log"):
        # A rate needs two samples.
        servers.wait_until(lambda: ask(own, "rate(mysql_global_status_cheetah_commits[10s])"),
                           "an answer of Prometheus")
        yield own


def test_every_query_of_the_dashboard_has_an_answer(prometheus, server):
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.t SELECT seq FROM mysql.seq_1_to_1000")
    with watched(prometheus, server) as own:
        silent = [query for query in queries() if not ask(own, query)]
        assert not silent, f"no answer to {silent}"
        rules = get(own, "rules", type="alert")["groups"][0]["rules"]
        wrong = [rule for rule in rules if rule["health"] == "err"]
        assert len(rules) > 10 and not wrong, f"{wrong}"
        assert not firing(own), "alerts on a server that is well"


def test_alerts_and_the_error_log_name_stalls_within_ten_seconds(prometheus, new_server):
    server = new_server({"loose_cheetah_log_file_size": "1M", "loose_cheetah_log_size_max": "8M"})
    disk = stalls.StalledDisk(server)
    servers.started(server, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY "
                    "AUTO_INCREMENT, b BLOB) ENGINE=CHEETAH", "INSERT INTO d.t VALUES (1, '')")
    insert = "INSERT INTO t (b) VALUES ('x')"
    fill = "INSERT INTO t (b) SELECT RANDOM_BYTES(900) FROM mysql.seq_1_to_30000"
    with watched(prometheus, server) as own, contextlib.closing(server.connect("d")) as owner:
        assert_named = functools.partial(assert_named_soon, own, server)
        disk.stall("#cheetah")
        with stalls.busy(server, 1, insert):
            assert_named("CheetahStallLasts", "the disk", "disk", "for the disk")
            disk.go_on()
        disk.stall("#cheetah/seg")
        with stalls.busy(server, 1, fill):
            assert_named("CheetahStallLasts", "a step of a checkpoint", "checkpoint",
                         "for a step of a checkpoint to end")
            assert_named("CheetahStallLasts", "room in the log", "log space", "for room in the log")
            disk.go_on()
        owner.begin()
        owner.cursor().execute("UPDATE t SET b = 'y' WHERE a = 1")
        with stalls.busy(server, 12, "UPDATE t SET b = 'z' WHERE a = 1"):
            assert_named("CheetahLocksPileUp", None, "row lock", "for row locks")
            owner.rollback()
        ended = {"CheetahStallLasts", "CheetahLocksPileUp"}
        servers.wait_until(lambda: not ended & {name for name, _ in firing(own)}, "alerts stay")


def assert_named_soon(port: int, server, alert: str, stall, reason: str, line: str) -> None:
    """Waits for the stall's alert and its line in the error log. By then, the stall must have
    lasted less than ten seconds according to `cheetah_stalls`."""
    servers.wait_until(lambda: (alert, stall) in firing(port), f"{alert}, {stall}")
    servers.wait_until(lambda: line in server.log.read_text(errors="replace"), line)
    lasted_us = server.value("SELECT current_max_us FROM information_schema.cheetah_stalls "
                             f"WHERE reason = {reason!r}")
    assert 5e6 < lasted_us < 10e6, f"{reason} has lasted {lasted_us / 1e6:.1f} s"


def firing(port: int) -> set:
    """Returns the firing alerts, each with the stall it reports."""
    alerts = [alert for alert in get(port, "alerts")["alerts"] if alert["state"] == "firing"]
    return {(alert["labels"]["alertname"], alert["labels"].get("stall")) for alert in alerts}


def queries() -> list:
    """Returns the dashboard's queries, with their variables set to match all servers."""
    panels = json.loads((MONITORING / "cheetah-dashboard.json").read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    for variable, value in (("$__rate_interval", "10s"), ("$job", ".*"), ("$instance", ".*")):
        texts = [text.replace(variable, value) for text in texts]
    assert len(texts) > 50 and not any("$" in text for text in texts)
    return texts


def ask(port: int, query: str) -> list:
    """Returns the result of a query, or an empty list if Prometheus does not answer yet."""
    try:
        return get(port, "query", query=query)["result"]
    except OSError:
        return []


def get(port: int, what: str, **words) -> dict:
    address = f"http://127.0.0.1:{port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)["data"]
