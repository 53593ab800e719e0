"""Set-up: installs a MariaDB of one exact version under `var/`, with a plugin's private headers.

A storage engine loads only into the exact version it was built for, and Debian may offer a newer
binary than source. So set-up takes the newest release of the series whose binary AND source can be
downloaded, and fetches every package with that exact version. Each part is created under another
name and renamed: an interrupted run starts that part again, and no finished one.

A series of another Debian release includes that release's C library and loader (`own_loader.py`).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from . import apt, environment, own_loader
from .paths import HEADERS, SERIES, SERVER, SOURCE, STAMP, VAR, emptied, show
from .say import Failure, note, step

# The Debian release of each server series.
RELEASES = {"10.11": "bookworm", "11.8": "trixie"}
# All packages have one version: a mix of releases does not start or does not load plugins.
MARIADB_PACKAGES = [
    "mariadb-server-core", "mariadb-server", "mariadb-client-core", "mariadb-client",
    "mariadb-common", "libmariadb3", "libmariadb-dev", "libmariadbd-dev", "mariadb-test",
    "mariadb-test-data", "mariadb-backup",
]
# Libraries that a bare machine lacks, the tools' database driver, zstd, and sysbench.
OTHER_PACKAGES = [
    "liburing2", "libaio1", "libnuma1", "libpmem1", "libdaxctl1", "libndctl6", "liblzo2-2",
    "libpcre2-posix3", "libconfig-inifiles-perl", "python3-pymysql", "zstd",
    "sysbench", "libluajit-5.1-2", "libpq5",
]
# Packages for comparisons or few tests only: set-up continues without them, and `absent` reports
# why they are missing. Name: MariaDB's packages, other packages, and the file that must exist.
OPTIONAL = {
    "MyRocks": (["mariadb-plugin-rocksdb"], ["librocksdb7.8", "libsnappy1v5", "libgflags2.2"],
                "usr/lib/mysql/plugin/ha_rocksdb.so"),
    "Spider": (["mariadb-plugin-spider"], [], "usr/lib/mysql/plugin/ha_spider.so"),
    "7-Zip": ([], ["p7zip"], "usr/lib/p7zip/7zr"),
}
# The additional packages for a release other than the machine's.
C_LIBRARY = ["libc6", "libgcc-s1", "libstdc++6", "patchelf"]
# Packages that have another name in a release.
RENAMED = {"trixie": {
    "libaio1": "libaio1t64", "libssl3": "libssl3t64", "libglib2.0-0": "libglib2.0-0t64",
    "libldap-2.5-0": "libldap2", "libgnutls30": "libgnutls30t64", "libhogweed6": "libhogweed6t64",
    "libnettle8": "libnettle8t64", "libreadline8": "libreadline8t64", "libcurl4": "libcurl4t64",
    "p7zip": "7zip", "libicu72": "libicu76", "librocksdb7.8": "librocksdb9.10",
    "libunistring2": "libunistring5"}}
# Folders that newer packages have under another name; then both names exist.
MOVED = {"usr/share/mysql": "mariadb", "usr/lib/p7zip": "7zip"}
# Libraries that even a small Debian usually has; fetched only if the loader misses them.
LIBRARIES = """libssl.so.3 libpcre2-8.so.0 libpcre2-posix.so.3 libsystemd.so.0 libcrypt.so.1
    liblz4.so.1 libzstd.so.1 libbz2.so.1.0 liblzma.so.5 libncurses.so.6 libtinfo.so.6 libedit.so.2
    libbsd.so.0 libmd.so.0 libgcc_s.so.1 libstdc++.so.6 libcap.so.2 libgcrypt.so.20
    libgpg-error.so.0 """
# The libraries of sysbench's PostgreSQL driver and their dependencies.
LIBRARIES += """libgssapi_krb5.so.2 libkrb5.so.3 libk5crypto.so.3 libkrb5support.so.0
    libcom_err.so.2 libkeyutils.so.1 libldap-2.5.so.0 libldap.so.2 libsasl2.so.2 libgnutls.so.30
    libp11-kit.so.0 libidn2.so.0 libunistring.so.2 libtasn1.so.6 libnettle.so.8 libhogweed.so.6
    libgmp.so.10 libffi.so.8 """
# The libraries of applications (tests/apps): PHP with its extensions, mydumper, Perl's driver.
LIBRARIES += """libargon2.so.1 libsodium.so.23 libmagic.so.1 libxxhash.so.0 libonig.so.5
    libreadline.so.8 libpcre.so.3 libmariadb.so.3"""
# Debian names a package like its library, with a dash between two digits; the others are listed.
PACKAGE_OF_LIBRARY = {
    **{name: re.sub(r"(\d)?\.so\.", lambda found: f"{found[1]}-" if found[1] else "",
                    name).replace("_", "-") for name in LIBRARIES.split()},
    "libcrypto.so.3": "libssl3", "libz.so.1": "zlib1g", "liblber.so.2": "libldap2",
    "liblber-2.5.so.0": "libldap-2.5-0", "libxml2.so.2": "libxml2", "libxslt.so.1": "libxslt1.1",
    "libexslt.so.0": "libxslt1.1", "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    **{f"libicu{part}.so.72": "libicu72" for part in ("uc", "i18n", "data", "io")}}
# Commands that must be installed on the machine itself: command -> package.
MACHINE_TOOLS = {
    "g++": "g++", "make": "make", "ar": "binutils", "perl": "perl", "tar": "tar", "xz": "xz-utils",
    "ldd": "libc-bin", "dpkg-deb": "dpkg", "awk": "mawk", "hostname": "hostname",
}
CHECKED_PROGRAMS = ["usr/sbin/mariadbd", "usr/bin/mariadb", "usr/bin/mariadb-admin",
                    "usr/bin/mariadb-dump", "usr/bin/mariadb-test", "usr/bin/zstd",
                    "usr/bin/sysbench"]
ABSENT = "absent.json"         # in the server's folder: the missing parts of OPTIONAL, and why
# An added library may need others.
LIBRARY_ROUNDS_MAX = 8
HEADERS_END = (".h", ".hpp", ".h.in", ".ic", ".inl")
HEADER_FOLDERS = ("include/", "sql/", "wsrep-lib/include/", "wsrep-lib/wsrep-API/v26/")


def main(_arguments=()) -> None:
    """Runs the command: installs what is missing, then reports it."""
    state = ensure()
    print(f"MariaDB {state['version']} is ready in {show(SERVER)}, its headers in {show(HEADERS)}")


def ensure() -> dict:
    """Makes sure that the private server exists; returns what was installed (`version`, ..)."""
    wanted = recipe()
    if STAMP.exists():
        state = json.loads(STAMP.read_text())
        if state.get("recipe") == wanted and SERVER.is_dir() and HEADERS.is_dir():
            return state
    machine_tools()
    VAR.mkdir(parents=True, exist_ok=True)
    archive = apt.Archive(release())
    step("reading the package lists (privately; the machine's own stay as they are)")
    archive.update()
    package_version = choose_source(archive)
    version = re.search(r"(\d+\.\d+\.\d+)", package_version).group(1)
    unpack_headers(version)
    unpack_server(archive, package_version)
    state = {"recipe": wanted, "version": version, "package_version": package_version}
    replace_text(STAMP, json.dumps(state, indent=1) + "\n")
    shutil.rmtree(archive.folder / "debs", ignore_errors=True)
    return state


def release() -> str:
    """Returns the Debian release of the chosen series; raises Failure for an unknown series."""
    if SERIES not in RELEASES:
        raise Failure(f"SERVER={SERIES}: the series are {', '.join(RELEASES)}")
    return RELEASES[SERIES]


def is_foreign() -> bool:
    return release() != apt.machine_release()


def recipe() -> str:
    """Returns a hash of what is installed, with which an old `var/` is completed."""
    text = repr((MARIADB_PACKAGES, OTHER_PACKAGES, OPTIONAL, HEADER_FOLDERS, f"{SERIES}."))
    if is_foreign():
        # The programs contain the path of their loader.
        text += repr((C_LIBRARY, str(SERVER), RENAMED.get(release())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def machine_tools() -> None:
    missing = sorted({package for tool, package in MACHINE_TOOLS.items() if not shutil.which(tool)})
    if not shutil.which("cargo"):
        raise Failure("cargo not found: install Rust 1.85 or newer (rustup.rs), then run this "
                      "again")
    if missing:
        environment.install_packages(missing, may_sudo=True)


def choose_source(archive: apt.Archive) -> str:
    """Downloads the newest source that has a binary; returns its package version."""
    offered = [v for v in archive.versions("mariadb-server") if f"{SERIES}." in v]
    if not offered:
        raise Failure(f"no MariaDB {SERIES}.x among the packages of this machine's sources: "
                      f"it needs Debian's main archive, release {release()}")
    for version in offered:
        if is_at_hand(version):
            return version
        step(f"downloading the source of MariaDB {version} (about 115 MB)")
        fresh = emptied(VAR / "source.new")
        why = archive.download_source("mariadb", version, fresh)
        if not why and archive.versions("mariadb-test"):
            (fresh / "package-version").write_text(version + "\n")
            swap(fresh, SOURCE)
            return version
        note(f"apt lists {version} but does not have it: the next older version is tried "
             f"(apt said: {' '.join(why.split())})")
    return pinned_source(archive, offered)


def is_at_hand(version: str) -> bool:
    marker = SOURCE / "package-version"
    return marker.exists() and marker.read_text().strip() == version


def pinned_source(archive: apt.Archive, offered: list) -> str:
    """Downloads the source of the version in the lock, which the archive may still have."""
    lock = Path(__file__).with_name(f"mariadb-{SERIES}.lock")
    if not lock.exists():
        raise Failure("none of these MariaDB versions has its source in the archives: "
                      + ", ".join(offered))
    version = archive.pin(lock)
    if is_at_hand(version):
        return version
    step(f"downloading the source of MariaDB {version} (about 120 MB), which {show(lock)} names")
    fresh = emptied(VAR / "source.new")
    archive.fetch_pinned(next(name for name in archive.pinned if ".orig.tar." in name),
                         "mariadb-server", fresh)
    (fresh / "package-version").write_text(version + "\n")
    swap(fresh, SOURCE)
    return version


def source_tarball() -> Path:
    found = sorted(file for suffix in ("xz", "gz", "bz2")
                   for file in SOURCE.glob(f"mariadb*.orig.tar.{suffix}"))
    if not found:
        raise Failure(f"no *.orig.tar.* in {show(SOURCE)}: delete that folder and run `make setup`")
    return found[0]


def unpack_headers(version: str) -> None:
    """Unpacks the private headers, and creates the generated one that no package has."""
    marker = HEADERS / "version"
    if marker.exists() and marker.read_text().strip() == version:
        return
    step("unpacking the server's private headers")
    fresh = emptied(VAR / "headers.new")
    with tarfile.open(source_tarball()) as archive:
        for member in archive:
            name = member.name.removeprefix("./").partition("/")[2]
            if member.isfile() and name.endswith(HEADERS_END) and name.startswith(HEADER_FOLDERS):
                place = fresh / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.extractfile(member).read())
    template = fresh / "include" / "probes_mysql_nodtrace.h.in"
    shutil.copyfile(template, template.with_suffix(""))
    (fresh / "version").write_text(version + "\n")
    swap(fresh, HEADERS)


def unpack_server(archive: apt.Archive, package_version: str) -> None:
    """Unpacks all packages under a temporary name, adds missing libraries, then renames."""
    marker = SERVER / "recipe"
    if marker.exists() and marker.read_text() == recipe() + package_version:
        return
    step(f"downloading the packages of MariaDB {package_version} (about 60 MB): "
         + " ".join(MARIADB_PACKAGES))
    others = ([name_in(archive, package) for package in OTHER_PACKAGES]
              + (C_LIBRARY if is_foreign() else []))
    note("and " + " ".join(others))
    debs = archive.folder / "debs"
    shutil.rmtree(debs, ignore_errors=True)
    archive.download([f"{p}={package_version}" for p in MARIADB_PACKAGES] + others, debs)
    fresh = emptied(VAR / "server.new")
    unpack_debs(sorted(debs.glob("*.deb")), fresh)
    complete(archive, CHECKED_PROGRAMS, fresh)
    (fresh / ABSENT).write_text(
        json.dumps(add_optional(archive, package_version, fresh), indent=1) + "\n")
    if is_foreign():
        own_loader.give(fresh, SERVER)
    (fresh / "recipe").write_text(recipe() + package_version)
    swap(fresh, SERVER)


def complete(archive: apt.Archive, programs: list, root: Path) -> None:
    """Adds the shared libraries that the programs miss; raises Failure if some cannot be had."""
    for _ in range(LIBRARY_ROUNDS_MAX):
        missing = missing_libraries(root, programs)
        if not missing:
            return
        fetch_libraries(archive, missing, root)
    raise Failure("shared libraries still missing: " + ", ".join(sorted(missing)))


def add_optional(archive: apt.Archive, package_version: str, root: Path) -> dict:
    """Unpacks the available parts of `OPTIONAL`; returns name -> reason for the others."""
    absent = {}
    for name, (of_release, others, program) in OPTIONAL.items():
        try:
            folder = archive.folder / "debs" / program.rpartition("/")[2]
            others = [name_in(archive, package) for package in others]
            archive.download([f"{package}={package_version}" for package in of_release] + others,
                             folder)
            unpack_debs(sorted(folder.glob("*.deb")), root)
            complete(archive, [program], root)
        except Failure as failure:
            (root / program).unlink(missing_ok=True)
            absent[name] = str(failure)
            note(f"going on without {name}: {failure} (to try again: delete {show(SERVER)}, then "
                 "make setup)")
    return absent


def absent() -> dict:
    """Returns the parts of `OPTIONAL` that this machine does not have, and why."""
    place = SERVER / ABSENT
    return json.loads(place.read_text()) if place.exists() else {}


def name_in(archive: apt.Archive, package: str) -> str:
    return RENAMED.get(archive.release, {}).get(package, package)


def unpack_debs(debs: list, root: Path) -> None:
    """Unpacks each package with dpkg-deb -x, which never runs the packages' scripts."""
    for deb in debs:
        subprocess.run(["dpkg-deb", "-x", str(deb), str(root)], check=True)
    for folder, newer in MOVED.items():
        place = root / folder
        if not place.exists() and place.with_name(newer).is_dir():
            place.symlink_to(newer)


def missing_libraries(root: Path, programs: list) -> set:
    """Returns the names of shared libraries that the loader cannot find for these programs."""
    missing = set()
    for program in programs:
        if not (root / program).exists():
            raise Failure(f"{program} is in none of the downloaded packages")
        if own_loader.of(root):
            missing |= own_loader.missing_libraries(root, program)
            continue
        listed = subprocess.run(["ldd", str(root / program)], env=library_environment(root),
                                text=True, capture_output=True, check=False).stdout
        missing |= set(re.findall(r"^\s*(\S+) => not found", listed, re.M))
    return missing


def fetch_libraries(archive: apt.Archive, missing: set, root: Path) -> None:
    if unknown := sorted(name for name in missing if name not in PACKAGE_OF_LIBRARY):
        raise Failure("the private server needs shared libraries this machine lacks: "
                      + ", ".join(unknown)
                      + "; install the Debian packages that contain them, then run this again")
    packages = sorted({name_in(archive, PACKAGE_OF_LIBRARY[name]) for name in missing})
    note("adding libraries: " + " ".join(packages))
    folder = archive.folder / "debs" / "libraries"
    archive.download(packages, folder)
    unpack_debs(sorted(folder.glob("*.deb")), root)


def library_environment(root: Path = SERVER) -> dict:
    """Returns the environment for programs of the private server. Programs with their own loader
    find their libraries without it, and other programs must not load these libraries."""
    kept = [] if own_loader.of(root) else own_loader.library_folders(root)
    if os.environ.get("LD_LIBRARY_PATH"):
        kept.append(os.environ["LD_LIBRARY_PATH"])
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(kept), "LC_ALL": "C.UTF-8"}


def swap(fresh: Path, place: Path) -> None:
    old = place.with_name(place.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def replace_text(place: Path, text: str) -> None:
    """Writes a small file atomically."""
    fresh = place.with_name(place.name + ".new")
    fresh.write_text(text)
    fresh.rename(place)
