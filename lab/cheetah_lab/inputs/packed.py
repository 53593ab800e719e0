"""Files that a user brings, packed or not: .gz, .bz2 (of many streams, too), .xz, .zst, .7z, read
as one stream of bytes.

Python reads the first three itself; zstd and 7-Zip are programs, whose place in the file the kernel
tells. A file that is cut off or damaged is a Failure at the byte where it shows; it never looks
like a shorter file that is whole.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import shlex
import shutil
import subprocess
import zlib
from pathlib import Path

from cheetah_tools import setup
from cheetah_tools.paths import SERVER, show
from cheetah_tools.say import Failure

READERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)
BUFFER_BYTES = 1 << 18
# Bytes of content in a byte of a file: what texts usually give.
UNPACKED = {"": 1, ".gz": 5, ".bz2": 6, ".zst": 6, ".xz": 8}
HEADS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst",
         b"7z\xbc\xaf\x27\x1c": ".7z"}
# How a person unpacks a file to a pipe.
PROGRAMS = {".gz": "gzip -dc", ".bz2": "bzip2 -dc", ".xz": "xz -dc", ".zst": "zstd -dc --long=31",
            ".7z": "7zr x -so"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Packed(io.RawIOBase):
    """The unpacked bytes of a file. `done()` of `size` bytes of the file are read; `position` bytes
    have come out."""

    def __init__(self, path: Path):
        """Failure when the file cannot be opened, is empty, or is not what its name says."""
        super().__init__()
        self.path, self.position, self._child = Path(path), 0, None
        kind = checked(self.path)
        self.size = self.path.stat().st_size
        self._raw = open(self.path, "rb")
        if kind in READERS:
            self._stream = READERS[kind](self._raw)
        elif kind in (".zst", ".7z"):
            words = ([zstd(), "-dc", "--long=31", str(self.path)] if kind == ".zst"
                     else [seven_zip(), "x", "-so", "-bd", str(self.path)])
            self._child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, env=setup.library_environment())
            self._stream = self._child.stdout
        else:
            self._stream = self._raw

    def readable(self) -> bool:
        """For io.BufferedReader."""
        return True

    def readinto(self, buffer) -> int:
        """The next bytes; 0 at the end of a file that is whole. Blocks. Failure otherwise."""
        try:
            block = (self._stream.read1(len(buffer)) if hasattr(self._stream, "read1")
                     else self._stream.read(len(buffer)))
        except BROKEN as failure:
            raise self._cut_off(str(failure)) from failure
        if not block and self._child is not None:
            self._end_child()
        buffer[:len(block)] = block
        self.position += len(block)
        return len(block)

    def done(self) -> int:
        """Bytes of the file that are read."""
        if self._child is None:
            return self._raw.tell()
        try:
            for link in Path(f"/proc/{self._child.pid}/fd").iterdir():
                if os.readlink(link) == str(self.path.resolve()):
                    position = (link.parent.parent / "fdinfo" / link.name).read_text().split()[1]
                    return int(position)
        except OSError:   # it has ended
            pass
        return self.size

    def close(self) -> None:
        """End the program that unpacks, too."""
        if not self.closed and self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child.stdout.close()
            self._child.stderr.close()
        self._raw.close()
        super().close()

    def _end_child(self) -> None:
        messages = self._child.stderr.read().decode(errors="replace").split("\n")
        if self._child.wait() != 0:
            # the Failure has the path
            lines = [line.replace(str(self.path), "").strip(" :\r") for line in messages]
            raise self._cut_off("; ".join(line for line in lines if line)[:500])

    def _cut_off(self, why: str) -> Failure:
        return Failure(f"{show(self.path)}: cannot be unpacked beyond byte {self.position:,} of "
                       f"its content ({why}): the file is cut off or damaged; "
                       "fetch it again, and compare its size and its checksum with the origin's")


def opened(path: Path) -> io.BufferedReader:
    """The unpacked bytes, with lines; the `Packed` is its `raw`."""
    return io.BufferedReader(Packed(path), BUFFER_BYTES)


def checked(path: Path) -> str:
    """How the file is packed: a suffix, or the empty string. Failure for a file that its name or
    its first bytes deny."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError as failure:
        raise Failure(f"{show(path)} cannot be read: {failure.strerror}") from failure
    if not head:
        raise Failure(f"{show(path)} is empty: fetch it again")
    if head.startswith(UTF16):
        raise Failure(f"{show(path)} is UTF-16, wanted UTF-8: some shells write so when they "
                      "redirect; make it again, or convert it by `iconv -f UTF-16 -t UTF-8`")
    found = next((kind for mark, kind in HEADS.items() if head.startswith(mark)), "")
    named = path.suffix if path.suffix in HEADS.values() else ""
    if found != named:
        raise Failure(f"{show(path)}: its name says {named or 'not packed'}, its first bytes say "
                      f"{found or 'something else'}: rename it, or fetch it again")
    return found


def expected_bytes(path: Path) -> int:
    """About how much content a file has; exactly where the archive says it. Failure for an archive
    of several files."""
    kind, size = checked(path), path.stat().st_size
    if kind != ".7z":
        return size * UNPACKED[kind]
    done = subprocess.run([seven_zip(), "l", "-slt", str(path)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=setup.library_environment(),
                          check=False)
    if done.returncode != 0:
        raise Failure(f"{show(path)}: 7-Zip cannot list it: the file is cut off or damaged; "
                      "fetch it again")
    sizes = re.findall(r"^Size = (\d+)$", done.stdout, re.M)
    if len(sizes) != 1:
        raise Failure(f"{show(path)} has {len(sizes)} files: give an archive of one")
    return int(sizes[0])


def fed(path: Path, command: str) -> str:
    """A command line that feeds a file's content to a command."""
    kind, place = checked(path), shlex.quote(show(path))
    return f"{PROGRAMS[kind]} {place} | {command}" if kind else f"{command} < {place}"


def zstd() -> str:
    """The program that unpacks .zst."""
    return shutil.which("zstd") or str(SERVER / "usr/bin/zstd")


def seven_zip() -> str:
    """The program that unpacks .7z: the one that set-up unpacked, or the machine's. Failure when
    there is none."""
    private = SERVER / "usr/lib/p7zip/7zr"
    found = str(private) if private.exists() else shutil.which("7zr") or shutil.which("7z")
    if not found:
        raise Failure("no program for .7z: "
                      f"{setup.absent().get('7-Zip', 'set-up has not unpacked it')}; install "
                      "Debian's p7zip, or unpack the file elsewhere and pack it as .bz2 or .zst")
    return found
