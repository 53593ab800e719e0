"""Random statements beside InnoDB; `make differential` runs them with options of its own."""

import run


def test_cheetah_does_as_innodb():
    assert run.main(["--statements", "24000"]) == 0


def test_foreign_keys_do_as_innodb():
    assert run.main(["--graphs", "--statements", "15000"]) == 0


def test_full_text_searches_do_as_innodb():
    assert run.main(["--fulltext", "--statements", "1000"]) == 0


def test_a_planted_difference_is_found(capsys):
    assert run.main(["--right", "InnoDB", "--statements", "500", "--plant"]) == 1
    assert "1 of 1 rounds with a difference" in capsys.readouterr().out
