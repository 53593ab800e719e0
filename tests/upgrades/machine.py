"""A machine for testing upgrades: a small Debian in a folder, with the server installed from
packages. Each scenario runs in a fresh copy of the machine, in its own namespaces, without a
network. Its package archive is a folder."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from email.utils import formatdate
from pathlib import Path

from cheetah_tools import apt, build, package, setup
from cheetah_tools.paths import COMMON, SOURCE
from cheetah_tools.say import Failure, step
from checksum import crc32c

PLACE = COMMON / "upgrades"
BASE = PLACE / "base"          # the machine with the server but without the engine
ARCHIVE = PLACE / "archive"    # a folder of packages for each server version
RELEASE = "bookworm"
# Packages with the server's version, installed in the machine and provided by the archive.
OF_SERVER = ["mariadb-server", "mariadb-server-core", "mariadb-client", "mariadb-client-core",
             "mariadb-common", "libmariadb3", "mariadb-backup"]
HEADERS = ["libmariadb-dev", "libmariadbd-dev"]
OTHERS = ["g++", "procps", "python3"]
# In the archive with its dependencies, but not installed in the machine.
UNATTENDED = "unattended-upgrades"
# The fields of Debian's release file that the settings of unattended-upgrades check.
RELEASE_FILE = ("Origin: Debian\nLabel: Debian-Security\nSuite: stable-security\n"
                f"Codename: {RELEASE}-security\n")
# The server needs no network, its files are in an overlay, and tests read its log.
SETTINGS = ("[mariadbd]\nskip_networking\ninnodb_flush_method = fsync\ninnodb_fast_shutdown = 1\n"
            "log_error = /var/lib/mysql/error.log\n")
SETTINGS += "[mariadbd-safe]\nlog_error = /var/lib/mysql/error.log\n"
LATER = {"later": ".1", "rebuilt": ".2", "series": ""}
NEXT_SERIES = "1:11.8.0-1"
OWN = "/srv/archive"           # an archive inside one machine
LINK = "/usr/lib/mysql/plugin/ha_cheetah.so"
SECONDS = 1800
# Offsets in the engine's file CONTROL (docs/developers/format.md).
COPY_BYTES, READ_FEATURES_AT = 4096, 32
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root",
               "DEBIAN_FRONTEND": "noninteractive"}


def why_not() -> str:
    """Returns why a machine cannot run here, or an empty string."""
    if os.geteuid() != 0:
        return "it takes root"
    for tool in ("unshare", "nsenter", "chroot", "mount", "dpkg-deb"):
        if not shutil.which(tool):
            return f"{tool} is missing"
    if setup.SERIES != "10.11" or apt.machine_release() != RELEASE:
        return f"it is for series 10.11, on Debian {RELEASE}"
    if subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"],
                      check=False).returncode:
        return "unshare is not allowed"
    return ""


def versions() -> tuple:
    """Returns the server version for which the plugin was built here, and a version whose source
    the archives lack. The latter is empty if no other version is available."""
    ours = setup.ensure()["package_version"]
    offered = apt.Archive().versions("mariadb-server")
    return ours, next((version for version in offered if version != ours), "")


def ensure() -> None:
    """Builds the missing machine and archive. Raises Failure if something is missing."""
    ours, other = versions()
    marker = PLACE / "made"
    wanted = repr((ours, other, OF_SERVER, HEADERS, OTHERS, SETTINGS, UNATTENDED, RELEASE_FILE))
    # Retry packages that could not be fetched.
    is_whole = not (ARCHIVE / "unattended/missing").exists()
    if is_whole and marker.exists() and marker.read_text() == wanted:
        return
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    source = apt.Archive()
    source.update()
    make_archive(source, ours, other)
    make_base(source, ours)
    marker.write_text(wanted)


def make_archive(source: apt.Archive, ours: str, other: str) -> None:
    """Fetches the packages of `ours` with their source, and those of `other`, whose source is only
    named. Builds the same with later versions, of which `rebuilt` also has a source."""
    step("fetching packages for tests of upgrades (about 60 MB)")
    folder = ARCHIVE / "now"
    source.download([f"{name}={ours}" for name in OF_SERVER + HEADERS], folder)
    for file in folder.glob("*.deb"):
        for name in LATER:
            change_version(file, ARCHIVE / name, ours, later(ours, name))
    for name in ("now", "rebuilt"):
        write_source(ARCHIVE / name, ours if name == "now" else later(ours, name))
    if other:
        source.download([f"{name}={other}" for name in OF_SERVER + HEADERS], ARCHIVE / "other")
        write_source(ARCHIVE / "other", other, with_files=False)
    for folder in ARCHIVE.iterdir():
        write_index(folder)


def later(version: str, name: str) -> str:
    """Returns the version of the packages in the folder `name`."""
    return NEXT_SERIES if name == "series" else version + LATER[name]


def change_version(file: Path, folder: Path, old: str, new: str) -> Path:
    """Repacks a package with another version, also in its dependencies."""
    root = unpack(file)
    control = root / "DEBIAN/control"
    control.write_text(control.read_text().replace(old, new))
    return pack(root, folder / file.name.replace(old.partition(":")[2], new.partition(":")[2]))


def write_index(folder: Path) -> None:
    stanzas = []
    for file in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "-f", str(file)], text=True, capture_output=True,
                                 check=True).stdout
        stanzas.append(f"{control.strip()}\nFilename: ./{file.name}\nSize: {file.stat().st_size}\n"
                       f"SHA256: {sha256(file)}\n")
    (folder / "Packages").write_text("\n".join(stanzas))
    (folder / "Sources").touch()
    sums = [f" {sha256(folder / name)} {(folder / name).stat().st_size} {name}\n"
            for name in ("Packages", "Sources")]
    (folder / "Release").write_text(f"{RELEASE_FILE}Date: {formatdate(usegmt=True)}\nSHA256:\n"
                                    + "".join(sums))


def write_source(folder: Path, version: str, with_files: bool = True) -> None:
    """Adds the source of `ours` as the source of another version, and its index."""
    ours = (SOURCE / "package-version").read_text().strip().partition(":")[2]
    lines = []
    for file in sorted(SOURCE.glob("mariadb_*")):
        target = folder / file.name.replace(ours, version.partition(":")[2])
        if with_files:
            os.link(file, target)
        lines.append(f" {sha256(file)} {file.stat().st_size} {target.name}")
    (folder / "Sources").write_text(
        f"Package: mariadb\nBinary: mariadb-server\nVersion: {version}\nFormat: 3.0 (quilt)\n"
        "Directory: .\nChecksums-Sha256:\n" + "\n".join(lines) + "\n")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make_base(source: apt.Archive, ours: str) -> None:
    step("making a small Debian for tests of upgrades (some minutes)")
    tools = PLACE / "tools"
    setup.unpack_debs(source.download(["debootstrap"], tools / "debs"), tools)
    text = "\n".join(file.read_text() for file in sorted(source.sources.iterdir()))
    mirror = re.search(r"^(?:URIs: |deb(?: \[.*?\])? )(\S+)", text, re.M).group(1)
    fresh = PLACE / "base.new"
    run(["sh", tools / "usr/sbin/debootstrap", "--variant=minbase", RELEASE, fresh, mirror],
        environment={"DEBOOTSTRAP_DIR": str(tools / "usr/share/debootstrap")})
    (fresh / "etc/apt/sources.list").unlink()
    for file in source.sources.iterdir():
        shutil.copy(file, fresh / "etc/apt/sources.list.d")
    shutil.copy("/etc/resolv.conf", fresh / "etc/resolv.conf")
    # Prevents starts of services.
    (fresh / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (fresh / "usr/sbin/policy-rc.d").chmod(0o755)
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
              'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', fresh]
    run([*inside, "apt-get", "update", "-q"])
    run([*inside, "apt-get", "install", "-y", "-q", "--no-install-recommends",
         *(f"{name}={ours}" for name in OF_SERVER), *OTHERS])
    fetch_unattended(fresh, inside)
    (fresh / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 0\n")   # allows starts of services
    # Would send the log to syslog.
    (fresh / "etc/mysql/mariadb.conf.d/50-mysqld_safe.cnf").unlink()
    (fresh / "etc/mysql/mariadb.conf.d/90-tests.cnf").write_text(SETTINGS)
    # Limits the wait for a failing start.
    (fresh / "etc/default/mariadb").write_text("MYSQLD_STARTUP_TIMEOUT=10\n")
    shutil.rmtree(fresh / "var/cache/apt/archives")
    (fresh / "var/cache/apt/archives/partial").mkdir(parents=True)
    for file in (fresh / "etc/apt/sources.list.d").iterdir():
        file.unlink()
    fresh.rename(BASE)


def fetch_unattended(fresh: Path, inside: list) -> None:
    """Adds unattended-upgrades and its dependencies to the archive, or why there are none."""
    folder, cache = ARCHIVE / "unattended", fresh / "var/cache/apt/archives"
    folder.mkdir()
    run([*inside, "apt-get", "clean"])
    try:
        run([*inside, "apt-get", "install", "-y", "-q", "--no-install-recommends",
             "--download-only", UNATTENDED])
    except Failure as failure:
        (folder / "missing").write_text(str(failure))
    for file in cache.glob("*.deb"):
        shutil.move(file, folder)
    write_index(folder)


def run(words: list, environment: dict = None) -> str:
    """Returns a command's output. Raises Failure with the end of the output if it fails."""
    done = subprocess.run(list(map(str, words)), env={**ENVIRONMENT, **(environment or {})},
                          text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Failure(f"{words[0]}: " + apt.last_lines(done.stdout, 12))
    return done.stdout


class Machine:
    """A running copy. The scripts of the server's packages start and stop the server."""

    def __init__(self, folder: Path):
        self.folder, self.root = folder, folder / "root"
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        script = ('mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" '
                  '"$2/root"; cd "$2/root"; mount -t proc proc proc; mount -t tmpfs tmpfs run; '
                  'mount -t tmpfs tmpfs dev/shm; mount -t devpts devpts dev/pts; '
                  'mkdir -p archive; mount --bind "$3" archive; mkdir run/lock; '
                  'exec chroot . sh -c "echo ready; while :; do sleep 1; done"')
        self.outer = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-ec", script,
             "sh", str(BASE), str(folder), str(ARCHIVE)],
            stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        if self.outer.stdout.readline() != "ready\n":
            self.end()
            raise Failure("the machine cannot be started: is overlayfs there?")
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        self.first = children.read_text().split()[0]
        assert not self.inside("/").samefile("/"), "commands would run on the machine of the tests"

    def end(self) -> None:
        self.outer.kill()
        self.outer.wait()
        self.outer.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command: str, fails: bool = False) -> str:
        """Runs a shell command, asserts that it succeeds (or fails), and returns its output."""
        words = ["nsenter", "--target", self.first, "--mount", "--pid", "--net", "--root", "--wd",
                 "sh", "-c", command]
        log = self.folder / "output"
        with log.open("w") as file:    # a pipe would be held open by a started server
            done = subprocess.run(words, env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT, timeout=SECONDS,
                                  check=False)
        text = log.read_text(errors="replace")
        assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{text}"
        return text

    def offer(self, *names: str) -> str:
        """Configures apt to use only these folders of the archive. Returns apt's output."""
        folders = [f"/archive/{name}" for name in names] + [OWN] * self.inside(OWN).exists()
        self.write("/etc/apt/sources.list",
                   "".join(f"deb [trusted=yes] file:{folder} ./\n" for folder in folders))
        return self.run("apt-get update")

    def add(self, *files: Path) -> None:
        folder = self.inside(OWN)
        folder.mkdir(exist_ok=True)
        for file in files:
            name, version = fields(file, "Package", "Version")
            shutil.copy(file, folder / f"{name}_{version}.deb")
        write_index(folder)

    def inside(self, path: str) -> Path:
        """Returns the host's path of a file in this machine."""
        return Path(f"/proc/{self.first}/root") / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        self.inside(path).write_text(text)

    def install(self, file: Path, options: str = "", fails: bool = False) -> str:
        shutil.copy(file, self.inside("/root"))
        return self.apt(f"install --no-install-recommends {options} /root/{file.name}", fails)

    def apt(self, words: str, fails: bool = False) -> str:
        return self.run(f"apt-get -y -q --allow-downgrades {words}", fails)

    def sql(self, text: str, fails: bool = False) -> str:
        return self.run(f'mariadb --skip-column-names -e "{text}"', fails).strip()

    def server_runs(self) -> bool:
        """Returns whether the server answers now or within a few seconds."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if "alive" in self.run("mariadb-admin ping 2>&1; true"):
                return True
            if "mariadbd" not in self.run("ps -A -o comm="):
                return False
            time.sleep(0.2)
        return False

    def version(self, name: str) -> str:
        """Returns the installed version of a package, or an empty string."""
        found = self.run(f"dpkg-query -W -f '${{db:Status-Status}} ${{Version}}' {name} "
                         "2>/dev/null; true").split()
        return found[1] if found and found[0] == "installed" else ""

    def plugin(self) -> str:
        return self.run(f"readlink {LINK}; true").strip()

    def watch_plugin(self) -> None:
        """Starts a process that checks continuously whether the plugin exists."""
        self.write("/root/watch.py", "import os, time\nwhile not os.path.exists('/root/end'):\n"
                   f"    if not os.path.exists('{LINK}'):\n"
                   "        open('/root/missing', 'a').write(os.popen('ps -A -o args').read())\n"
                   "    time.sleep(0.0005)\nopen('/root/ended', 'w')\n")
        self.run("rm -f /root/end /root/ended; "
                 "setsid python3 /root/watch.py > /root/watch.log 2>&1 &")

    def assert_plugin_was_there(self) -> None:
        """Asserts that the plugin existed at each check since `watch_plugin`."""
        self.run("touch /root/end")
        self.wait_for("test -e /root/ended")
        assert not self.run("cat /root/watch.log; cat /root/missing 2>/dev/null; true")

    def log(self) -> str:
        return self.run("tail -n 40 /var/lib/mysql/error.log; true")

    def wait_for(self, command: str) -> None:
        self.run(f"for i in $(seq 100); do {command} > /dev/null 2>&1 && exit 0; sleep 0.3; done; "
                 "exit 1")


def changed(file: Path, target: Path, servers: list, version: str = "", also: str = "",
            breaks: str = "") -> Path:
    """Repacks the engine's package with its plugin for these server versions. `version` is the
    package's new version, `also` another file, and `breaks` an additional package in Breaks."""
    root = unpack(file)
    shims = root / package.OWN / "shims"
    plugin = next(shims.glob("*/*")).read_bytes()
    shutil.rmtree(shims)
    for server in servers:
        package.place(shims / server.partition(":")[2] / "ha_cheetah.so", plugin, 0o644)
    control = (root / "DEBIAN/control").read_text()
    control = re.sub(r"^(Cheetah-Servers: ).*", r"\g<1>" + " ".join(servers), control, flags=re.M)
    if version:
        control = re.sub(r"^(Version: ).*", r"\g<1>" + version, control, flags=re.M)
        script = root / "DEBIAN/preinst"
        script.write_text(script.read_text().replace(build.workspace_version(), version))
        core = root / package.OWN / "core.o"
        core.write_bytes(core.read_bytes() + b" ")   # a different engine that works the same
    if also:
        package.place(root / also, b"", 0o755)
    if breaks:
        control = re.sub(r"^(Breaks: .*)", rf"\g<1>, {breaks}", control, flags=re.M)
    (root / "DEBIAN/control").write_text(control)
    return pack(root, target)


def plain(folder: Path, name: str, version: str, depends: str = "") -> Path:
    root = Path(tempfile.mkdtemp(dir=PLACE))
    root.chmod(0o755)
    needs = f"Depends: {depends}\n" if depends else ""
    control = (f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@x>\n"
               f"{needs}Description: {name}\n")
    package.place(root / "DEBIAN/control", control.encode(), 0o644)
    return pack(root, folder / f"{name}_{version}.deb")


def fields(file: Path, *names: str) -> list:
    return [package.output(["dpkg-deb", "-f", str(file), name]) for name in names]


def unpack(file: Path) -> Path:
    root = Path(tempfile.mkdtemp(dir=PLACE))
    root.chmod(0o755)
    subprocess.run(["dpkg-deb", "-R", str(file), str(root)], check=True)
    return root


def pack(root: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "-b", str(root), str(target)], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return target


def with_unknown_feature(control: bytes) -> bytes:
    """Sets an unknown feature in both control blocks, as a later engine could."""
    copies = []
    for at in (0, COPY_BYTES):
        block = bytearray(control[at:at + COPY_BYTES])
        block[READ_FEATURES_AT + 7] = 0x80
        block[-4:] = crc32c(block[:-4]).to_bytes(4, "little")
        copies.append(bytes(block))
    return b"".join(copies) + control[2 * COPY_BYTES:]
