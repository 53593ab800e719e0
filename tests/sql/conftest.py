"""Command-line options for the SQL script tests."""


def pytest_addoption(parser):
    parser.addoption("--engine", default="CHEETAH", help="the engine to compare with InnoDB")
    parser.addoption("--all", action="store_true", help="every collation, not a sample")
    parser.addoption("--record", action="store_true", help="write the .expected files anew")
    parser.addoption("--show", action="store_true", help="print the engine's record (with -s)")
