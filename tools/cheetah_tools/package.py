"""`make deb` and `make install`: the plugin for a distribution's server of exactly the version it
was built for."""

import os
import shutil
import subprocess
from pathlib import Path

from . import build, setup
from .paths import BUILD, PROJECT, show
from .say import Failure

NAME = "mariadb-plugin-cheetah"
PLUGIN_FOLDER = "usr/lib/mysql/plugin"
PROGRAMS = (PROJECT / "tools/migrate/cheetah-migrate", PROJECT / "tools/backup/cheetah-backup")
CONFIGURATION = """# Cheetah storage engine. The server loads plugins of stable maturity only, unless told otherwise.
#
# FORCE: without the engine the server does not start. It would run without the tables. After a crash
# it would also complete the recovery of the binary log without the engine, and the next start with
# the engine would be refused. After removing the package, remove this file too (apt purge does).
#
# Give settings of the engine the prefix loose_, as in loose_cheetah_buffer_pool_size = 4G. Then it
# is FORCE alone that decides whether the server starts without the engine.
[mariadbd]
plugin_maturity = experimental
plugin_load_add = ha_cheetah.so
cheetah = FORCE
"""
CONTROL = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Depends: libc6, libstdc++6, mariadb-server-core (= {server}), mariadb-client-core, python3
Recommends: mariadb-backup
Section: database
Priority: optional
Description: Cheetah storage engine for MariaDB
 Durable, crash-safe, compressed tables: ENGINE=CHEETAH. The program
 cheetah-migrate brings tables and their foreign keys from InnoDB, and back;
 cheetah-backup backs a running server up, with all its engines.
 A storage engine loads only into the very server version it was built for,
 which is {server}.
"""


def deb(_arguments=()) -> None:
    """Build build/mariadb-plugin-cheetah_*.deb."""
    plugin = build.build()
    server = setup.ensure()["package_version"]
    architecture = output(["dpkg", "--print-architecture"])
    version = workspace_version()
    root = BUILD / "deb"
    shutil.rmtree(root, ignore_errors=True)
    place(root / PLUGIN_FOLDER / plugin.name, plugin.read_bytes(), 0o644)
    subprocess.run(["strip", "--strip-debug", str(root / PLUGIN_FOLDER / plugin.name)], check=True)
    place_programs(root / "usr")
    place(root / "etc/mysql/mariadb.conf.d/60-cheetah.cnf", CONFIGURATION.encode(), 0o644)
    for file in documents():
        place(root / "usr/share/doc" / NAME / file.name, file.read_bytes(), 0o644)
    place(root / "usr/share/doc" / NAME / "copyright", copyright_text().encode(), 0o644)
    control = CONTROL.format(name=NAME, version=version, architecture=architecture, maintainer=maintainer(), server=server)
    place(root / "DEBIAN/control", control.encode(), 0o644)
    place(root / "DEBIAN/conffiles", b"/etc/mysql/mariadb.conf.d/60-cheetah.cnf\n", 0o644)
    target = BUILD / f"{NAME}_{version}_{architecture}.deb"
    done = subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure("dpkg-deb: " + done.stderr.strip())
    print(f"{show(target)}, for mariadb-server-core {server} only")


def copyright_text() -> str:
    """What Debian wants under this name: who may do what, with the licences in full."""
    return "\n\n".join((PROJECT / name).read_text().strip() for name in ["LICENSE", *sorted(f"LICENSES/{f.name}" for f in (PROJECT / "LICENSES").glob("*"))]) + "\n"


def maintainer() -> str:
    """Who answers for the package: whoever builds it, as Debian's tools know from variables."""
    name, address = os.environ.get("DEBFULLNAME", "The Cheetah authors"), os.environ.get("DEBEMAIL")
    return f"{name} <{address}>" if address else name


def install(_arguments=()) -> None:
    """Copy the plugin to the installed server's folder, if that is of the right version."""
    wanted = setup.ensure()["package_version"]
    found = installed_version()
    if found != wanted:
        raise Failure(f"the plugin is for mariadb-server-core {wanted}, installed is {found or 'none'}: a storage engine "
                      "loads only into the very version it was built for. Nothing was changed.")
    plugin = build.build()
    folder = Path(os.environ.get("DESTDIR", "/")) / PLUGIN_FOLDER
    target = folder / plugin.name
    fresh = folder / f".{plugin.name}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin, fresh)
        fresh.rename(target)
        place_programs(folder.parents[3] / "usr/local")
    except PermissionError as failure:
        raise Failure(f"cannot write to {failure.filename}: run as root, sudo make install") from failure
    print(f"installed {target} with cheetah-migrate and cheetah-backup\n"
          "next, in the server: INSTALL SONAME 'ha_cheetah';  "
          "(with plugin_maturity=experimental in its settings)")


def place_programs(prefix: Path) -> None:
    """Put the programs into bin, and what they are made of into share."""
    for program in PROGRAMS:
        place(prefix / "bin" / program.name, program.read_bytes(), 0o755)
        parts = program.with_name(program.name.replace("-", "_"))
        for file in sorted(parts.glob("*.py")):
            place(prefix / "share/cheetah" / parts.name / file.name, file.read_bytes(), 0o644)


def installed_version() -> str:
    """The distribution package's version on this machine, or nothing."""
    words = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "mariadb-server-core"]
    found = subprocess.run(words, text=True, capture_output=True, check=False).stdout.split()
    return found[1] if len(found) == 2 and found[0] == "installed" else ""


def documents() -> list:
    """What belongs beside the package."""
    licences = (f"LICENSES/{file.name}" for file in (PROJECT / "LICENSES").glob("*"))
    names = ["README.md", "CHANGELOG.md", "docs/migrate.md", "docs/backup.md", "LICENSE", *licences]
    return [PROJECT / name for name in names if (PROJECT / name).is_file()]


def workspace_version() -> str:
    """The version in Cargo.toml."""
    for line in (PROJECT / "Cargo.toml").read_text().splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise Failure("Cargo.toml: no version")


def place(target: Path, content: bytes, mode: int) -> None:
    """Write a file of the package."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def output(words: list) -> str:
    """What a command prints."""
    return subprocess.run(words, text=True, capture_output=True, check=True).stdout.strip()
