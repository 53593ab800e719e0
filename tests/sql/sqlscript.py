"""The language of `tests/sql/*.sql`: SQL with directives, parsed into a flat list of steps.

A statement ends with `;` at the end of a line. A line that starts with `-- ` or `#` is a comment.
Directives:

    --! connection NAME            switch to this connection, and open it on first use (`default` is
                                   the initial one)
    --! disconnect NAME            close the connection
    --! send                       do not wait for the answer of the next statement
    --! reap                       wait for the answer of the statement sent on this connection
    --! wait QUERY                 repeat until the query's first column is not 0 (at most 30 s)
    --! error NUMBER               the next statement fails with this error on the reference engine
                                   (required for errors that a typing mistake causes: syntax,
                                   unknown table, column, routine or variable)
    --! columns NAME,NAME          compare only these columns of the next statement's result
    --! unordered | ordered        compare the next result as a set | in order (default: in order
                                   for ORDER BY, SHOW, HANDLER, EXPLAIN, CHECK or CALL)
    --! ignore                     run the next statement on both sides, and compare only whether
                                   and how it failed
    --! any                        run the next statement on both sides, and compare nothing
    --! numbers                    compare the numbers of the next statement's errors and warnings,
                                   not their wording
    --! delimiter WORD             statements end with this word
    --! restart | kill             stop the server (or kill -9) and start it
    --! shell NAME                 run a step that is not SQL (see `sqlshell.py`)
    --! sample N                   use only every Nth row in the next loop, unless the runner has
                                   the option --all
    --! for QUERY / --! end        repeat for each row of the query, where $1, $2 .. are its columns
    --! cheetah-only / --! end     run only on Cheetah; the output must equal that in NAME.expected
    --! innodb-only / --! end      run only on InnoDB, where the engines need different statements

In statements $ENGINE is the engine under test, $DB the database, $ID(NAME) a connection's ID, and
$FOLDER a scratch folder."""

import re
from dataclasses import dataclass, field, replace

from cheetah_tools.say import Failure

BOTH, CHEETAH_ONLY, INNODB_ONLY = "both", "cheetah-only", "innodb-only"
# Errors that a mistake in a script causes on both sides. Scripts must announce them.
SLIPS = {1049, 1054, 1064, 1109, 1146, 1193, 1305, 1072}
ACTIONS = {"connection", "disconnect", "reap", "wait", "restart", "kill", "shell"}
MODIFIERS = {"send", "error", "columns", "unordered", "ordered", "ignore", "any", "numbers",
             "sample"}
IN_ORDER = re.compile(r"\bORDER\s+BY\b|^\s*(SHOW|HANDLER|EXPLAIN|CHECK|CALL|DESC|CHECKSUM|ANALYZE|"
                      r"OPTIMIZE)\b", re.I)


@dataclass
class Step:
    """One statement (`action` is empty) or one directive, with its line number."""
    line: int
    text: str
    action: str = ""
    where: str = BOTH
    options: dict = field(default_factory=dict)

    def in_order(self) -> bool:
        """Returns whether the order of the result's rows is compared."""
        if "ordered" in self.options or "unordered" in self.options:
            return "ordered" in self.options
        return bool(IN_ORDER.search(self.text))


@dataclass
class Loop:
    """Steps that are repeated for each row of a query."""
    line: int
    query: str
    steps: list
    every: int = 1


class Parser:
    def __init__(self, text: str, name: str):
        self.lines, self.name, self.delimiter = text.splitlines(), name, ";"
        self.blocks = [("", [], BOTH)]   # (kind, steps, where)
        self.loops, self.options = [], {}
        self.statement, self.first_line = [], 0

    def parse(self) -> list:
        """Returns the steps and loops of a script. Raises Failure with the line of a mistake."""
        for number, line in enumerate(self.lines, 1):
            if not self.statement and line.startswith("--!"):
                self.directive(number, line[3:].strip())
            elif not self.statement and (not line.strip() or line.startswith(("-- ", "#"))
                                         or line == "--"):
                continue
            else:
                self.statement_line(number, line)
        if self.statement:
            self.fail(self.first_line, f"this statement has no end ({self.delimiter})")
        if len(self.blocks) != 1:
            self.fail(len(self.lines), f"--! {self.blocks[-1][0]} has no --! end")
        return self.blocks[0][1]

    def directive(self, number: int, text: str) -> None:
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word in (CHEETAH_ONLY, INNODB_ONLY):
            self.blocks.append((word, self.blocks[-1][1], word))
        elif word == "for":
            if self.loops:
                self.fail(number, "a loop within a loop")
            self.loops.append(Loop(number, rest, [], int(self.take_options().get("sample", 1))))
            self.blocks.append((word, self.loops[-1].steps, self.where()))
        elif word == "end":
            if len(self.blocks) == 1:
                self.fail(number, "--! end without a block")
            if self.blocks.pop()[0] == "for":
                self.blocks[-1][1].append(self.loops.pop())
        elif word == "delimiter":
            self.delimiter = rest
        elif word in ACTIONS:
            self.blocks[-1][1].append(Step(number, rest, word, self.where(), self.take_options()))
        elif word in MODIFIERS:
            self.options[word] = rest
        else:
            self.fail(number, f"unknown directive {word}")

    def statement_line(self, number: int, line: str) -> None:
        if not self.statement:
            self.first_line = number
        self.statement.append(line)
        if line.rstrip().endswith(self.delimiter):
            text = "\n".join(self.statement).rstrip()[:-len(self.delimiter)].strip()
            self.statement = []
            self.blocks[-1][1].append(Step(self.first_line, text, "", self.where(),
                                           self.take_options()))

    def where(self) -> str:
        """Returns which engines run the innermost block."""
        return self.blocks[-1][2]

    def take_options(self) -> dict:
        """Returns the modifiers given since the last statement, and resets them."""
        options, self.options = self.options, {}
        return options

    def fail(self, number: int, why: str) -> None:
        raise Failure(f"{self.name}:{number}: {why}")


def expand(steps: list, rows_of, whole: bool) -> list:
    """Returns the steps with loops unrolled, using `rows_of(query)`. `whole` disables sampling."""
    flat = []
    for step in steps:
        if isinstance(step, Step):
            flat.append(step)
            continue
        for row in rows_of(step.query)[:: 1 if whole else step.every]:
            # Replaces $1, $2 ..
            flat += [replace(inner, text=re.sub(
                r"\$(\d)", lambda found, row=row: row[int(found[1]) - 1], inner.text))
                for inner in step.steps]
    return flat
