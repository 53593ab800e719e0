"""`make bench ARGS="--sets comments"`: small writes of an application, with the binary log.

One connection does what WordPress does for a comment: two looks for one like it, INSERT of the
comment, a count, and UPDATE of its post; each statement is a transaction of its own. The binary log
is on, in row format and without syncs (`sync_binlog=0`); all else is as both engines have it by
themselves, so each transaction is durable. Each engine has a server of its own. A repeat is a
thousand comments on each, in parts of a hundred: the engines take turns part by part, a signal
stops the server that is not measured, and whoever begins changes with the part. Counted besides
are the syncs of the log, by the engines' own counters (InnoDB's has those of data files too), and
the processor time of the server.
"""

import contextlib
import json
import random
import statistics
import time

from .engines import CHEETAH, INNODB
from .paths import VAR, show
from .ratios import interval, paired, told
from .say import note, step, table
from .server import PrivateServer, scratch

DATABASE = "blog"
COMMENTS, PART, POSTS = 1000, 100, 200
OPTIONS = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 0, "server_id": 1}
SYNCS = {"InnoDB": "Innodb_data_fsyncs", "CHEETAH": "Cheetah_log_syncs"}
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


def run(choice) -> int:
    """The part of the bench."""
    step(f"comments: {COMMENTS:,} on each engine, {choice.repeats} repeats")
    found = measure(choice.repeats, COMMENTS)
    report(found)
    place = VAR / "bench-comments.json"
    place.write_text(json.dumps(found, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    return 0


def measure(repeats: int, comments: int) -> dict:
    """Label -> for each repeat seconds for all comments, and syncs of the log and processor time
    for one."""
    engines = [CHEETAH, INNODB]
    found = {engine.label: {"seconds": [], "syncs": [], "cpu_us": []} for engine in engines}
    with contextlib.ExitStack() as stack:
        blogs = [stack.enter_context(blog(engine)) for engine in engines]
        numbers = [random.Random(1) for _ in engines]
        for server, _ in blogs:
            server.pause()
        for repeat in range(repeats):
            took, syncs, busy = [0.0] * len(engines), [0] * len(engines), [0.0] * len(engines)
            for part in range(comments // PART):
                order = range(len(engines)) if part % 2 == 0 else reversed(range(len(engines)))
                for which in order:
                    server, cursor = blogs[which]
                    server.resume()
                    before, busy_before = log_syncs(cursor, engines[which]), server.cpu_seconds()
                    took[which] += write(cursor, numbers[which], PART)
                    busy[which] += server.cpu_seconds() - busy_before
                    syncs[which] += log_syncs(cursor, engines[which]) - before
                    server.pause()
            for engine, seconds, count, cpu in zip(engines, took, syncs, busy):
                found[engine.label]["seconds"].append(seconds)
                found[engine.label]["syncs"].append(count / comments)
                found[engine.label]["cpu_us"].append(cpu / comments * 1e6)
            note(f"repeat {repeat + 1}: "
                 + ", ".join(f"{e.label} {s:.3f} s" for e, s in zip(engines, took)))
        for server, _ in blogs:
            server.resume()
    return found


@contextlib.contextmanager
def blog(engine):
    """A server with posts of one engine, and a cursor on its one connection."""
    server = PrivateServer(scratch(f"comments-{engine.label}"), OPTIONS, plugin=engine.plugin)
    with server:
        server.sql(f"CREATE DATABASE {DATABASE}")
        with (contextlib.closing(server.connect(DATABASE)) as connection,
              connection.cursor() as cursor):
            for statement in TABLES.split(";"):
                cursor.execute(statement % engine.clause())
            cursor.executemany(
                "INSERT INTO wp_posts (post_content, post_title, post_name) VALUES (%s, %s, %s)",
                [("words of a post " * 100, f"Post {no}", f"post-{no}") for no in range(POSTS)])
            write(cursor, random.Random(2), PART)
            yield server, cursor
    server.remove()


def write(cursor, numbers: random.Random, count: int) -> float:
    """Write comments; the seconds it took."""
    started = time.monotonic()
    for _ in range(count):
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


def log_syncs(cursor, engine) -> int:
    """How often the engine has synced its log so far."""
    cursor.execute(f"SHOW GLOBAL STATUS LIKE '{SYNCS[engine.name]}'")
    return int(cursor.fetchone()[1])


def report(found: dict) -> None:
    """Medians with their range, and the ratio repeat by repeat."""
    print()
    table(["engine", f"{COMMENTS:,} comments, s", "syncs of the log for one",
           "server CPU for one, us"],
          [[label,
            f"{statistics.median(m['seconds']):.2f} "
            f"({min(m['seconds']):.2f}..{max(m['seconds']):.2f})",
            f"{statistics.median(m['syncs']):.2f}", f"{statistics.median(m['cpu_us']):.0f}"]
           for label, m in found.items()])
    ours, theirs = (found[engine.label]["seconds"] for engine in (CHEETAH, INNODB))
    print(f"\nCheetah's time through InnoDB's: {told(interval(paired(ours, theirs)))}")
    ours, theirs = (found[engine.label]["cpu_us"] for engine in (CHEETAH, INNODB))
    print(f"Cheetah's processor time through InnoDB's: {told(interval(paired(ours, theirs)))}")
