"""The commands and options of cheetah-backup."""

import argparse
import getpass
import os
import signal
import sys

from cheetah_client.connection import Lost, ServerError
from cheetah_client.options import add_connection, add_files, byte_count
from cheetah_client.say import Failure

from . import clone, make, use

ABOUT = (
    "Backs up a running server with all its engines, verifies and restores backups, and clones it."
    """

mariadb-backup leaves the data of CHEETAH tables out. This program calls it for the rest, and adds
the engine's part: the state of the very moment whose binary log position mariadb-backup notes.
Commits wait for some hundredths of a second. Each backup is complete, also an incremental one,
and can be started from as it is.
""")
# Signals that end a command like Ctrl-C.
STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# The state that an interrupted command leaves.
LEFT = {"restore": "the data folder is of no use: empty it",
        "stream": "what was written of the stream is no backup"}
EXAMPLES = """examples:
  cheetah-backup full /backups/monday
  cheetah-backup incremental /backups/tuesday --base /backups/monday
  cheetah-backup stream --work backup-work | ssh host 'tar -xf - -C /backups/monday'
  cheetah-backup verify /backups/tuesday
  cheetah-backup restore /backups/tuesday --data-dir /var/lib/mysql
  cheetah-backup clone --data-dir /var/lib/mysql-replica

It runs on the server's machine, as a user who may read its data (root or mysql), and connects as
the client program mariadb does. Read docs/users/backup.md; the package has it too.
"""
COMMANDS = {"full": make.full, "incremental": make.incremental, "stream": make.stream,
            "verify": use.verify, "restore": use.restore, "show": use.show,
            "clone": clone.clone}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("cheetah-backup", description=ABOUT, epilog=EXAMPLES,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    target, paced, server, program = (argparse.ArgumentParser(add_help=False) for _ in range(4))
    target.add_argument("target", metavar="FOLDER", help="of the backup")
    paced.add_argument("--rate", type=byte_count, metavar="BYTES",
                       help="read at most so many bytes a second (20M, for one)")
    add_files(program)
    program.add_argument("--mariadb-backup", default="mariadb-backup", metavar="PROGRAM",
                         help="the program mariadb-backup")
    add_connection(server)
    server.add_argument("--more", action="append", default=[], metavar="OPTION",
                        help="an option for mariadb-backup --backup, such as "
                             "--more=--throttle=20; as often as you like")
    making = [paced, server, program]
    for label, parents, says in (
            ("full", [target, *making], "back the server up into a new or empty folder"),
            ("incremental", [target, *making], "the same, with links to what a backup has already"),
            ("stream", making, "back the server up as a tar archive to standard output"),
            ("verify", [target, paced], "read every byte of a backup and compare checksums"),
            ("restore", [target, paced, program], "put a backup into an empty data folder"),
            ("clone", making, "make a data folder in which a replica of the server can start"),
            ("show", [target], "say what a backup is")):
        command = commands.add_parser(label, parents=parents, help=says, description=says)
        if label == "incremental":
            command.add_argument("--base", required=True, metavar="FOLDER",
                                 help="a backup of the same server")
        if label == "stream":
            command.add_argument("--work", required=True, metavar="FOLDER",
                                 help="a new or empty folder, for what mariadb-backup copies; it "
                                      "is removed afterwards")
        if label == "restore":
            command.add_argument("--data-dir", required=True, metavar="FOLDER",
                                 help="of the server that is to start from it; new or empty")
        if label == "clone":
            command.add_argument("--data-dir", required=True, metavar="FOLDER",
                                 help="of the replica; new or empty, best on the disk of the "
                                      "server's own, as files are linked then")
            command.add_argument("--copy", action="store_true",
                                 help="copy data files also where they could be linked")
    found.set_defaults(secret=None)
    return found


def run(options) -> None:
    """Runs the command. A stream is on standard output, so messages go to standard error."""
    if getattr(options, "password", False):
        options.secret = getpass.getpass()
    if options.command == "stream":
        if sys.stdout.isatty():
            raise Failure("a stream is no text: send it to a file or another program")
        options.output = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    COMMANDS[options.command](options)


def stop_once(*_) -> None:
    """Stops the program like Ctrl-C. Further signals are ignored, because a closed terminal may
    send SIGHUP twice, and the second must not interrupt the cleanup."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    options = parser().parse_args()
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:   # nohup ignores SIGHUP
            signal.signal(number, stop_once)
    try:
        run(options)
        return 0
    except Lost as failure:
        return say_error(f"no connection with the server: {failure}")
    except (Failure, ServerError) as failure:
        return say_error(str(failure))
    except OSError as failure:
        return say_error(f"{failure.filename or 'output'}: {failure.strerror}")
    except KeyboardInterrupt:
        print(f"\nstopped; {LEFT.get(options.command, 'nothing is left of it')}", file=sys.stderr,
              flush=True)
        return 130


def say_error(words: str) -> int:
    print(f"error: {words}", file=sys.stderr, flush=True)
    return 1
