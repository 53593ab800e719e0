"""The experiment with Wikipedia's texts: figures from made-up values, and tiny real trials."""

import made
import pytest
from cheetah_lab.engines import ALL
from cheetah_tools import texts
from cheetah_lab.model import FAILS, HOLDS, OPEN, Scale
from cheetah_lab.trial import Trial

NAME = "wikipedia_text"
GB = 1_000_000_000


def table(seconds, size, insert=0.9, durable=1.0):
    """Returns the values of one engine in three repeats. `insert` is the statement's share of the
    time; `durable` is the time without the settings divided by the time with them."""
    slower = (1, 1.01, 1.02)
    return {"source_bytes": [63 * GB] * 3, "source_table_bytes": [63_472_402_432] * 3,
            "bytes": [size] * 3, "settings_s": [seconds * by for by in slower],
            "settings_insert_s": [seconds * by * insert for by in slower],
            "durable_s": [seconds * by * durable for by in slower],
            "durable_insert_s": [seconds * by * durable * insert for by in slower]}


# InnoDB with the document's values.
VALUES = {"innodb-dynamic": table(37461, 53_741_617_152, insert=0.8),
          "innodb-16k": table(33764, 38_176_555_008), "innodb-8k": table(35116, 21_768_437_760),
          "innodb-4k": table(38529, 20_858_273_792), "cheetah": table(30000, 15 * GB),
          "cheetah-16k": table(30000, 15 * GB), "cheetah-8k": table(33000, 14 * GB),
          "cheetah-4k": table(37461, 13 * GB)}


def test_the_documents_own_values_give_its_ratios():
    figures = made.figures(NAME, VALUES)
    assert list(figures) == ["W10 source", "W9 16K", "W9 8K", "W9 4K", "W10 16K", "W10 8K",
                             "W10 4K"]
    for figure in figures.values():
        assert len(figure.innodb) == 3 and all(abs(value - figure.document) < 1e-9
                                               for value in figure.innodb), figure
    assert [round(figures[f"W9 {size}"].document, 2)
            for size in ("16K", "8K", "4K")] == [0.90, 0.94, 1.03]
    assert [round(figures[f"W10 {size}"].document, 3)
            for size in ("16K", "8K", "4K")] == [0.710, 0.405, 0.388]
    assert all(abs(value - 1) < 1e-9 for value in figures["W9 4K"].cheetah)


def test_the_documents_own_values_keep_its_claims():
    assert set(made.decided(VALUES, NAME)) == {HOLDS}


def test_settings_that_favour_one_format_break_the_claim_about_them():
    claim = ("InnoDB: doublewrite and the log's syncs do not change how KEY_BLOCK_SIZE=8 compares "
             "with uncompressed")
    broken = {**VALUES, "innodb-8k": table(35116, 21 * GB, durable=1.5)}
    assert made.outcomes(broken, NAME)[claim] == FAILS
    without = {measure: values for measure, values in VALUES["innodb-8k"].items()
               if not measure.startswith("durable")}
    assert made.outcomes({**VALUES, "innodb-8k": without}, NAME)[claim] == OPEN


def test_the_page_says_whose_texts_they_were():
    articles = {**VALUES, "cheetah": {**VALUES["cheetah"], "articles": [6514] * 3}}
    assert (made.experiment(NAME).plots(made.results(articles))[0].caption
            == "Texts: 6,514 articles of the English Wikipedia.")
    assert "not Wikipedia's" in made.experiment(NAME).plots(made.results(VALUES))[0].caption


def test_a_larger_cheetah_breaks_its_claim():
    claim = "Cheetah: the table is no larger than with any KEY_BLOCK_SIZE of InnoDB"
    assert made.outcomes({**VALUES, "cheetah": table(30000, 30 * GB)}, NAME)[claim] == FAILS


def test_a_tiny_trial_copies_the_texts_with_and_without_the_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "rows",
                        lambda: (b"(%d,'%s','utf-8')" % (number, b"Cheetahs run. " * (20 + number))
                                 for number in range(1, 100)))
    trial, found = made.tiny(NAME, tmp_path, "cheetah")
    values = made.by_place(found)
    for variant in ("settings", "durable"):
        assert 0 < values[f"{variant}_insert_s", None] <= values[f"{variant}_s", None]
    assert (0 < values["bytes", None] and 0 < values["source_table_bytes", None]
            and values["source_bytes", None] > 99 * 280)
    assert any("CREATE TABLE text_16K_uncompressed" in command and "int(8) unsigned" in command
               for command in trial.commands)


@pytest.mark.parametrize("key, each", [("innodb-8k", None), ("cheetah", 128 << 20),
                                       ("myrocks", 128 << 20)])
def test_source_and_copy_share_the_memory(tmp_path, key, each):
    options = made.module(NAME).pools(Trial(ALL[key], Scale(), 0, True, tmp_path))
    assert (options.get("innodb_buffer_pool_size")
            == options.get("loose_cheetah_buffer_pool_size") == each)
    assert not [name for name in options if "direct" in name], "that is the lab's to say"
    assert key != "myrocks" or (options["rocksdb_block_cache_size"]
                                + options["rocksdb_db_write_buffer_size"] == each)


def test_an_engine_that_was_not_chosen_has_the_documents_settings_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "rows",
                        lambda: (b"(%d,'text','utf-8')" % number for number in range(1, 10)))
    trial, found = made.tiny(NAME, tmp_path, "innodb-8k", chosen=False)
    values = made.by_place(found)
    assert ("settings_s", None) in values and ("durable_s", None) not in values
    assert any("text_8K_compressed" in command and "KEY_BLOCK_SIZE=8" in command
               for command in trial.commands)
