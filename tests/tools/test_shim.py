"""Tests what the package does when the server's version changes: `cheetah-shim` and the apt hook,
on a made-up root folder. The tests with real packages are in tests/upgrades."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cheetah_tools import build, package

PACKAGING = package.PACKAGING
OLD, NEW = "1:10.11.18-0+deb12u1", "1:10.11.19-0+deb12u1"
CORE = "mariadb-server-core"
CONFIGURE, REMOVE = "**CONFIGURE**", "**REMOVE**"
# Replacements for apt-get and g++ that create the expected files or fail.
APT_GET = ("""#!/bin/sh
[ ! -e {root}/offline ] || exit 1
case "$*" in
  *" download "*)
    mkdir -p p/DEBIAN p/usr/lib/x p/usr/include/mariadb/server
"""
           "    printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: x\\n"
           "Description: x\\n' > p/DEBIAN/control"
           """
    : > p/usr/lib/x/libmysqlservices.a
    dpkg-deb -b p p.deb ;;
  *" source "*)
    mkdir -p m/include m/sql m/wsrep-lib/include m/wsrep-lib/wsrep-API/v26
    : > m/include/probes_mysql_nodtrace.h.in
    tar -czf mariadb_1.orig.tar.gz m ;;
esac
""")
GXX = """#!/bin/sh
for file; do [ "$last" != -o ] || out=$file; last=$file; done
echo "$*" > "$out"
"""


class Root:
    def __init__(self, folder: Path):
        self.folder, self.programs = folder, folder / "programs"
        self.write("usr/lib/cheetah/core.o", "the engine")
        self.write("usr/lib/cheetah/source/flags.txt", "-O2\n")
        self.write("usr/lib/cheetah/source/plugin.cc", "")
        self.write("etc/apt/sources.list", "deb http://archive/debian bookworm main\n")
        self.program("usr/sbin/cheetah-shim", (PACKAGING / "cheetah-shim").read_text())
        self.program("programs/apt-get", APT_GET.replace("{root}", str(folder)))
        self.program("programs/g++", GXX)
        self.server(OLD)
        self.shim("shims", OLD)

    def write(self, name: str, text: str) -> Path:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def program(self, name: str, text: str) -> None:
        self.write(name, text).chmod(0o755)

    def server(self, version: str, status: str = "installed") -> None:
        """Makes dpkg report that this version of the server's package is installed."""
        self.write("var/lib/dpkg/status",
                   f"Package: {CORE}\nStatus: install ok {status}\nArchitecture: all\n"
                   f"Maintainer: x\nVersion: {version}\nDescription: x\n\n" if version else "")

    def shim(self, kind: str, version: str) -> None:
        self.write(f"usr/lib/cheetah/{kind}/{version[2:]}/ha_cheetah.so", f"for {version}")

    def offer(self, installed: str, candidate: str) -> None:
        lines = f"{CORE}:\\n  Installed: {installed}\\n  Candidate: {candidate}\\n"
        self.program("programs/apt-cache", f"#!/bin/sh\nprintf '{lines}'\n")

    def built(self, version: str) -> None:
        self.shim("built", version)
        with (self.folder / "usr/lib/cheetah/core.o").open() as core:
            said = subprocess.run(["cksum"], stdin=core, text=True, capture_output=True, check=True)
        self.write(f"usr/lib/cheetah/built/{version[2:]}/core", said.stdout)

    def run(self, *words: str, given: str = "", builds: str = "") -> subprocess.CompletedProcess:
        hooks = {"hook": PACKAGING / "apt-hook", "update": PACKAGING / "update-hook"}
        program = hooks.get(words[0], self.folder / "usr/sbin/cheetah-shim")
        environment = {"PATH": f"{self.programs}:{os.environ['PATH']}",
                       "CHEETAH_ROOT": str(self.folder),
                       "CHEETAH_SOURCES": str(self.folder / "etc/apt"), "TMPDIR": str(self.folder),
                       "CHEETAH_BUILDS": builds}
        rest = [] if words[0] in hooks else words
        return subprocess.run([program, *rest], env=environment, input=given, text=True,
                              capture_output=True, check=False)

    def hook(self, *lines: str, options: tuple = ()) -> subprocess.CompletedProcess:
        return self.run("hook", given="\n".join(["VERSION 3", "APT::Architecture=amd64", *options,
                                                 "", *lines, ""]))

    def link(self) -> str:
        place = self.folder / "usr/lib/mysql/plugin/ha_cheetah.so"
        return os.readlink(place) if place.is_symlink() else ""


@pytest.fixture
def root(tmp_path) -> Root:
    return Root(tmp_path / "root")


def change(name: str, old: str, new: str, action: str) -> str:
    """Returns a line of apt's hook protocol, version 3."""
    return f"{name} {old} amd64 none {'<' if new != '-' else '>'} {new} amd64 none {action}"


def engine_package(root: Root, servers: str) -> str:
    """Builds a package of the engine; returns apt's line for its upgrade."""
    root.write("engine/DEBIAN/control",
               f"Package: {package.NAME}\nVersion: 2\nArchitecture: all\nMaintainer: x\n"
               f"Cheetah-Servers: {servers}\nDescription: x\n")
    subprocess.run(["dpkg-deb", "-b", root.folder / "engine", root.folder / "engine.deb"],
                   check=True, capture_output=True)
    return change(package.NAME, "1", "2", str(root.folder / "engine.deb"))


def test_the_plugin_of_the_package_is_taken(root):
    assert root.run("fit").returncode == 0
    assert root.link() == "/usr/lib/cheetah/shims/10.11.18-0+deb12u1/ha_cheetah.so"
    root.server(NEW, "half-configured")
    root.shim("shims", NEW)
    assert root.run("fit").returncode == 0
    assert root.link() == "/usr/lib/cheetah/shims/10.11.19-0+deb12u1/ha_cheetah.so"
    assert root.run("list").stdout.split() == [OLD[2:], NEW[2:]]


def test_one_is_built_for_an_unknown_version_and_known_after_that(root):
    root.server(NEW)
    assert root.run("has", NEW).returncode == 1
    assert root.run("fit").returncode == 0
    assert root.link() == "/usr/lib/cheetah/built/10.11.19-0+deb12u1/ha_cheetah.so"
    built = root.folder / root.link()[1:]
    assert "core.o" in built.read_text() and "libmysqlservices.a" in built.read_text()
    assert root.run("has", NEW).returncode == 0
    (root.folder / "offline").touch()
    assert root.run("fit").returncode == 0
    assert not list(root.folder.glob("cheetah-shim.*")), "it leaves nothing behind"


def test_without_a_plugin_the_place_is_empty_and_the_reason_is_told(root):
    root.run("fit")
    root.server(NEW)
    (root.folder / "offline").touch()
    done = root.run("fit")
    assert done.returncode == 1 and root.link() == ""
    assert f"the archives do not have libmariadbd-dev and libmariadb-dev {NEW}" in done.stderr
    assert f"there is no plugin for {CORE} {NEW}" in done.stderr


def test_without_a_compiler_the_reason_names_it(root):
    root.server(NEW)
    for tool in ("tar", "gzip", "dpkg-deb", "sed", "cat", "sh", "dpkg-query", "cksum", "mktemp",
                 "rm", "tail", "mkdir", "dirname"):
        (root.programs / tool).symlink_to(shutil.which(tool))
    (root.programs / "g++").unlink()
    environment = {"PATH": str(root.programs), "CHEETAH_ROOT": str(root.folder)}
    done = subprocess.run([root.folder / "usr/sbin/cheetah-shim", "fit"], env=environment,
                          text=True, capture_output=True, check=False)
    assert done.returncode == 1 and "g++ is missing" in done.stderr


def test_a_plugin_that_was_built_goes_with_the_engine(root):
    root.server(NEW)
    root.run("fit")
    root.write("usr/lib/cheetah/core.o", "a newer engine")
    assert root.run("has", NEW).returncode == 1
    (root.folder / "offline").touch()
    done = root.run("fit")
    assert done.returncode == 0 and "keeps the previous engine" in done.stderr
    assert root.link() == "/usr/lib/cheetah/built/10.11.19-0+deb12u1/ha_cheetah.so"
    (root.folder / "offline").unlink()
    assert root.run("fit").returncode == 0 and root.run("has", NEW).returncode == 0


def test_the_link_stays_while_a_plugin_is_built_for_a_new_engine(root):
    root.server(NEW)
    root.run("fit")
    before = root.link()
    root.write("usr/lib/cheetah/core.o", "a newer engine")
    link, plugin = root.folder / "usr/lib/mysql/plugin/ha_cheetah.so", root.folder / before[1:]
    look = f"[ -h {link} ] && [ -s {plugin} ] && echo there >> {root.folder}/seen"
    root.program("programs/g++", f"#!/bin/sh\n{look}\n" + GXX)
    assert root.run("fit").returncode == 0
    assert set((root.folder / "seen").read_text().split()) == {"there"}
    assert root.link() == before and root.run("has", NEW).returncode == 0
    assert sorted(file.name for file in plugin.parent.iterdir()) == ["core", "ha_cheetah.so"]


def test_a_plugin_that_was_built_goes_when_it_is_of_no_use_any_more(root):
    assert root.run("build", NEW).returncode == 0
    root.shim("built", OLD)    # the package has a plugin for this version
    root.shim("built", "1:10.11.17-0+deb12u1")    # another engine, a replaced server
    assert root.run("fit").returncode == 0
    assert [file.parent.name
            for file in root.folder.glob("usr/lib/cheetah/built/*/*.so")] == [NEW[2:]]


def test_what_is_made_can_be_read_by_the_server_whoever_runs_apt(offered):
    before = os.umask(0o077)
    try:
        offered.run("update")
        offered.offer(OLD, "1:10.12")
        (offered.folder / "offline").touch()
        offered.run("update")
    finally:
        os.umask(before)
    plugin = offered.folder / f"usr/lib/cheetah/built/{NEW[2:]}/ha_cheetah.so"
    settings = offered.folder / "etc/apt/apt.conf.d/61cheetah-unattended"
    assert plugin.stat().st_mode & 0o444 == plugin.parent.stat().st_mode & 0o444 == 0o444
    assert settings.stat().st_mode & 0o444 == 0o444


def test_settings_that_cannot_be_written_are_no_failure_of_apts_update(offered):
    (offered.folder / "offline").touch()
    (offered.folder / "etc/apt/apt.conf.d/.61cheetah-unattended").mkdir()
    done = offered.run("update")
    assert done.returncode == 0 and "cannot write" in done.stderr


def test_a_link_to_nothing_is_set_anew(root):
    root.run("fit")
    root.built(OLD)
    (root.folder / root.link()[1:]).unlink()
    assert root.run("take").returncode == 0 and (root.folder / root.link()[1:]).exists()


def test_take_builds_none(root):
    assert root.run("take").returncode == 0
    before = root.link()
    root.server(NEW)
    assert root.run("take").returncode == 1 and root.link() == before
    assert root.run("has", NEW).returncode == 1
    root.built(NEW)
    assert root.run("take").returncode == 0 and f"built/{NEW[2:]}" in root.link()
    root.shim("shims", NEW)
    assert (root.run("take").returncode == 0
            and f"built/{NEW[2:]}" in root.link()), "it is for this server"


def test_without_a_server_there_is_nothing_to_fit(root):
    root.run("fit")
    for version, status in (("", ""), (OLD, "config-files")):
        root.server(version, status)
        assert root.run("fit").returncode == 0 and root.link() == ""


def test_apt_may_change_the_server_if_there_is_a_plugin_or_one_can_be_built(root):
    root.shim("shims", NEW)
    assert root.hook(change(CORE, OLD, NEW, "/archive/core.deb")).returncode == 0
    (root.folder / "usr/lib/cheetah/shims/10.11.19-0+deb12u1/ha_cheetah.so").unlink()
    done = root.hook(change("libc6", "1", "2", "/archive/libc6.deb"),
                     change(CORE, OLD, NEW, "/archive/core.deb"))
    assert done.returncode == 0 and "built" in done.stderr and root.run("has", NEW).returncode == 0


def test_apt_is_refused_a_server_that_there_is_no_plugin_for(root):
    (root.folder / "offline").touch()
    done = root.hook(change(CORE, OLD, NEW, "/archive/core.deb"))
    assert done.returncode == 1
    for part in (f"{CORE} to {NEW}", "there is one for: 10.11.18-0+deb12u1",
                 "the archives do not have", "Nothing has been changed", "apt-mark hold"):
        assert part in done.stderr, part
    done = root.hook(change(CORE, OLD, NEW, "/archive/core.deb"),
                     options=("Cheetah::Upgrade=anyway",))
    assert done.returncode == 0 and "until there is a plugin" in done.stderr


def test_a_plugin_that_comes_along_counts(root):
    (root.folder / "offline").touch()
    assert root.hook(change(CORE, OLD, NEW, "/a.deb"),
                     engine_package(root, f"{OLD} {NEW}")).returncode == 0
    assert root.hook(change(CORE, OLD, NEW, "/a.deb"), engine_package(root, OLD)).returncode == 1
    root.shim("shims", NEW)   # deleted with the package that is replaced
    assert root.hook(change(CORE, OLD, NEW, "/a.deb"), engine_package(root, OLD)).returncode == 1


def test_apt_is_refused_to_remove_the_engine_in_the_same_run(root):
    root.shim("shims", NEW)
    done = root.hook(change(package.NAME, "1", "-", REMOVE),
                     change(CORE, OLD, NEW, "/archive/core.deb"))
    assert done.returncode == 1 and "remove mariadb-plugin-cheetah in the same run" in done.stderr


@pytest.mark.parametrize("lines", [
    [change("libc6", "1", "2", "/archive/libc6.deb")],
    [change(package.NAME, "1", "-", REMOVE)],
    [change(package.NAME, "1", "-", REMOVE), change(CORE, OLD, "-", REMOVE)],
    [change(CORE, NEW, NEW, CONFIGURE)],
    [change(package.NAME, "-", "2", CONFIGURE)]])
def test_what_leaves_no_server_without_its_engine_is_let_through(root, lines):
    (root.folder / "offline").touch()
    assert root.hook(*lines).returncode == 0


@pytest.fixture
def offered(root) -> Root:
    root.offer(OLD, NEW)
    root.program("programs/unattended-upgrade", "#!/bin/sh\n")
    (root.folder / "etc/apt/apt.conf.d").mkdir()
    return root


def told(root: Root) -> str:
    file = root.folder / "etc/apt/apt.conf.d/61cheetah-unattended"
    if not file.exists():
        return ""
    words = ["apt-config", "-c", str(file), "dump", "--format", "%v%n",
             "Unattended-Upgrade::Package-Blacklist"]
    return subprocess.run(words, text=True, capture_output=True, check=True).stdout.strip()


def test_unattended_upgrades_leave_a_server_alone_as_long_as_there_is_no_plugin(offered):
    (offered.folder / "offline").touch()
    done = offered.run("update")
    assert done.returncode == 0 and told(offered) == CORE + "$"
    assert "the archives do not have" in done.stderr and f"leaves {CORE} {NEW} alone" in done.stderr
    offered.shim("shims", NEW)
    done = offered.run("update")
    assert done.returncode == 0 and not done.stderr and told(offered) == ""
    assert not list((offered.folder / "etc/apt/apt.conf.d").iterdir())


def test_for_unattended_upgrades_a_plugin_is_built_and_tried_once_a_day(offered):
    (offered.folder / "offline").touch()
    offered.run("update")
    (offered.folder / "offline").unlink()
    done = offered.run("update")
    assert told(offered) and "building" not in done.stderr and "alone" in done.stderr
    yesterday = time.time() - 86400
    os.utime(offered.folder / "etc/apt/apt.conf.d/61cheetah-unattended", (yesterday, yesterday))
    done = offered.run("update")
    assert done.returncode == 0 and "building" in done.stderr and told(offered) == ""
    assert offered.run("has", NEW).returncode == 0


def test_a_later_server_is_tried_at_once(offered):
    (offered.folder / "offline").touch()
    offered.run("update")
    later = NEW.replace("deb12u1", "deb12u1.1")
    offered.offer(OLD, later)
    done = offered.run("update")
    assert (f"building a plugin for {CORE} {later}" in done.stderr
            and f"leaves {CORE} {later} alone" in done.stderr)


@pytest.mark.parametrize("reason", ["no unattended-upgrades", "no newer server", "no server",
                                    "cheetah-shim calls apt"])
def test_apts_update_is_left_alone_otherwise(offered, reason):
    (offered.folder / "offline").touch()
    if reason == "no unattended-upgrades":
        (offered.programs / "unattended-upgrade").unlink()
    elif reason == "no newer server":
        offered.offer(OLD, OLD)
    elif reason == "no server":
        offered.offer("(none)", OLD)
    done = offered.run("update", builds="yes" if "calls" in reason else "")
    assert done.returncode == 0 and not done.stderr and told(offered) == ""


def test_another_protocol_of_apt_is_refused(root):
    done = root.run("hook", given="VERSION 2\n\n")
    assert done.returncode == 1 and "VERSION 2" in done.stderr


def test_sources_of_both_forms_get_their_source_packages(root):
    """apt receives copies of one-line sources and enabled stanzas, without removable media."""
    root.write("etc/apt/sources.list",
               "deb http://a/debian x main # comment\n#deb http://no x main\n"
               "deb cdrom:[x]/ x main\n")
    root.write("etc/apt/sources.list.d/b.sources",
               "Types: deb\nURIs: http://b\nSuites: x\n\n"
               "Types: deb\nEnabled: no\nURIs: http://off\n\n"
               "Types: deb-src\nURIs: http://src\n")
    root.program("programs/apt-get",
                 "#!/bin/sh\nfor word; do case $word in "
                 "Dir::Etc::sourceparts=*) cat \"${word#*=}\"/*; esac; done\nexit 1\n")
    root.server(NEW)
    root.run("fit")
    log = (root.folder / "var/log/cheetah-shim.log").read_text()
    for part in ("deb http://a/debian x main", "deb-src http://a/debian x main",
                 "Types: deb deb-src\nURIs: http://b"):
        assert part in log, part
    for part in ("http://no", "cdrom", "http://off", "http://src"):
        assert part not in log, part


def test_users_build_with_the_flags_that_ours_are_built_with():
    flags = build.SHIM_FLAGS
    assert build.FLAGS[:len(flags)] == flags and "-DDBUG_OFF" in flags


def test_a_package_is_for_one_series():
    assert package.other_series([OLD, NEW]) == [f"{CORE} (<< 1:10.11)", f"{CORE} (>= 1:10.12~)"]
    with pytest.raises(package.Failure, match="one series"):
        package.other_series([OLD, "1:11.8.6-0+deb13u1"])


def test_the_settings_lower_nothing_for_other_plugins():
    assert "maturity" not in (PACKAGING / "60-cheetah.cnf").read_text()
