"""The suites beside InnoDB in their short form; `make isolation` takes other options."""

import hermitage
import histories
import interleavings
from cheetah_tools.isolation import SHORT


def test_hermitage():
    assert hermitage.main(SHORT["hermitage"]) == 0


def test_histories():
    assert histories.main(SHORT["histories"]) == 0


def test_interleavings():
    assert interleavings.main(SHORT["interleavings"]) == 0


def test_interleavings_find_a_planted_difference(capsys):
    assert interleavings.main(["--plant", "--scripts", "4"]) == 1
    assert "a difference without a reason" in capsys.readouterr().out
