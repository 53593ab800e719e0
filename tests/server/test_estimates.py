"""information_schema.CHEETAH_COMPRESSION_ESTIMATE predicts the size of a table in Cheetah."""

import pytest
from servers import run, wait_until

CHECKPOINT = "SET GLOBAL cheetah_checkpoint_now = ON"
# The tolerance for tables of some MB that were loaded and written once, or 2.5 times the error
# reported by the estimate: five standard errors, because the sampled places are random.
TOLERANCE, WIDTH = 0.15, 2.5
# Tables of less than 1 MiB are not bulk-loaded. A checkpoint may have written their rows with
# versions, which take 12 bytes each.
TOLERANCE_SMALL = 0.25
WORDS = ("ELT(1 + FLOOR(RAND(seq) * 7), 'apple ', 'pear and plum ', 'quince ', 'nut', 'cherry pie "
         "', 'fig ', 'grapes ')")
TEXT = f"CONCAT({', '.join([WORDS.replace('seq)', f'seq * {17 + step})') for step in range(9)])})"
TABLES = {
    # Integer primary key, one index with few and one with many values.
    "numbers": ("id INT PRIMARY KEY, few INT, many BIGINT, t VARCHAR(200) CHARACTER SET utf8mb4, "
                "KEY (few), KEY (many), KEY (t)",
                f"seq * 3, seq % 5, seq * 7919 % 60000, {TEXT} FROM seq_1_to_60000"),
    # The first column of the key has four values, so the estimate finds places by reading.
    "skewed": ("a INT, b INT, t VARCHAR(200), PRIMARY KEY (a, b)",
               f"seq % 4, seq, {TEXT} FROM seq_1_to_30000"),
    "guids": ("id BINARY(16) PRIMARY KEY, t VARCHAR(200), KEY (t(20))",
              f"UNHEX(MD5(seq)), {TEXT} FROM seq_1_to_30000"),
    "nokey": ("t VARCHAR(200), n INT, KEY (n)", f"{TEXT}, seq % 1000 FROM seq_1_to_30000"),
    "texts": ("id INT PRIMARY KEY, t MEDIUMTEXT",
              "o.seq, (SELECT GROUP_CONCAT(MD5(o.seq * 1000 + i.seq), ' some words more ') FROM "
              "seq_1_to_400 i WHERE i.seq < 50 + o.seq % 300) FROM seq_1_to_400 o"),
    "small": ("id INT PRIMARY KEY, t VARCHAR(200)", f"seq, {TEXT} FROM seq_1_to_200"),
}
ESTIMATE = ("SELECT compression, compression_level, key_block_size, estimated_bytes, "
            "error_percent, table_rows, sampled_rows, engine FROM "
            "information_schema.cheetah_compression_estimate WHERE table_schema = 'd' AND "
            "table_name = '{}'")


@pytest.mark.options({"innodb_buffer_pool_size": "64M", "loose_cheetah_buffer_pool_size": "64M"})
def test_estimates_agree_with_what_tables_become(server):
    for name, (columns, rows) in TABLES.items():
        run(server, f"CREATE TABLE {name} ({columns}) ENGINE=InnoDB",
            f"INSERT INTO {name} SELECT {rows}", f"ANALYZE TABLE {name}")
        estimates = server.sql(ESTIMATE.format(name))
        assert [row[:3] for row in estimates] == [
            ("none", 0, None), ("lz4", 0, None), ("zstd", 1, 8), ("zstd", 12, 4), ("zstd", 15, 2),
            ("zstd", 19, 1)]
        assert all(row[7] == "InnoDB" for row in estimates), f"{name}: {estimates}"
        for codec, row in (("none", estimates[0]), ("zstd", estimates[2])):
            server.sql(f"ALTER TABLE d.{name} ENGINE=CHEETAH COMPRESSION='{codec}'")
            expect_estimated(server, name, row)
        expect_estimated(server, name, server.sql(ESTIMATE.format(name))[2])
        server.sql(f"DROP TABLE d.{name}")


def expect_estimated(server, name: str, row) -> None:
    wait_until(lambda: server.status("Cheetah_transactions_to_purge") == 0, "purge is not done")
    server.sql(CHECKPOINT)
    weighed = "SELECT stored_bytes, table_rows FROM information_schema.cheetah_tables"
    real, rows = server.sql(f"{weighed} WHERE table_name = '{name}'")[0]
    # The server's row count of an InnoDB table is an estimate.
    estimated = row[3] * rows / row[5]
    assert row[4] is not None and 0 <= row[4] < 40
    tolerance = max(TOLERANCE_SMALL if name == "small" else TOLERANCE, WIDTH * float(row[4]) / 100)
    assert abs(estimated - real) <= tolerance * real, f"{name} {row}: has {real} bytes, {rows} rows"
    assert name != "small" or (row[4] == 0 and row[6] == 200)
