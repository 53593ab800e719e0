"""The engines that the lab compares, by key. The words stand behind the closing parenthesis of
CREATE TABLE."""

from dataclasses import dataclass
from pathlib import Path

from cheetah_tools import engines as base
from cheetah_tools.say import Failure


@dataclass(frozen=True)
class LabEngine:
    """One column of a comparison: how its tables are declared, and how its server is set up,
    flushed and measured."""

    key: str
    label: str
    family: str
    engine: base.Engine


def _innodb(key: str, label: str, words: str) -> LabEngine:
    return LabEngine(key, label, "InnoDB", base.Engine(label, "InnoDB", words))


def _cheetah(key: str, label: str, words: str = "") -> LabEngine:
    return LabEngine(key, label, "Cheetah", base.Engine(label, "CHEETAH", words))


BEFORE = "cheetah-before"   # another build of the plugin, which `given_plugin` names
ALL = {engine.key: engine for engine in (
    _innodb("innodb-compact", "InnoDB COMPACT", "ROW_FORMAT=COMPACT"),
    _innodb("innodb-dynamic", "InnoDB DYNAMIC", "ROW_FORMAT=DYNAMIC"),
    _innodb("innodb-16k", "InnoDB KEY_BLOCK_SIZE=16", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=16"),
    _innodb("innodb-8k", "InnoDB KEY_BLOCK_SIZE=8", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"),
    _innodb("innodb-4k", "InnoDB KEY_BLOCK_SIZE=4", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"),
    _innodb("innodb-holes", "InnoDB PAGE_COMPRESSED", "PAGE_COMPRESSED=1"),
    LabEngine("myrocks", "MyRocks", "MyRocks", base.MYROCKS),
    _cheetah("cheetah", "Cheetah"),
    _cheetah("cheetah-16k", "Cheetah KEY_BLOCK_SIZE=16", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=16"),
    _cheetah("cheetah-8k", "Cheetah KEY_BLOCK_SIZE=8", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"),
    _cheetah("cheetah-4k", "Cheetah KEY_BLOCK_SIZE=4", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"),
    _cheetah("cheetah-none", "Cheetah COMPRESSION='none'", "COMPRESSION='none'"),
    LabEngine("cheetah-encrypted", "Cheetah encrypted", "Cheetah", base.CHEETAH_ENCRYPTED),
    LabEngine("innodb-encrypted", "InnoDB encrypted", "InnoDB", base.INNODB_ENCRYPTED),
    _cheetah(BEFORE, "Cheetah before"),
)}
# the keys of both as they are by default; their values stand beside the documents' figures
INNODB, CHEETAH = "innodb-dynamic", "cheetah"
QUICK = [INNODB, "innodb-8k", "myrocks", CHEETAH]
# those of a full run; the others are there where they are named
FULL = [key for key in ALL if not key.endswith(("-encrypted", "-before"))]


def named(words: str) -> list:
    """The keys of engines that are given by their keys or labels, between commas; InnoDB alone is
    DYNAMIC, its default."""
    by_word = {**{engine.label: key for key, engine in ALL.items()}, **{key: key for key in ALL},
               "InnoDB": INNODB}
    unknown = [word for word in words.split(",") if word not in by_word]
    if unknown:
        raise Failure(f"no such engine: {', '.join(unknown)}; there are {', '.join(by_word)}")
    return [by_word[word] for word in words.split(",")]


def given_plugin(file: str) -> Path:
    """Have the engine `BEFORE` be that of another build. Failure when there is no such file."""
    plugin = Path(file).expanduser().resolve()
    if not plugin.is_file():
        raise Failure(f"no such file: {plugin}")
    ALL[BEFORE].engine.plugin = plugin
    return plugin
