"""Writes MediaWiki's export format as MediaWiki's own XmlDumpWriter does, from plain dicts. Knows
nothing of the importer."""

import bz2
import gzip
import hashlib
import lzma
import subprocess
from pathlib import Path

from cheetah_lab.inputs import packed

NAMESPACES = {-2: "Media", -1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk",
              10: "Template", 14: "Category"}
PAGES_IN_STREAM = 100


def quoted(text: str) -> str:
    """As PHP's htmlspecialchars."""
    for plain, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"),
                          ("'", "&#039;")):
        text = text.replace(plain, entity)
    return text.replace("\r", "&#13;")


def sha1(content: bytes) -> str:
    """Base 36, 31 digits."""
    left, found = int(hashlib.sha1(content).hexdigest(), 16), ""
    for _ in range(31):
        found, left = "0123456789abcdefghijklmnopqrstuvwxyz"[left % 36] + found, left // 36
    return found


def head(version: str) -> str:
    """Up to the first page."""
    spaces = "".join(f'      <namespace key="{key}" case="first-letter"'
                     + (f">{name}</namespace>\n" if name else " />\n")
                     for key, name in NAMESPACES.items())
    return (f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" '
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:schemaLocation="http://www.mediawiki.org/xml/export-{version}/ '
            f'http://www.mediawiki.org/xml/export-{version}.xsd" version="{version}" '
            'xml:lang="en">\n'
            "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>testwiki</dbname>\n"
            "    <base>https://example.org/wiki/Main_Page</base>\n"
            "    <generator>MediaWiki 1.43</generator>\n    <case>first-letter</case>\n"
            f"    <namespaces>\n{spaces}    </namespaces>\n  </siteinfo>\n")


def page(said: dict, version: str) -> str:
    """`said`: id, ns, title, redirect (or None), restrictions, revisions."""
    lines = ["  <page>", f"    <title>{quoted(said['title'])}</title>",
             f"    <ns>{said['ns']}</ns>", f"    <id>{said['id']}</id>"]
    if said["redirect"] is not None:
        lines.append(f'    <redirect title="{quoted(said["redirect"])}" />')
    if said["restrictions"]:
        lines.append(f"    <restrictions>{quoted(said['restrictions'])}</restrictions>")
    return "\n".join(lines + [revision(one, version) for one in said["revisions"]]
                     + ["  </page>\n"])


def revision(said: dict, version: str) -> str:
    """`said`: id, parent, timestamp, user (name, id) or an IP, minor, comment, text (bytes or None:
    deleted)."""
    text, content = said["text"], said["text"] or b""
    lines = ["    <revision>", f"      <id>{said['id']}</id>"]
    if said["parent"]:
        lines.append(f"      <parentid>{said['parent']}</parentid>")
    lines += [f"      <timestamp>{said['timestamp']}</timestamp>", "      <contributor>"]
    if isinstance(said["user"], str):
        lines.append(f"        <ip>{said['user']}</ip>")
    else:
        lines += [f"        <username>{quoted(said['user'][0])}</username>",
                  f"        <id>{said['user'][1]}</id>"]
    lines += ["      </contributor>"] + ["      <minor />"] * said["minor"]
    if said["comment"]:
        lines.append(f"      <comment>{quoted(said['comment'])}</comment>")
    if version == "0.11":
        lines.append(f"      <origin>{said['id']}</origin>")
    lines += ["      <model>wikitext</model>", "      <format>text/x-wiki</format>"]
    facts = (f' bytes="{len(content)}"'
             + (f' sha1="{sha1(content)}"' if version == "0.11" and text is not None else ""))
    if text is None:
        lines.append(f'      <text{facts} deleted="deleted" />')
    elif not text:
        lines.append(f'      <text{facts} xml:space="preserve" />')
    else:
        lines.append(f'      <text{facts} xml:space="preserve">{quoted(text.decode())}</text>')
    lines.append(f"      <sha1>{sha1(content)}</sha1>" if text is not None else "      <sha1 />")
    return "\n".join(lines + ["    </revision>"])


def write(place: Path, pages: list, version: str = "0.11") -> Path:
    """The dump, packed as its name says; .bz2 in several streams, as Wikipedia's are."""
    parts = [head(version)]
    parts += ["".join(page(said, version) for said in pages[at:at + PAGES_IN_STREAM])
              for at in range(0, len(pages), PAGES_IN_STREAM)]
    return pack(place, [part.encode() for part in [*parts, "</mediawiki>\n"]])


def pack(place: Path, parts: list) -> Path:
    """The bytes of all parts, packed as the name says."""
    ways = {".bz2": bz2.compress, ".gz": lambda part: gzip.compress(part, 1), ".xz": lzma.compress}
    if place.suffix in ways:
        place.write_bytes(b"".join(ways[place.suffix](part) for part in parts))
        return place
    plain = place.with_suffix("") if place.suffix in (".zst", ".7z") else place
    plain.write_bytes(b"".join(parts))
    if place.suffix == ".zst":
        subprocess.run([packed.zstd(), "-q", "-f", str(plain), "-o", str(place)], check=True)
    elif place.suffix == ".7z":
        subprocess.run([packed.seven_zip(), "a", "-bd", "-mx=1", str(place), str(plain)],
                       check=True, stdout=subprocess.DEVNULL)
    return place
