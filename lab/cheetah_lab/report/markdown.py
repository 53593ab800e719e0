"""Text of a user's (names, values, reasons) in Markdown: it shows as it is, whatever signs are in
it."""

import re

from markupsafe import Markup

# What would begin code, emphasis, a deletion, a formula, a link, a cell or a tag. Markdown leaves a
# "_" within a word alone.
SIGNS = re.compile(r"[\\`*~$\[\]|<>&]|(?<!\w)_|_(?!\w)")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
LINE_END = re.compile(r"\r\n?|\n")   # a line ends at a \r alone as well


def escaped(text) -> str:
    """Text in a sentence; what `as_it_is` or a filter made is left alone."""
    return (text if isinstance(text, Markup)
            else SIGNS.sub(lambda sign: ENTITIES.get(sign[0], "\\" + sign[0]), str(text)))


def in_a_line(text) -> Markup:
    """Text in a cell of a table, a head or an item of a list: it has no line ends."""
    return Markup(escaped(" ".join(str(text).split())))


def as_it_is(text) -> Markup:
    """Text that the Markdown needs without escapes: a path, the indented lines of code."""
    return Markup(LINE_END.sub("\n    ", str(text)))
