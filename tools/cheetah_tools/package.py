"""`make deb`: a package with the plugin for one or several versions of a distribution's server, and
with everything to build it for other versions. `make install`: installs the plugin into an
installed server of exactly the version it was built for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import build, setup
from .paths import BUILD, PROJECT, show
from .say import Failure

NAME = "mariadb-plugin-cheetah"
PLUGIN_FOLDER = "usr/lib/mysql/plugin"
PROGRAMS = (PROJECT / "tools/migrate/cheetah-migrate", PROJECT / "tools/backup/cheetah-backup")
SHARED = PROJECT / "tools/client/cheetah_client"    # used by the programs
PACKAGING = PROJECT / "packaging"
CONFIGURATION = "etc/mysql/mariadb.conf.d/60-cheetah.cnf"
HOOK = "etc/apt/apt.conf.d/60cheetah"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
OWN = "usr/lib/cheetah"
DOCUMENTATION = f"usr/share/doc/{NAME}"
# Files and folders of the project that become documents of the package.
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "LICENSES", "docs",
             "tools/monitoring", "packaging/Containerfile")


def deb(_arguments=()) -> None:
    """Builds the package, with plugins for the private server and the versions in $SERVERS."""
    target, servers = make()
    print(f"{show(target)}, with plugins for mariadb-server-core " + ", ".join(servers))


def make() -> tuple:
    """Builds build/mariadb-plugin-cheetah_*.deb; returns its path and the server versions."""
    plugin = build.build()
    servers = [setup.ensure()["package_version"]]
    root = BUILD / "deb"
    shutil.rmtree(root, ignore_errors=True)
    place_core(root / OWN)
    place_plugin(root, servers[0], plugin)
    place(root / "usr/sbin/cheetah-shim", (PACKAGING / "cheetah-shim").read_bytes(), 0o755)
    for name in ("apt-hook", "update-hook", "container-start"):
        place(root / OWN / name, (PACKAGING / name).read_bytes(), 0o755)
    for version in os.environ.get("SERVERS", "").split():
        if version not in servers:
            build_shim(root, version)
            servers.append(version)
    place_programs(root / "usr")
    place(root / CONFIGURATION, (PACKAGING / "60-cheetah.cnf").read_bytes(), 0o644)
    place(root / HOOK, (PACKAGING / "60cheetah").read_bytes(), 0o644)
    place_documents(root / DOCUMENTATION)
    licences = [PROJECT / "LICENSE", *sorted((PROJECT / "LICENSES").glob("*"))]
    terms = "\n\n".join(file.read_text().strip() for file in licences) + "\n"
    place(root / DOCUMENTATION / "copyright", terms.encode(), 0o644)
    return pack(root, servers), servers


def pack(root: Path, servers: list) -> Path:
    architecture, version = output(["dpkg", "--print-architecture"]), build.workspace_version()
    control = (PACKAGING / "control").read_text().format(
        name=NAME, version=version, architecture=architecture, maintainer=maintainer(),
        kibibytes=sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024,
        others=", ".join(other_series(servers)), servers=" ".join(servers),
        listed=", ".join(servers))
    place(root / "DEBIAN/control", control.encode(), 0o644)
    place(root / "DEBIAN/conffiles", f"/{CONFIGURATION}\n/{HOOK}\n".encode(), 0o644)
    place(root / "DEBIAN/triggers", (PACKAGING / "triggers").read_bytes(), 0o644)
    for name in SCRIPTS:
        text = (PACKAGING / name).read_text().replace("@VERSION@", version)
        place(root / "DEBIAN" / name, text.encode(), 0o755)
    for older in BUILD.glob(f"{NAME}_*.deb"):   # packaging/Containerfile takes any package it finds
        older.unlink()
    target = BUILD / f"{NAME}_{version}_{architecture}.deb"
    done = subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)],
                          text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure("dpkg-deb: " + done.stderr.strip())
    return target


def other_series(servers: list) -> list:
    """Returns the servers of other series, with which the package conflicts. (With a dependency,
    the package's trigger and the server's package, which awaits it, would wait for each other.)"""
    series = {tuple(map(int, re.match(r"(?:\d+:)?(\d+)\.(\d+)\.", version).groups()))
              for version in servers}
    if len(series) != 1:
        raise Failure("one package is for one series of the server: " + ", ".join(servers))
    major, minor = series.pop()
    return [f"mariadb-server-core (<< 1:{major}.{minor})",
            f"mariadb-server-core (>= 1:{major}.{minor + 1}~)"]


def place_core(folder: Path) -> None:
    library = build.rust_library()
    names = sorted(set(re.findall(r" T (cheetah_\w+)$",
                                  output(["nm", "--defined-only", str(library)]), re.M)))
    folder.mkdir(parents=True)
    core = folder / "core.o"
    subprocess.run(["ld", "-r", "--gc-sections", "--strip-debug",
                    *(word for name in names for word in ("-u", name)),
                    "-o", str(core), str(library)], check=True)
    core.chmod(0o644)
    place_sources(folder / "source")


def place_sources(folder: Path) -> None:
    """Copies the shim's source, with the flags that cheetah-shim uses to compile it."""
    sources = PROJECT / "plugin"
    for file in filter(Path.is_file, sources.rglob("*")):
        place(folder / file.relative_to(sources), file.read_bytes(), 0o644)
    place(folder / "exports.map", (PACKAGING / "exports.map").read_bytes(), 0o644)
    place(folder / "flags.txt", (" ".join(build.SHIM_FLAGS) + "\n").encode(), 0o644)


def place_plugin(root: Path, version: str, plugin: Path) -> None:
    target = root / OWN / "shims" / version.partition(":")[2] / plugin.name
    place(target, plugin.read_bytes(), 0o644)
    subprocess.run(["strip", "--strip-debug", str(target)], check=True)


def build_shim(root: Path, version: str) -> None:
    """Builds the plugin for another version as users would, with the package's own program."""
    log = BUILD / "cheetah-shim.log"
    done = subprocess.run([root / "usr/sbin/cheetah-shim", "build", version], check=False,
                          env={**os.environ, "CHEETAH_ROOT": str(root), "CHEETAH_LOG": str(log)})
    if done.returncode != 0:
        raise Failure(f"no plugin for mariadb-server-core {version}; see {show(log)}")
    built = root / OWN / "built"
    place_plugin(root, version, built / version.partition(":")[2] / "ha_cheetah.so")
    shutil.rmtree(built)


def maintainer() -> str:
    """Returns the package's maintainer, who builds it, from the variables of Debian's tools."""
    name, address = os.environ.get("DEBFULLNAME", "The Cheetah authors"), os.environ.get("DEBEMAIL")
    return f"{name} <{address}>" if address else name


def install(_arguments=()) -> None:
    """Copies the plugin to the installed server's folder, if the server has the right version."""
    wanted = setup.ensure()["package_version"]
    found = installed_version()
    if found != wanted:
        raise Failure(f"the plugin is for mariadb-server-core {wanted}, installed is "
                      f"{found or 'none'}: a storage engine loads only into the very version it "
                      "was built for. Nothing was changed.")
    plugin = build.build()
    folder = Path(os.environ.get("DESTDIR", "/")) / PLUGIN_FOLDER
    target = folder / plugin.name
    fresh = folder / f".{plugin.name}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin, fresh)
        fresh.rename(target)
        root = folder.parents[3]
        place_programs(root / "usr/local")
        settings = place_settings(root)
    except PermissionError as failure:
        raise Failure(f"cannot write to {failure.filename}: run as root, "
                      "sudo make install") from failure
    print(f"installed {target} with cheetah-migrate and cheetah-backup\n{settings}")


def place_settings(root: Path) -> str:
    """Installs the settings with which the server loads the plugin and needs the engine, if its
    option files are organized as on Debian. Returns the user's next step."""
    text = (PACKAGING / "60-cheetah.cnf").read_text()
    target = root / CONFIGURATION
    if target.exists():
        return f"{show(target)} is there already and stays; next: restart the server"
    if target.parent.is_dir():
        place(target, text.encode(), 0o644)
        return f"settings are in {show(target)}; next: restart the server"
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "next: write into the server's option file, then restart the server:\n" + "\n".join(
        f"    {line}" for line in lines)


def place_programs(prefix: Path) -> None:
    for program in PROGRAMS:
        place(prefix / "bin" / program.name, program.read_bytes(), 0o755)
    for parts in (SHARED, *(program.with_name(program.name.replace("-", "_"))
                            for program in PROGRAMS)):
        for file in sorted(parts.glob("*.py")):
            place(prefix / "share/cheetah" / parts.name / file.name, file.read_bytes(), 0o644)


def installed_version() -> str:
    """Returns the version of the installed distribution package, or ""."""
    words = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "mariadb-server-core"]
    found = subprocess.run(words, text=True, capture_output=True, check=False).stdout.split()
    return found[1] if len(found) == 2 and found[0] == "installed" else ""


def documents() -> list:
    tops = [PROJECT / name for name in DOCUMENTS]
    return sorted(file.relative_to(PROJECT) for top in tops for file in (top, *top.rglob("*"))
                  if file.is_file())


def place_documents(folder: Path) -> None:
    """Copies the documents in their folders; links to other files become plain text."""
    names = documents()
    for name in names:
        content = (PROJECT / name).read_bytes()
        if name.suffix == ".md":
            content = without_links_out(content.decode(), name, names).encode()
        place(folder / name, content, 0o644)


def without_links_out(text: str, name: Path, names: list) -> str:
    """Returns a document's text in which only links to documents of the package remain."""
    def link_or_words(link: re.Match) -> str:
        words, target = link.groups()
        file = target.partition("#")[0]
        path = Path(os.path.normpath(name.parent / file))
        if not file or re.match(r"[a-z]+:", file) or path in names:
            return link.group()
        return words if words == str(path) else f"{words} ({path} in the source)"
    return re.sub(r"\[([^\[\]]*)\]\(([^()\s]+)\)", link_or_words, text)


def place(target: Path, content: bytes, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def output(words: list) -> str:
    return subprocess.run(words, text=True, capture_output=True, check=True).stdout.strip()
