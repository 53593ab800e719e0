"""The experiment with cases 1 to 4: its figures from made-up times, and tiny real trials."""

import made
from cheetah_lab.model import FAILS, HOLDS, OPEN

NAME = "fast_index_creation"


def case(all_s, key_s, index_s, all_bytes, both_bytes):
    """Returns an engine's values in three repeats, each a little slower than the one before."""
    slower = (1, 1.01, 1.02)
    return {"dump_bytes": [1000] * 3, "all_s": [all_s * by for by in slower],
            "key_s": [key_s * by for by in slower], "index_s": [index_s * by for by in slower],
            "both_s": [(key_s + index_s) * by for by in slower], "all_bytes": [all_bytes] * 3,
            "key_bytes": [both_bytes] * 3, "both_bytes": [both_bytes] * 3}


# InnoDB with the document's values, and a Cheetah that is faster.
VALUES = {"innodb-dynamic": case(9154, 3552, 1126, 43032, 40400),
          "innodb-8k": case(13735, 4271, 2574, 16284, 14968),
          "cheetah": case(4000, 3500, 500, 13000, 13000),
          "cheetah-8k": case(4577, 3600, 563, 12000, 12000)}
for engine, seconds in (("innodb-dynamic", 1.0), ("cheetah", 0.4)):
    VALUES[engine] |= {f"{kind} {change}": [seconds * by for by in (1, 1.01, 1.02)]
                       for change in made.module(NAME).CHANGES for kind in ("clock", "processor")}


def test_the_documents_own_times_give_the_documents_ratios():
    figures = made.figures(NAME, VALUES)
    assert list(figures) == ["W4", "W5 time", "W5 bytes", "W6 time", "W6 bytes", "W7 time",
                             "W7 bytes", "W8 time", "W8 bytes", "W8 index"]
    for key, figure in figures.items():
        if key != "W4":
            assert len(figure.innodb) == 3
            assert all(abs(value - figure.document) < 0.015
                       for value in figure.innodb), (key, figure)
    assert all(abs(value - 0.5) < 1e-9 for value in figures["W8 index"].cheetah)
    assert all(abs(value - 4577 / 9154) < 1e-9 for value in figures["W7 time"].cheetah)


def test_the_documents_own_times_keep_its_claims():
    assert set(made.decided(VALUES, NAME)) == {HOLDS}


def test_a_claim_fails_or_stays_open_as_the_repeats_say():
    claim = "InnoDB: with fast index creation a load takes about half the time"
    innodb = VALUES["innodb-dynamic"]
    for changed, outcome in (({**innodb, "both_s": [9000, 9100, 9200]}, FAILS),
                             ({**innodb, "both_s": [2000, 9100, 4000]}, OPEN),
                             ({measure: values[:1] for measure, values in innodb.items()}, OPEN)):
        assert made.outcomes({**VALUES, "innodb-dynamic": changed}, NAME)[claim] == outcome


def test_no_longer_has_room_for_a_twentieth():
    claim = "Cheetah: compressed, it takes no longer than InnoDB uncompressed"
    for by, outcome in ((1.03, HOLDS), (1.08, FAILS)):
        cheetah = {**VALUES["cheetah"],
                   "all_s": [seconds * by for seconds in VALUES["innodb-dynamic"]["all_s"]]}
        assert made.outcomes({**VALUES, "cheetah": cheetah}, NAME)[claim] == outcome


def test_the_documents_table_has_its_four_cases_for_both_engines():
    changes, first, *_ = made.tables(VALUES, NAME)
    assert len(changes.rows) == 2
    assert [row[0].text[:4] for row in first.rows] == ["Base", "(2) ", "(3) ", "(4) "]
    assert first.rows[1][5].values == VALUES["innodb-dynamic"]["both_s"]


def test_a_tiny_trial_loads_the_shard_both_ways(tmp_path):
    _, found = made.tiny(NAME, tmp_path, "cheetah")
    values = made.by_place(found)
    assert values["both_s", None] == values["key_s", None] + values["index_s", None]
    assert 0 < values["key_bytes", None] <= values["both_bytes", None]
    assert values["all_bytes", None] > 0 and values["dump_bytes", None] > 100_000


def test_keys_of_four_bytes_that_compact_has_no_room_for_are_no_failure(tmp_path):
    trial, found = made.tiny(NAME, tmp_path, "innodb-compact", full=True)
    values = made.by_place(found)
    assert (("all_s", None) in values and ("packed_both_bytes", None) in values
            and ("utf8_all_s", None) not in values)
    assert any("has no room for the keys" in command for command in trial.commands)
