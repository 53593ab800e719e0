"""The engines that the lab compares, by key. The words stand behind the closing parenthesis of
CREATE TABLE."""

from dataclasses import dataclass

from cheetah_tools import engines as base


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
)}
# the keys of both as they are by default; their values stand beside the documents' figures
INNODB, CHEETAH = "innodb-dynamic", "cheetah"
QUICK = [INNODB, "innodb-8k", "myrocks", CHEETAH]
