"""mysqld_exporter: the metrics it exports for both engines."""

import re
import urllib.request

import fetched
import servers
import shop
import sides

PROGRAM = "usr/bin/prometheus-mysqld-exporter"
# Metrics of the engine itself, and metrics that the exporter collects by engine name.
OURS, THEIRS = re.compile("cheetah", re.I), re.compile("innodb|innodb_|aria", re.I)


def test_mysqld_exporter(beside):
    root = fetched.debian("mysqld-exporter", ["prometheus-mysqld-exporter"], [PROGRAM])

    def use(side) -> dict:
        shop.make(side)
        port = sides.free_port()
        name = f"{sides.USER}:{sides.PASSWORD}@unix({side.server.socket})/"
        words = [root / PROGRAM, f"--web.listen-address=127.0.0.1:{port}",
                 "--collect.info_schema.tables", "--collect.info_schema.innodb_metrics",
                 "--collect.engine_innodb_status", "--collect.info_schema.processlist"]
        with sides.running(words, side.folder / "exporter.log", DATA_SOURCE_NAME=name):
            text = servers.wait_until(lambda: metrics(port), "an answer of the exporter")
        names = set(re.findall(r"^(\w+)", text, re.M))
        up = re.findall(r"^mysql_up (\d)", text, re.M)
        ours = [name for name in names if OURS.search(name)]
        side.notes.append(f"{len(ours)} metrics of Cheetah")
        assert len(ours) > 50 and "mysql_global_status_cheetah_commits" in names
        sizes = re.findall(r'mysql_info_schema_table_size\{component="data_length",schema="app",'
                           r'table="(\w+)"\} (\S+)', text)
        assert [table for table, size in sizes if not float(size)] == ["open_purchases"]   # a view
        return {"up": up, "tables": sorted(table for table, _ in sizes),
                "names": sorted(name for name in names
                                if not THEIRS.search(name) and not OURS.search(name))}
    beside(f"mysqld_exporter {fetched.version(root, 'prometheus-mysqld-exporter')}", use)


def metrics(port: int) -> str:
    """Returns the exporter's metrics, or an empty string if it does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()
    except OSError:
        return ""
