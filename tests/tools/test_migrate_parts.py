"""Tests the decisions of cheetah-migrate without a server."""

import pytest
from cheetah_client.connection import ServerError
from cheetah_client.say import Failure
from cheetah_migrate import estimate, groups, orphans, tables
from cheetah_migrate.estimate import Weight
from cheetah_migrate.plan import Selection
from cheetah_migrate.program import parse, parser
from cheetah_migrate.tables import Constraint, Place, Table, from_flat

A, B, C, D = (Place("d", table) for table in "abcd")


def constraint(child: Place, parent: Place, label: str = "k") -> Constraint:
    return Constraint(child, label, ("x",), parent, ("id",), "RESTRICT", "RESTRICT")


def test_tables_that_constraints_connect_are_a_group():
    other = Place("e", "t")
    found = groups.connected([A, B, C, D], [constraint(A, B), constraint(B, A),
                                            constraint(C, other), constraint(C, C)])
    assert [group.places for group in found] == [[A, B], [C, other], [D]]
    assert [len(group.constraints) for group in found] == [2, 2, 0]


def test_groups_that_nobody_named_are_left_out():
    assert [group.places for group in groups.connected([D], [constraint(A, B)])] == [[D]]


def test_a_table_that_stays_holds_the_others_and_the_chain_is_said():
    group = groups.connected([A], [constraint(A, B, "ab"), constraint(C, B, "cb")])[0]
    groups.hold(group, {A: "SPATIAL"})
    assert group.stays == {A: "SPATIAL", B: "connected with d.a by the constraint d.a.ab",
                           C: "connected with d.b by the constraint d.c.cb"}
    groups.hold(group, {})
    assert not group.stays


def test_a_constraint_is_written_as_it_was():
    one = Constraint(Place("d", "t`x"), "f", ("a", "b"), Place("e", "p"), ("c", "d"), "SET NULL",
                     "RESTRICT")
    assert one.statement() == ("ALTER TABLE `d`.`t``x` ADD CONSTRAINT `f` FOREIGN KEY (`a`, `b`) "
                               "REFERENCES `e`.`p` (`c`, `d`) ON DELETE SET NULL")
    assert one._replace(on_delete="RESTRICT", on_update="NO ACTION").clause().endswith(
        "FOREIGN KEY (`a`, `b`) REFERENCES `e`.`p` (`c`, `d`) ON UPDATE NO ACTION")
    assert from_flat(one.flat()) == one


def test_indexes_that_serve_constraints_are_made_anew_and_those_behind_them():
    text_of_table = ("CREATE TABLE `t` (\n  `x` int,\n  PRIMARY KEY (`id`),\n"
                     "  UNIQUE KEY `u` (`x`),\n"
                     "  KEY `a``a` (`y`),\n  KEY `b` (`x`) COMMENT 'c',\n  KEY `c` (`z`(3)),\n"
                     "  CONSTRAINT `k` FOREIGN KEY (`x`) REFERENCES `p` (`id`)\n) ENGINE=InnoDB")
    assert tables.indexes(text_of_table) == {"a`a": "(`y`)", "b": "(`x`) COMMENT 'c'",
                                             "c": "(`z`(3))"}
    assert tables.made_anew(text_of_table, [constraint(A, B)]) == [
        "DROP INDEX `b`, ADD KEY `b` (`x`) COMMENT 'c'", "DROP INDEX `c`, ADD KEY `c` (`z`(3))"]
    assert not tables.made_anew(text_of_table, [])
    assert not tables.made_anew(text_of_table, [constraint(A, B)._replace(columns=("x", "y"))])


def test_orphans_are_rows_with_all_columns_and_no_parent():
    one = Constraint(A, "f", ("a", "b"), B, ("c", "d"), "CASCADE", "CASCADE")
    assert orphans.query(one, "1") == (
        "SELECT 1 FROM `d`.`a` child WHERE child.`a` IS NOT NULL AND child.`b` IS NOT NULL AND NOT "
        "EXISTS (SELECT 1 FROM `d`.`b` parent WHERE parent.`c` = child.`a` AND parent.`d` = "
        "child.`b`)")


def test_definitions_that_differ_by_their_engine_alone_are_equal():
    innodb = ("CREATE TABLE `t` (\n  `a` int COMMENT 'ENGINE=x',\n"
              "  CONSTRAINT `k` FOREIGN KEY (`a`) REFERENCES `p` (`x`),\n"
              "  CONSTRAINT `b` FOREIGN KEY (`a`) REFERENCES `p` (`x`)\n"
              ") ENGINE=InnoDB AUTO_INCREMENT=3\n (PARTITION `p0` ENGINE = InnoDB)")
    cheetah = ("CREATE TABLE `t` (\n  `a` int COMMENT 'ENGINE=x',\n"
               "  CONSTRAINT `b` FOREIGN KEY (`a`) REFERENCES `p` (`x`),\n"
               "  CONSTRAINT `k` FOREIGN KEY (`a`) REFERENCES `p` (`x`)\n"
               ") ENGINE=CHEETAH AUTO_INCREMENT=3\n (PARTITION `p0` ENGINE = CHEETAH)")
    assert tables.without_engine(innodb) == tables.without_engine(cheetah)
    for change in ("AUTO_INCREMENT=4", "COMMENT 'ENGINE=y'", "`k` FOREIGN KEY (`b`)"):
        part = change.split("=")[0].split("(")[0]
        other = cheetah.replace(cheetah[cheetah.index(part):][:len(change)], change)
        assert other != cheetah and tables.without_engine(innodb) != tables.without_engine(other)


def test_the_estimate_of_innodbs_files_holds_for_small_tables_too():
    """Rows: bytes of pages, number of indexes, and the size of InnoDB 10.11.18's file."""
    for bytes_of_pages, indexes, file_bytes in (
            (49152, 3, 114688), (180224, 2, 212992), (622592, 1, 2097152), (5521408, 2, 9437184),
            (11517952, 3, 15728640), (21610496, 1, 26214400), (43859968, 2, 54525952)):
        estimated = estimate.innodb_file_bytes(bytes_of_pages, indexes)
        assert estimated / 1.5 < file_bytes < estimated * 1.5, bytes_of_pages


def test_the_old_table_frees_its_room_when_the_new_one_is_there():
    small, large = Weight(100, 30, 10.0, 5, 100), Weight(1000, 300, 0.0, 50, 1000)
    assert estimate.peak([small]) == 38 and estimate.peak([small, large]) == 30 - 100 + 350
    assert estimate.peak([large, small]) == 350
    assert estimate.peak([small._replace(freed=0), large._replace(freed=0)]) == 30 + 350
    assert estimate.needed([]) == 0 and estimate.needed([large]) == 385 + estimate.RESERVE_BYTES


@pytest.mark.parametrize("options, expected", [
    ("", 8), ("row_format=COMPRESSED", 8), ("row_format=COMPRESSED key_block_size=4", 4),
    ("KEY_BLOCK_SIZE=16", 8), ("key_block_size=1 partitioned", 1)])
def test_the_density_that_a_table_asks_for(options, expected):
    found = Table(A, "InnoDB", "BASE TABLE", 1, 1, 1, options)
    assert found.key_block_size == expected
    assert found.bytes_now == 1 and found.is_partitioned == ("partitioned" in options)


def test_names_of_files():
    assert [tables.file_name(part) for part in ("a_1", "o`d .x-")] == [
        "a_1", "o@0060d@0020@002ex@002d"]


def test_names_of_databases_and_tables():
    assert parse("d") == "d" and parse("d.a") == A
    assert parse("`d.e`") == "d.e" and parse("`d.e`.`a``b`") == Place("d.e", "a`b")
    with pytest.raises(Failure):
        parse("a.b.c")
    one = Selection({"d"}, {Place("e", "t")})
    assert one.has(A) and one.has(Place("e", "t")) and not one.has(Place("e", "u"))


def test_help_says_what_each_command_does(capsys):
    for words in (["--help"], ["run", "--help"], ["undo", "--help"]):
        with pytest.raises(SystemExit):
            parser().parse_args(words)
        assert "docs/users/migrate.md" in capsys.readouterr().out or words != ["--help"]


class Remote:
    """A fake server on another machine, with or without the plugin DISKS."""

    def __init__(self, disks):
        self.disks = disks

    def run(self, statement: str) -> list:
        if "DISKS" not in statement:
            return [["/srv/data/", "elsewhere", "10.0.0.7:4711"]]
        if self.disks is None:
            raise ServerError(1109, "Unknown table 'DISKS'")
        return self.disks


def test_room_on_another_machine_is_asked_of_its_plugin_or_not_known():
    assert estimate.free_bytes(Remote([["/", "5"], ["/srv", "7"], ["/srv/other", "9"]])) == (
        7 * 1024, "/srv/data/ on elsewhere")
    free, reason = estimate.free_bytes(Remote(None))
    assert free is None and "DISKS" in reason
