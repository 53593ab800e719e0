"""Checksums of the engine's files, and damage to these files, for tests that modify them."""


def crc32c(content: bytes) -> int:
    """Returns the CRC-32C checksum (Castagnoli's polynomial, reflected) of the engine's files."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def damage(place, offset: int, count: int = 64) -> None:
    """Flips bits in `count` bytes of a file."""
    with open(place, "r+b") as handle:
        handle.seek(offset)
        old = handle.read(count)
        handle.seek(offset)
        handle.write(bytes(byte ^ 0x5A for byte in old))
