"""Lists of statements in files of their own."""

import re
from pathlib import Path


def statements(file: Path) -> dict:
    """The statements of a file by the headings before them, `-- heading`. Each ends with a
    semicolon; its further lines are indented, and joined by blanks."""
    parts = re.split(r"(?m)^-- (.*)\n", file.read_text())[1:]
    return {heading: [" ".join(map(str.strip, text.splitlines()))
                      for text in re.split(r";\n(?! )", part) if text.strip()]
            for heading, part in zip(parts[::2], parts[1::2])}
