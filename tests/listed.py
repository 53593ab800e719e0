"""Reads lists of SQL statements from files."""

import re
from pathlib import Path


def statements(file: Path) -> dict:
    """Returns the statements of a file, keyed by their headings (`-- heading`). Each statement ends
    with a semicolon. Its continuation lines are indented and joined with spaces."""
    parts = re.split(r"(?m)^-- (.*)\n", file.read_text())[1:]
    return {heading: [" ".join(map(str.strip, text.splitlines()))
                      for text in re.split(r";\n(?! )", part) if text.strip()]
            for heading, part in zip(parts[::2], parts[1::2])}
