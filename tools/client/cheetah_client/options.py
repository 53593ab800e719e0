"""Options that the programs share: connections, and numbers of bytes."""

import argparse
import re

from .connection import Connection

FILES = ("defaults-file", "defaults-extra-file")
ADDRESS = ("host", "port", "socket", "user")
FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_count(word: str) -> int:
    """Parses a number of bytes such as 100M."""
    found = re.fullmatch(r"(\d+)([KMGT]?)", word.upper())
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{word}: a number of bytes is written 500, 20K, 100M, 2G")
    return int(found[1]) * FACTORS[found[2]]


def add_files(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name option files."""
    for key in FILES:
        parser.add_argument(f"--{key}", metavar="FILE")


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the server's address and the client program."""
    group = parser.add_argument_group("connection, as for the client program mariadb")
    for key in ADDRESS:
        group.add_argument(f"--{key}", metavar=key.upper())
    group.add_argument("--password", action="store_true", help="ask for it")
    group.add_argument("--client", default="mariadb", metavar="PROGRAM",
                       help="the client program (mariadb)")


def connecting(options) -> list:
    """Returns the connection options that were given, for the client or mariadb-backup."""
    given = ((key, getattr(options, key.replace("-", "_"), None)) for key in (*FILES, *ADDRESS))
    return [f"--{key}={value}" for key, value in given if value is not None]


def connect(options, password: str = None) -> Connection:
    """Opens a session according to the options."""
    return Connection([options.client, *connecting(options)], password)
