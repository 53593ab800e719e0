"""Prometheus with mysqld_exporter: the dashboard and the alert rules of tools/monitoring."""

import contextlib
import json
import os
import subprocess
import urllib.parse
import urllib.request

import fetched
import pytest
import servers
import sides
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
    """The folder with Prometheus and promtool."""
    return fetched.debian("prometheus", ["prometheus"], PROGRAMS)


def promtool(root, *words) -> None:
    """Runs it; fails with what it says when it fails."""
    done = subprocess.run([root / "usr/bin/promtool", *map(str, words)], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules_and_they_say_what_they_should(prometheus):
    promtool(prometheus, "check", "rules", ALERTS)
    promtool(prometheus, "test", "rules", PROJECT / "tests/apps/prometheus/alerts_test.yml")


@contextlib.contextmanager
def running(words: list, log, **environment):
    """A program that ends with the block."""
    with open(log, "wb") as out, subprocess.Popen(
            list(map(str, words)), stdout=out, stderr=out,
            env={**os.environ, **environment}) as program:
        try:
            yield program
        finally:
            program.terminate()


def test_every_query_of_the_dashboard_has_an_answer(prometheus, server):
    root = fetched.debian("mysqld-exporter", ["prometheus-mysqld-exporter"], [EXPORTER])
    server.sql("CREATE USER exporter@localhost IDENTIFIED BY 'exporter'")
    server.sql("GRANT PROCESS, REPLICATION CLIENT, SLAVE MONITOR, SELECT ON *.* TO exporter@localhost")
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.t SELECT seq FROM mysql.seq_1_to_1000")
    port, own = sides.free_port(), sides.free_port()
    settings = server.folder / "prometheus.yml"
    settings.write_text(SCRAPED.format(rules=ALERTS, port=port))
    promtool(prometheus, "check", "config", settings)
    name = f"exporter:exporter@unix({server.socket})/"
    with running([root / EXPORTER, f"--web.listen-address=127.0.0.1:{port}"],
                 server.folder / "exporter.log", DATA_SOURCE_NAME=name), \
            running([prometheus / "usr/bin/prometheus", f"--config.file={settings}",
                     f"--web.listen-address=127.0.0.1:{own}",
                     f"--storage.tsdb.path={server.folder / 'tsdb'}"],
                    server.folder / "prometheus.log"):
        # A rate needs two looks.
        servers.wait_until(lambda: ask(own, "rate(mysql_global_status_cheetah_commits[10s])"),
                           "an answer of Prometheus")
        silent = [query for query in queries() if not ask(own, query)]
        assert not silent, f"no answer to {silent}"
        rules = get(own, "rules", type="alert")["groups"][0]["rules"]
        wrong = [rule for rule in rules if rule["health"] == "err"]
        assert len(rules) > 10 and not wrong, f"{wrong}"
        firing = [rule["name"] for rule in rules if rule["state"] != "inactive"]
        assert not firing, f"alerts on a server that is well: {firing}"


def queries() -> list:
    """Those of the dashboard, for all servers."""
    panels = json.loads((MONITORING / "cheetah-dashboard.json").read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    for variable, value in (("$__rate_interval", "10s"), ("$job", ".*"), ("$instance", ".*")):
        texts = [text.replace(variable, value) for text in texts]
    assert len(texts) > 50 and not any("$" in text for text in texts)
    return texts


def ask(port: int, query: str) -> list:
    """The answer to a query; nothing while Prometheus is not there yet."""
    try:
        return get(port, "query", query=query)["result"]
    except OSError:
        return []


def get(port: int, what: str, **words) -> dict:
    """What the API says."""
    address = f"http://127.0.0.1:{port}/api/v1/{what}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)["data"]
