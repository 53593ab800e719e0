"""Runs the suites that compare Cheetah with InnoDB; `make isolation LONG=1` runs them longer."""

import families
import hermitage
import histories
import interleavings
import pytest
import tied


def test_hermitage():
    assert hermitage.main([]) == 0


def test_histories(large):
    count, txns = (200, 10000) if large else (20, 2000)
    assert histories.main([f"--histories={count}", f"--txns={txns}"]) == 0


def test_histories_need_foreign_keys_that_are_checked(capsys):
    seeds = [seed for seed, kind in enumerate(histories.KINDS) if kind[4] in tied.ACTIONS]
    assert len(seeds) == 5
    assert histories.main(["--plant", f"--seed={seeds[0]}", f"--histories={len(seeds)}",
                           "--txns=300"]) == 1
    assert f"; {len(seeds)} with a problem" in capsys.readouterr().out


def test_interleavings(large):
    assert interleavings.main(["--scripts", "5000" if large else "100"]) == 0


def test_interleavings_of_families(large):
    assert families.main(["--scripts", "5000" if large else "60"]) == 0


@pytest.mark.parametrize("program", [interleavings, families])
def test_interleavings_find_a_planted_difference(program, capsys):
    assert program.main(["--plant", "--scripts", "4", "--keep-going", "1"]) == 1
    assert "a difference without a reason" in capsys.readouterr().out
