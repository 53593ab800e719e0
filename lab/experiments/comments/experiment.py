"""Comments of a blog: small writes of an application, with the binary log."""

import random
import time
from contextlib import closing

from cheetah_lab import show
from cheetah_lab.model import LESS, TURN, Experiment, Measure, Table, Value

DATABASE = "blog"
MEMORY_BYTES = 128 << 20
COMMENTS, PART, POSTS = 1000, 100, 200
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 0, "server_id": 1}
SYNCS = {"InnoDB": "Innodb_data_fsyncs", "Cheetah": "Cheetah_log_syncs",
         "MyRocks": "Rocksdb_wal_synced"}
TABLES = (
    "\n"
    "CREATE TABLE wp_posts (ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "
    "post_author BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
    " post_date DATETIME NOT NULL DEFAULT '2026-01-01', post_content LONGTEXT NOT NULL, "
    "post_title TEXT NOT NULL,\n"
    " post_status VARCHAR(20) NOT NULL DEFAULT 'publish', "
    "post_name VARCHAR(200) NOT NULL DEFAULT '',\n"
    " post_parent BIGINT UNSIGNED NOT NULL DEFAULT 0, "
    "post_type VARCHAR(20) NOT NULL DEFAULT 'post',\n"
    " comment_count BIGINT NOT NULL DEFAULT 0, KEY post_name (post_name(191)),\n"
    " KEY type_status_date (post_type, post_status, post_date, ID), "
    "KEY post_parent (post_parent), KEY post_author (post_author))\n"
    "%s DEFAULT CHARSET=utf8mb4;\n"
    "CREATE TABLE wp_comments (comment_ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
    " comment_post_ID BIGINT UNSIGNED NOT NULL DEFAULT 0, comment_author TINYTEXT NOT NULL,\n"
    " comment_author_email VARCHAR(100) NOT NULL DEFAULT '', "
    "comment_author_IP VARCHAR(100) NOT NULL DEFAULT '',\n"
    " comment_date_gmt DATETIME NOT NULL DEFAULT '2026-01-01', comment_content TEXT NOT NULL,\n"
    " comment_approved VARCHAR(20) NOT NULL DEFAULT '1', "
    "comment_parent BIGINT UNSIGNED NOT NULL DEFAULT 0,\n"
    " KEY comment_post_ID (comment_post_ID), "
    "KEY comment_approved_date_gmt (comment_approved, comment_date_gmt),\n"
    " KEY comment_date_gmt (comment_date_gmt), KEY comment_parent (comment_parent),\n"
    " KEY comment_author_email (comment_author_email(10)))\n"
    "%s DEFAULT CHARSET=utf8mb4\n")


class Comments(Experiment):
    """See experiment.toml."""

    by_name = together = True
    measures = [Measure("seconds", f"{COMMENTS:,} comments", "s", LESS),
                Measure("syncs", "syncs of the log for one", "", LESS),
                Measure("cpu", "server's processor time for one", "us", LESS)]

    def run(self, trial):
        """Posts, then comments in parts."""
        parts = trial.scale.of(COMMENTS // PART)
        with trial.server(MEMORY_BYTES, **OPTIONS) as server:
            server.sql(f"CREATE DATABASE {DATABASE}")
            with (closing(server.connect(DATABASE)) as connection, connection.cursor() as cursor):
                for statement in TABLES.split(";"):
                    cursor.execute(statement % trial.engine.clause())
                cursor.executemany(
                    "INSERT INTO wp_posts (post_content, post_title, post_name) "
                    "VALUES (%s, %s, %s)",
                    [("words of a post " * 100, f"Post {no}", f"post-{no}")
                     for no in range(POSTS)])
                write(cursor, random.Random(2))
                numbers, took, busy, syncs = random.Random(1), 0.0, 0.0, 0
                yield TURN
                for _ in range(parts):
                    before, busy_before = server.status(SYNCS[trial.family]), server.cpu_seconds()
                    took += write(cursor, numbers)
                    busy += server.cpu_seconds() - busy_before
                    syncs += server.status(SYNCS[trial.family]) - before
                    yield TURN
        count = parts * PART
        yield Value("seconds", took * COMMENTS / count)
        yield Value("syncs", syncs / count)
        yield Value("cpu", busy / count * 1e6)

    def tables(self, results):
        """All measures."""
        return [Table("Comments", ["engine", *(measure.label for measure in self.measures)],
                      [show.cells(results, engine, [(measure.key, None, measure.unit)
                                                    for measure in self.measures])
                       for engine in results.engines])]


def write(cursor, numbers: random.Random) -> float:
    """Write a part of the comments; the seconds it took."""
    started = time.monotonic()
    for _ in range(PART):
        comment(cursor, numbers)
    return time.monotonic() - started


def comment(cursor, numbers: random.Random) -> None:
    """One comment, as WordPress writes it."""
    post, author = numbers.randrange(POSTS) + 1, f"author {numbers.randrange(500)}"
    mail, address = author.replace(" ", "") + "@example.com", f"10.0.0.{numbers.randrange(256)}"
    text = " ".join(f"word{numbers.randrange(5000)}" for _ in range(40))
    cursor.execute("SELECT comment_ID FROM wp_comments "
                   "WHERE comment_post_ID = %s AND comment_parent = 0 "
                   "AND comment_approved != 'trash' "
                   "AND (comment_author = %s OR comment_author_email = %s) "
                   "AND comment_content = %s LIMIT 1", (post, author, mail, text))
    cursor.execute("SELECT comment_date_gmt FROM wp_comments "
                   "WHERE comment_date_gmt >= NOW() - INTERVAL 1 HOUR "
                   "AND (comment_author_IP = %s OR comment_author_email = %s) "
                   "ORDER BY comment_date_gmt DESC LIMIT 1", (address, mail))
    cursor.execute("INSERT INTO wp_comments (comment_post_ID, comment_author, "
                   "comment_author_email, comment_author_IP, comment_date_gmt, comment_content) "
                   "VALUES (%s, %s, %s, %s, NOW(), %s)", (post, author, mail, address, text))
    cursor.execute("SELECT COUNT(*) FROM wp_comments "
                   "WHERE comment_post_ID = %s AND comment_approved = '1'", (post,))
    count = cursor.fetchone()[0]
    cursor.execute("UPDATE wp_posts SET comment_count = %s WHERE ID = %s", (count, post))
