"""Build `build/ha_cheetah.so`: Rust library and C++ shim, linked for the server's exact version.

Builds are incremental: cargo handles the Rust part, dependency files (-MMD) the C++ part."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import setup
from .paths import BUILD, HEADERS, PLUGIN, PROJECT, SERIES, SERVER, TARGET, show
from .say import Failure, step


def workspace_version() -> str:
    """Returns the version in Cargo.toml, which crates, plugin and package share."""
    found = re.search(r'^version = "(\d+\.\d+\.\d+)"$', (PROJECT / "Cargo.toml").read_text(), re.M)
    if not found:
        raise Failure("Cargo.toml: [workspace.package] has no version of three numbers")
    return found.group(1)


# The flags that users' machines also build with (packaging/cheetah-shim).
SHIM_FLAGS = [*(PROJECT / "packaging/flags.txt").read_text().split(),
              *(f"-DCHEETAH_{part}={number}" for part, number in
                zip(("MAJOR", "MINOR", "PATCH"), workspace_version().split(".")))]
FLAGS = [*SHIM_FLAGS, "-g1", "-Wall", "-Wextra", "-Wno-unused-parameter"]
# The size of a class that plugins share with the server, per release; wrong flags change it.
SIZE_OF_THD = {"10.11.18": 27312, "11.8.6": 27552}
# Without its `*_service` symbols the plugin loads and crashes at the first service call.
EXPORTS = PROJECT / "packaging/exports.map"
LAYOUT_CHECK = (
    "#define MYSQL_SERVER 1\n"
    "#include <my_global.h>\n"
    "#include <sql_class.h>\n"
    "template <unsigned long measured> struct Size;\n"
    "#ifdef EXPECTED\n"
    "static_assert(sizeof(THD) == EXPECTED, "
    "\"sizeof(THD) differs from the server's: the plugin would corrupt memory\");\n"
    "#else\n"
    "Size<sizeof(THD)> tell;\n"
    "#endif\n")


def main(_arguments=()) -> None:
    plugin = build()
    print(f"built {show(plugin)} ({plugin.stat().st_size / 1e6:.1f} MB) "
          f"for MariaDB {setup.ensure()['version']}")


def build() -> Path:
    version = setup.ensure()["version"]
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = sorted((PROJECT / "plugin").rglob("*.cc"))
    if not sources:
        raise Failure("plugin/*.cc: there is no C++ source to build")
    library = rust_library()
    check_layout(version)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_unit, sources))
    link(objects, library)
    return PLUGIN


def rust_library() -> Path:
    words = ["cargo", "build", "--release", "--quiet", "-p", "cheetah-ffi"]
    library = TARGET / "release" / "libcheetah_ffi.a"
    step("the engine, optimised: a minute or two when it has changed" if library.exists() else
         "compiling the engine, optimised: a minute or two the first time")
    if subprocess.run(words, cwd=PROJECT, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
                      check=False).returncode:
        raise Failure("cargo could not build crates/cheetah-ffi (messages above)")
    return library


def include_flags() -> list:
    """Returns the include flags, private headers before the distribution's, with equal names."""
    private = [HEADERS / "include", HEADERS / "sql", HEADERS / "wsrep-lib/include",
               HEADERS / "wsrep-lib/wsrep-API/v26"]
    public = SERVER / "usr/include/mariadb/server"
    ordered = [*private, public, public / "private"]
    # -isystem keeps the order and silences warnings in foreign headers.
    return ([word for folder in ordered for word in ("-isystem", str(folder))]
            + ["-I", str(PROJECT / "plugin")])


def check_layout(version: str) -> None:
    """Rejects flags with which classes would have another layout than in the server."""
    expected = SIZE_OF_THD.get(version)
    marker, source = BUILD / "layout-checked", BUILD / "layout_check.cc"
    key = f"{version} {expected} {FLAGS}"
    if marker.exists() and marker.read_text() == key:
        return
    source.write_text(LAYOUT_CHECK)
    words = ["g++", *FLAGS, *include_flags(), "-fsyntax-only", str(source)]
    if expected:
        words.insert(1, f"-DEXPECTED={expected}")
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if expected and done.returncode != 0:
        raise Failure("layout check failed:\n" + "\n".join(done.stderr.splitlines()[:6]))
    if not expected:
        measured = re.search(r"Size<(\d+)", done.stderr)
        if not measured:
            raise Failure("layout check does not compile:\n"
                          + "\n".join(done.stderr.splitlines()[:6]))
        step(f"sizeof(THD) is {measured.group(1)} here; MariaDB {version} is not in the table of "
             "build.py, so it is unproven")
    marker.write_text(key)


def compile_unit(source: Path) -> Path:
    target = BUILD / (source.stem + ".o")
    words = ["g++", *FLAGS, *include_flags(), "-MMD", "-c", str(source), "-o", str(target)]
    command = target.with_suffix(".cmd")
    if command.exists() and command.read_text() == shlex.join(words) and not out_of_date(target):
        return target
    step(f"compiling {show(source)}")
    if subprocess.run(words, check=False).returncode != 0:
        raise Failure(f"{show(source)} does not compile (messages above)")
    command.write_text(shlex.join(words))
    return target


def out_of_date(target: Path) -> bool:
    """Returns whether a file in the dependency file is newer than the object."""
    listing = target.with_suffix(".d")
    if not target.exists() or not listing.exists():
        return True
    names = listing.read_text().replace("\\\n", " ").split(":", 1)[1].split()
    built = target.stat().st_mtime
    return any(not os.path.exists(name) or os.path.getmtime(name) > built for name in names)


def link(objects: list, library: Path) -> None:
    """Links into a new file and renames it; a server with the old file mapped keeps using it."""
    parts = [*objects, library, EXPORTS, Path(__file__)]
    if PLUGIN.exists() and all(part.stat().st_mtime <= PLUGIN.stat().st_mtime for part in parts):
        return
    step(f"linking {show(PLUGIN)}")
    fresh = PLUGIN.with_suffix(".new")
    words = link_words(objects, library, fresh)
    if subprocess.run(words, check=False).returncode != 0:
        raise Failure("linking failed (messages above)")
    fresh.rename(PLUGIN)


def link_words(objects: list, library: Path, target: Path) -> list:
    services = next(SERVER.glob("usr/lib/*/libmysqlservices.a"))
    return ["g++", "-shared", *map(str, objects), str(library), str(services),
            f"-Wl,--version-script={EXPORTS}", "-Wl,--gc-sections", "-Wl,-z,now", "-lpthread",
            "-ldl", "-lm", "-o", str(target)]


def clean(_arguments=()) -> None:
    """Deletes what was built; the downloaded server stays (to delete it, delete `var/`)."""
    shutil.rmtree(BUILD, ignore_errors=True)
    subprocess.run(["cargo", "clean", "--quiet"], cwd=PROJECT, check=False)


def git(*words) -> str:
    """Returns the output of a git command in the project; empty if git fails or is absent."""
    if not shutil.which("git"):
        return ""
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def commit_of_project() -> str:
    """Returns the checked-out commit, with a + if tracked files have changes."""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (
        "+" if git("status", "--porcelain", "--untracked-files=no") else "")


def engine_of_project() -> str:
    """Returns a short hash of the plugin's sources, equal for commits with the same ones. It ends
    with a + if the sources are not those of a commit: changed or new, or git knows nothing."""
    sources = ("Cargo.toml", "Cargo.lock", "crates", "plugin", "packaging/flags.txt",
               "packaging/exports.map")
    trees = git("rev-parse", *(f"HEAD:{source}" for source in sources))
    name = hashlib.sha256(f"{SERIES}\n{trees}".encode()).hexdigest()[:10]
    return name + ("+" if not trees or git("status", "--porcelain", "--", *sources) else "")
