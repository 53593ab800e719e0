"""The pool's limit is the engine's: measures memory with a table much larger than the pool."""

from peak import POOL_BYTES, TOLERANCE, Peak, idle_bytes, warm_up

OPTIONS = {"loose_cheetah_buffer_pool_size": POOL_BYTES, "loose_cheetah_log_file_size": "64M",
           "loose_cheetah_log_size_max": "1G", "performance_schema": "OFF",
           "loose_cheetah_flush_log_at_trx_commit": 2}


def test_memory_stays_within_the_limit(server, new_server, large):
    megabytes = 5000 if large else 200   # three times the pool
    base = idle_bytes(new_server, OPTIONS)
    warm_up(server)
    server.sql("CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(300), c INT, l "
               "LONGBLOB, KEY (b), KEY (c)) ENGINE=CHEETAH")
    phases, peak = [], Peak(server)
    rows_per_batch = 20000   # each row has about 500 bytes
    batches = megabytes // 10
    for _ in range(batches):
        server.sql("INSERT INTO t (b, c, l) SELECT CONCAT(MD5(RAND()), MD5(seq)), seq, "
                   "CONCAT(SHA2(seq, 512), SHA2(RAND(), 512), SHA2(seq, 512)) "
                   f"FROM seq_1_to_{rows_per_batch}", "d")
    phases.append(("loading", peak.take()))
    rows = batches * rows_per_batch
    assert server.value("SELECT COUNT(*) FROM d.t") == rows, "rows are missing"
    for key in range(1, rows, rows // 200):
        found = server.value("SELECT LEFT(l, 128) = SHA2(c, 512) FROM d.t "
                             f"WHERE a >= {key} ORDER BY a LIMIT 1")
        assert found == 1, f"the row at {key} is wrong"
    phases.append(("looking up", peak.take()))
    for label, statement in (("scanning", "SELECT SUM(CRC32(l)) FROM d.t"),
                             ("updating", "UPDATE d.t SET c = c + 1 WHERE a % 50 = 0"),
                             ("deleting", "DELETE FROM d.t WHERE a % 70 = 0"),
                             ("reading by an index", "SELECT COUNT(*) FROM d.t FORCE INDEX (b) "
                              "WHERE b > '8' AND c > 5 AND a > 0")):
        server.sql(statement)
        phases.append((label, peak.take()))
    peak.stop()
    used = max(bytes_ for _, bytes_ in phases) - base
    text = ", ".join(f"{label} {(bytes_ - base) / 2**20:.1f}" for label, bytes_ in phases)
    assert used <= POOL_BYTES * TOLERANCE, (
        f"the engine took {used / 2**20:.1f} MiB of anonymous memory at its peak; the limit is "
        f"{POOL_BYTES / 2**20:.0f} MiB (MiB when {text}; the server alone {base / 2**20:.1f})")
