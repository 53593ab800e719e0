"""Compares random statements with InnoDB. `make differential` runs them with its own options."""

import random
from types import SimpleNamespace

import pytest
import run
from statements import Generator, Statement
from twins import Outcome, Twin


@pytest.mark.parametrize("words", [
    ["--statements", "24000"], ["--graphs", "--statements", "15000"],
    ["--fulltext", "--statements", "1000"], ["--kinds", "--statements", "6000"],
    ["--plans", "--statements", "1500"]], ids=["usual", "graphs", "fulltext", "kinds", "plans"])
def test_cheetah_does_as_innodb(words):
    assert run.main(words) == 0


def test_a_planted_difference_is_found(capsys):
    assert run.main(["--right", "InnoDB", "--statements", "500", "--plant"]) == 1
    assert "1 of 1 rounds with a difference" in capsys.readouterr().out


def test_only_what_innodb_itself_answers_is_settled():
    """The plan determines leading zeros of MAX: that is excused. A missing row is not excused."""
    server = run.PrivateServer(run.scratch("differential"))
    query = Statement("SELECT MAX(b) FROM t1 WHERE c < 9 GROUP BY a")
    generator = Generator(random.Random(1), None)
    generator.tables = [SimpleNamespace(name="t1", primary=["a"],
                                        indexes=[SimpleNamespace(name="k")])]
    with server:
        twin = Twin(server.socket, "twin", "InnoDB", "")
        twin.run("CREATE TABLE t1 (a INT PRIMARY KEY, b TINYINT ZEROFILL, c INT, KEY k (c))")
        twin.run("INSERT INTO t1 SELECT seq, seq, seq % 20 FROM seq_1_to_100")
        answers = [twin.run(text) for text in generator.other_plans(query.text)]
        assert len(answers) == 3 and len({repr(answer.rows) for answer in answers}) == 2
        assert all(generator.settles(twin, query, answer) for answer in answers)
        for answer in answers:
            assert not generator.settles(twin, query, Outcome(rows=answer.rows[1:],
                                                              affected=answer.affected))
    server.remove()
