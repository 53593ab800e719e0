"""The engines that the lab compares, by key, with the words that follow CREATE TABLE (..)."""

from pathlib import Path

from cheetah_tools.engines import CHEETAH_ENCRYPTED, INNODB_ENCRYPTED, MYROCKS, Engine
from cheetah_tools.say import Failure


def _innodb(label: str, words: str) -> Engine:
    return Engine(f"InnoDB {label}", "InnoDB", words)


def _cheetah(label: str, words: str = "") -> Engine:
    return Engine(f"Cheetah {label}".strip(), "CHEETAH", words)


BEFORE = "cheetah-before"   # another build of the plugin, set by `given_plugin`
ALL = {
    "innodb-compact": _innodb("COMPACT", "ROW_FORMAT=COMPACT"),
    "innodb-dynamic": _innodb("DYNAMIC", "ROW_FORMAT=DYNAMIC"),
    **{f"innodb-{size}k": _innodb(f"KEY_BLOCK_SIZE={size}",
                                  f"ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={size}")
       for size in (16, 8, 4)},
    "innodb-holes": _innodb("PAGE_COMPRESSED", "PAGE_COMPRESSED=1"),
    "myrocks": MYROCKS,
    "cheetah": _cheetah(""),
    **{f"cheetah-{size}k": _cheetah(f"KEY_BLOCK_SIZE={size}",
                                    f"ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={size}")
       for size in (16, 8, 4)},
    "cheetah-none": _cheetah("COMPRESSION='none'", "COMPRESSION='none'"),
    "cheetah-encrypted": CHEETAH_ENCRYPTED, "innodb-encrypted": INNODB_ENCRYPTED,
    BEFORE: _cheetah("before"),
}
for _key, _engine in ALL.items():
    _engine.key = _key
# both engines with their defaults, whose values are shown next to the documents' figures
INNODB, CHEETAH = "innodb-dynamic", "cheetah"
QUICK = [INNODB, "innodb-8k", "myrocks", CHEETAH]
# the engines of a full run; the others run only if they are named
FULL = [key for key in ALL if not key.endswith(("-encrypted", "-before"))]


def named(words: str) -> list:
    """Returns the keys of engines given by keys or labels, with commas. "InnoDB" means DYNAMIC."""
    by_word = {**{engine.label: key for key, engine in ALL.items()}, **{key: key for key in ALL},
               "InnoDB": INNODB}
    if unknown := [word for word in words.split(",") if word not in by_word]:
        raise Failure(f"no such engine: {', '.join(unknown)}; there are {', '.join(by_word)}")
    return [by_word[word] for word in words.split(",")]


def given_plugin(file: str) -> Path:
    """Makes the engine `BEFORE` use another build of the plugin. Raises Failure without it."""
    plugin = Path(file).expanduser().resolve()
    if not plugin.is_file():
        raise Failure(f"no such file: {plugin}")
    ALL[BEFORE].plugin = plugin
    return plugin
