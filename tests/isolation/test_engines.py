"""The suites beside InnoDB; their long form is `make isolation LONG=1`."""

import hermitage
import histories
import interleavings


def test_hermitage():
    assert hermitage.main([]) == 0


def test_histories(large):
    count, txns = (200, 10000) if large else (20, 2000)
    assert histories.main([f"--histories={count}", f"--txns={txns}"]) == 0


def test_interleavings(large):
    assert interleavings.main(["--scripts", "5000" if large else "100"]) == 0


def test_interleavings_find_a_planted_difference(capsys):
    assert interleavings.main(["--plant", "--scripts", "4"]) == 1
    assert "a difference without a reason" in capsys.readouterr().out
