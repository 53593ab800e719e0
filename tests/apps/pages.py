"""Text pages, taken from the data sets next to the project or generated."""

import random
import subprocess

from cheetah_tools.paths import SERVER, shared_data

# The first set holds wikitext, the second plain article text.
SETS = ["enwiki_raw_sample", "enwiki_text_plain"]
BYTES_OF_A_PAGE = 24000   # bytes to read from the dump for each page
SEED, VOCABULARY, WORDS_OF_A_PAGE = 5, 20000, 2500


def pages(server, count: int) -> list:
    """Returns `count` pairs of (title, text). They are read from the data sets, which are loaded
    into the server. If a data set is missing, all pages are generated."""
    found = {}
    for name in SETS:
        file = shared_data() / f"{name}.sql.zst"
        if not file.exists():
            return list(made(count).items())
        load(server, name, file, count * BYTES_OF_A_PAGE)
        rows = server.sql("SELECT page_title, old_text FROM page JOIN text ON page_latest = old_id "
                          f"ORDER BY page_id LIMIT {count - len(found)}", name)
        found |= {said(title).replace("_", " "): said(text) for title, text in rows}
        server.sql(f"DROP DATABASE {name}")
        if len(found) >= count:
            break
    return list(found.items())


def said(value) -> str:
    """Decodes text from a binary column."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def load(server, database: str, file, bytes_max: int) -> None:
    """Loads the beginning of a dump, up to the last complete statement."""
    with subprocess.Popen([SERVER / "usr/bin/zstd", "-dc", file], stdout=subprocess.PIPE) as unpack:
        text = unpack.stdout.read(bytes_max)
        unpack.kill()
    server.sql(f"CREATE DATABASE {database}")
    client = server.client(database, stdin=subprocess.PIPE)
    client.communicate(text[text.index(b"\n") + 1:text.rindex(b";\n") + 2])
    assert client.returncode == 0


def made(count: int) -> dict:
    """Generates pages of random words that link to each other. Words follow Zipf's law."""
    rng = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    vocabulary = ["".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(3, 11)))
                  for _ in range(VOCABULARY)]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    result = {}
    for number in range(count):
        words = rng.choices(vocabulary, weights, k=rng.randint(10, 2 * WORDS_OF_A_PAGE))
        lines = [" ".join(words[at:at + 80]) + "." for at in range(0, len(words), 80)]
        lines.append(f"[[Page {rng.randrange(count)}]] [[Category:Made {number % 7}]]")
        result[f"Page {number}"] = "\n\n".join(lines)
    return result
