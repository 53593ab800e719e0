"""A machine to try upgrades on: a small Debian in a folder, with the server from packages. Each
scenario has a fresh copy of it, in namespaces of its own, without a network; its archive is a
folder."""

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
BASE = PLACE / "base"          # the machine, with the server, before the engine
ARCHIVE = PLACE / "archive"    # a folder of packages for each version of the server
RELEASE = "bookworm"
# Those of the server's release, in the machine and in the archive.
OF_SERVER = ["mariadb-server", "mariadb-server-core", "mariadb-client", "mariadb-client-core",
             "mariadb-common", "libmariadb3", "mariadb-backup"]
HEADERS = ["libmariadb-dev", "libmariadbd-dev"]
OTHERS = ["g++", "procps", "python3"]
UNATTENDED = "unattended-upgrades"    # in the archive, with what it needs; not in the machine
# Debian's own, as far as unattended-upgrades' settings look.
RELEASE_FILE = ("Origin: Debian\nLabel: Debian-Security\nSuite: stable-security\n"
                f"Codename: {RELEASE}-security\n")
# Nobody reaches it from outside, its files lie in an overlay, and tests read its log.
SETTINGS = ("[mariadbd]\nskip_networking\ninnodb_flush_method = fsync\ninnodb_fast_shutdown = 1\n"
            "log_error = /var/lib/mysql/error.log\n")
SETTINGS += "[mariadbd-safe]\nlog_error = /var/lib/mysql/error.log\n"
LATER = {"later": ".1", "rebuilt": ".2", "series": ""}
NEXT_SERIES = "1:11.8.0-1"
OWN = "/srv/archive"           # of one machine alone
LINK = "/usr/lib/mysql/plugin/ha_cheetah.so"
SECONDS = 1800
# Of the engine's CONTROL, see docs/developers/format.md.
COPY_BYTES, READ_FEATURES_AT = 4096, 32
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root",
               "DEBIAN_FRONTEND": "noninteractive"}


def why_not() -> str:
    """Why there can be no such machine here; empty if there can be."""
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
    """The server that the plugin here was built for, and one that the archives have no source of;
    that is empty if they offer none."""
    ours = setup.ensure()["package_version"]
    offered = apt.Archive().versions("mariadb-server")
    return ours, next((version for version in offered if version != ours), "")


def ensure() -> None:
    """Make the machine and the archive if they are not there; Failure says what is missing."""
    ours, other = versions()
    marker = PLACE / "made"
    wanted = repr((ours, other, OF_SERVER, HEADERS, OTHERS, SETTINGS, UNATTENDED, RELEASE_FILE))
    # what could not be had is tried again
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
    """Fetch the packages of `ours`, with their source, and of `other`, whose source is named only.
    Make the same packages under later versions, of which `rebuilt` has the source, too."""
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
    """The version of such packages."""
    return NEXT_SERIES if name == "series" else version + LATER[name]


def change_version(file: Path, folder: Path, old: str, new: str) -> Path:
    """The package, and what it depends on, as another version."""
    root = unpack(file)
    control = root / "DEBIAN/control"
    control.write_text(control.read_text().replace(old, new))
    return pack(root, folder / file.name.replace(old.partition(":")[2], new.partition(":")[2]))


def write_index(folder: Path) -> None:
    """What apt reads of an archive: its packages."""
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
    """The source of `ours` as that of a version, with its index."""
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
    """The checksum of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make_base(source: apt.Archive, ours: str) -> None:
    """A minimal Debian with the server."""
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
    (fresh / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")   # starts no service
    (fresh / "usr/sbin/policy-rc.d").chmod(0o755)
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
              'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', fresh]
    run([*inside, "apt-get", "update", "-q"])
    run([*inside, "apt-get", "install", "-y", "-q", "--no-install-recommends",
         *(f"{name}={ours}" for name in OF_SERVER), *OTHERS])
    fetch_unattended(fresh, inside)
    (fresh / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 0\n")   # starts them
    (fresh / "etc/mysql/mariadb.conf.d/50-mysqld_safe.cnf").unlink()   # has the log go to syslog
    (fresh / "etc/mysql/mariadb.conf.d/90-tests.cnf").write_text(SETTINGS)
    (fresh / "etc/default/mariadb").write_text("MYSQLD_STARTUP_TIMEOUT=10\n")   # of one that fails
    shutil.rmtree(fresh / "var/cache/apt/archives")
    (fresh / "var/cache/apt/archives/partial").mkdir(parents=True)
    for file in (fresh / "etc/apt/sources.list.d").iterdir():
        file.unlink()
    fresh.rename(BASE)


def fetch_unattended(fresh: Path, inside: list) -> None:
    """Put unattended-upgrades, and what it needs, into the archive; leave a reason there if it
    cannot be had."""
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
    """What a command prints; Failure with its end if it fails."""
    done = subprocess.run(list(map(str, words)), env={**ENVIRONMENT, **(environment or {})},
                          text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise Failure(f"{words[0]}: " + apt.last_lines(done.stdout, 12))
    return done.stdout


class Machine:
    """A copy of the machine that runs. Its server is started and stopped by its packages'
    scripts."""

    def __init__(self, folder: Path):
        """`folder`: for what it writes."""
        self.folder, self.root = folder, folder / "root"
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        script = ('mount -t overlay overlay '
                  '-o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"; '
                  'cd "$2/root"; mount -t proc proc proc; mount -t tmpfs tmpfs run; '
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
        """End all its processes, and delete it."""
        self.outer.kill()
        self.outer.wait()
        self.outer.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command: str, fails: bool = False) -> str:
        """What a shell command prints, whose success is asserted, or failure."""
        words = ["nsenter", "--target", self.first, "--mount", "--pid", "--net", "--root", "--wd",
                 "sh", "-c", command]
        log = self.folder / "output"
        with log.open("w") as file:    # a pipe would stay open with a server that was started
            done = subprocess.run(words, env=ENVIRONMENT, cwd="/", stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT, timeout=SECONDS,
                                  check=False)
        text = log.read_text(errors="replace")
        assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{text}"
        return text

    def offer(self, *names: str) -> str:
        """Let apt know these folders of the archive, instead of those that it knew; what it
        says."""
        lines = [f"deb [trusted=yes] file:/archive/{name} ./\n" for name in names]
        lines += [f"deb [trusted=yes] file:{folder} ./\n" for folder in [OWN]
                  if self.inside(folder).exists()]
        self.write("/etc/apt/sources.list", "".join(lines))
        return self.run("apt-get update")

    def add(self, *files: Path) -> None:
        """Put packages into an archive of this machine alone, which `offer` adds to its own."""
        folder = self.inside(OWN)
        folder.mkdir(exist_ok=True)
        for file in files:
            name, version = fields(file, "Package", "Version")
            shutil.copy(file, folder / f"{name}_{version}.deb")
        write_index(folder)

    def inside(self, path: str) -> Path:
        """The place of its file as this machine sees it."""
        return Path(f"/proc/{self.first}/root") / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        self.inside(path).write_text(text)

    def install(self, file: Path, options: str = "", fails: bool = False) -> str:
        """Install a package from a file of this machine, by apt."""
        shutil.copy(file, self.inside("/root"))
        return self.apt(f"install --no-install-recommends {options} /root/{file.name}", fails)

    def apt(self, words: str, fails: bool = False) -> str:
        """Run apt-get without questions."""
        return self.run(f"apt-get -y -q --allow-downgrades {words}", fails)

    def sql(self, text: str, fails: bool = False) -> str:
        """What the server answers."""
        return self.run(f'mariadb --skip-column-names -e "{text}"', fails).strip()

    def server_runs(self) -> bool:
        """Whether the server answers, now or within a few seconds."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if "alive" in self.run("mariadb-admin ping 2>&1; true"):
                return True
            if "mariadbd" not in self.run("ps -A -o comm="):
                return False
            time.sleep(0.2)
        return False

    def version(self, name: str) -> str:
        """The installed version of a package; empty without one."""
        found = self.run(f"dpkg-query -W -f '${{db:Status-Status}} ${{Version}}' {name} "
                         "2>/dev/null; true").split()
        return found[1] if found and found[0] == "installed" else ""

    def plugin(self) -> str:
        """Where the plugin in the server's folder is."""
        return self.run(f"readlink {LINK}; true").strip()

    def watch_plugin(self) -> None:
        """Look from now on, all the time, whether the plugin is there."""
        self.write("/root/watch.py", "import os, time\nwhile not os.path.exists('/root/end'):\n"
                   f"    if not os.path.exists('{LINK}'):\n"
                   "        open('/root/missing', 'a').write(os.popen('ps -A -o args').read())\n"
                   "    time.sleep(0.0005)\nopen('/root/ended', 'w')\n")
        self.run("rm -f /root/end /root/ended; "
                 "setsid python3 /root/watch.py > /root/watch.log 2>&1 &")

    def assert_plugin_was_there(self) -> None:
        """It was at each moment since `watch_plugin`."""
        self.run("touch /root/end")
        self.wait_for("test -e /root/ended")
        assert not self.run("cat /root/watch.log; cat /root/missing 2>/dev/null; true")

    def log(self) -> str:
        """The end of the server's log."""
        return self.run("tail -n 40 /var/lib/mysql/error.log; true")

    def wait_for(self, command: str) -> None:
        """Wait until a command succeeds."""
        self.run(f"for i in $(seq 100); do {command} > /dev/null 2>&1 && exit 0; sleep 0.3; done; "
                 "exit 1")


def changed(file: Path, target: Path, servers: list, version: str = "", also: str = "",
            breaks: str = "") -> Path:
    """The engine's package with its plugin for these versions of the server; as `version`, with the
    file `also`, and with `breaks` among the packages that it breaks."""
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
        core.write_bytes(core.read_bytes() + b" ")   # another engine, which is as good
    if also:
        package.place(root / also, b"", 0o755)
    if breaks:
        control = re.sub(r"^(Breaks: .*)", rf"\g<1>, {breaks}", control, flags=re.M)
    (root / "DEBIAN/control").write_text(control)
    return pack(root, target)


def plain(folder: Path, name: str, version: str, depends: str = "") -> Path:
    """A package of somebody else's, with nothing in it."""
    root = Path(tempfile.mkdtemp(dir=PLACE))
    root.chmod(0o755)
    needs = f"Depends: {depends}\n" if depends else ""
    control = (f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@x>\n"
               f"{needs}Description: {name}\n")
    package.place(root / "DEBIAN/control", control.encode(), 0o644)
    return pack(root, folder / f"{name}_{version}.deb")


def fields(file: Path, *names: str) -> list:
    """What a package says of itself."""
    return [package.output(["dpkg-deb", "-f", str(file), name]) for name in names]


def unpack(file: Path) -> Path:
    """A package's files, with what dpkg is told."""
    root = Path(tempfile.mkdtemp(dir=PLACE))
    root.chmod(0o755)
    subprocess.run(["dpkg-deb", "-R", str(file), str(root)], check=True)
    return root


def pack(root: Path, target: Path) -> Path:
    """A package of these files, which go."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "-b", str(root), str(target)], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return target


def with_unknown_feature(control: bytes) -> bytes:
    """Both copies of the engine's control block as a later engine could write them."""
    copies = []
    for at in (0, COPY_BYTES):
        block = bytearray(control[at:at + COPY_BYTES])
        block[READ_FEATURES_AT + 7] = 0x80
        block[-4:] = crc32c(block[:-4]).to_bytes(4, "little")
        copies.append(bytes(block))
    return b"".join(copies) + control[2 * COPY_BYTES:]
