"""A private MariaDB server: own data, socket, settings and plugins; a network port on request.

Works with and without root. Everything is stopped by process ID, never by name. A server started
with `with` ends with its block, also on Ctrl-C; if the tool is killed, the kernel ends it."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from . import setup
from .paths import PLUGIN, SERVER, VAR, emptied, show
from .say import Failure

sys.path.append(str(SERVER / "usr/lib/python3/dist-packages"))

READY_SECONDS = 180
STOP_SECONDS = 180
# sun_path holds 108 bytes with its final zero.
SOCKET_PATH_MAX = 100
PR_SET_PDEATHSIG = 1
KEEP = "CHEETAH_KEEP_FOLDERS"   # environment variable: keeps the folders of ended runs


class PrivateServer:
    """One server process on one data folder; it can be started, stopped and killed repeatedly."""

    def __init__(self, folder: Path, options: dict = None, plugin=True, cgroup: Path = None):
        """`options` are lines of my.cnf (value None: a bare word). `plugin` is the file to load, or
        True for this build's plugin; a missing file is not loaded. With a plugin the server does
        not start without the engine, unless `options` set `cheetah`."""
        setup.ensure()
        self.folder = Path(folder)
        self.data = self.folder / "data"
        self.log = self.folder / "error.log"
        self.options = dict(options or {})
        plugin = PLUGIN if plugin is True else plugin
        self.plugin = plugin if plugin and plugin.exists() else None
        self.cgroup = cgroup
        self.environment = {}   # in addition to that of all programs
        self.included = None    # a file of settings that override ours
        self.process = None
        self._short = None
        self.socket = self._socket_path()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.kill()
        self._forget_short_folder()

    def start(self, detached: bool = False) -> None:
        """Starts the server and waits until it answers; otherwise raises Failure with the end of
        the error log. `detached`: the server survives this process (`make up`)."""
        self._prepare()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [SERVER / "usr/sbin/mariadbd", f"--defaults-file={self.folder / 'my.cnf'}"],
                env={**setup.library_environment(), **self.environment}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True, preexec_fn=None if detached else self._before_exec)
        try:
            self._wait_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shuts down normally; raises Failure unless the server ends by itself with status 0."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
            self.process = None
            why = f"ended with status {status}" if status else ""
        except subprocess.TimeoutExpired:
            self.kill()
            why = f"did not stop within {STOP_SECONDS} s"
        if why:
            raise Failure(f"the server {why}; end of its log:\n{self.log_tail()}")

    def kill(self) -> None:
        """Kills the process with SIGKILL, which is like a power cut for it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def died(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        """Deletes the folder with all data (the server must be stopped)."""
        self._forget_short_folder()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self, database: str = "", **more):
        """Returns a PyMySQL connection (autocommit, utf8mb4, BLOBs as bytes)."""
        return connect(self.socket, database, **more)

    @contextlib.contextmanager
    def cursor(self, database: str = "", **more):
        """Provides a cursor whose connection ends with the block."""
        with self.connect(database, **more) as connection, connection.cursor() as cursor:
            yield cursor

    def sql(self, statement: str, database: str = "") -> list:
        """Runs a statement; returns its rows. Raises Failure if the server refuses it or dies."""
        import pymysql
        try:
            with self.cursor(database) as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        except pymysql.MySQLError as failure:
            end = f"\nthe end of the server's log:\n{self.log_tail(25)}" if self.died() else ""
            raise Failure(f"{statement[:200]}: {failure}{end}") from failure

    def value(self, statement: str, database: str = ""):
        return self.sql(statement, database)[0][0]

    def status(self, name: str) -> int:
        rows = self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'")
        if not rows:
            raise Failure(f"the server has no status variable {name}")
        return int(rows[0][1])

    def client(self, *arguments, **popen):
        return subprocess.Popen(client_words(self.socket, *arguments),
                                env=setup.library_environment(), **popen)

    def has_engine(self, name: str) -> bool:
        """Returns whether SHOW ENGINES lists the engine as usable."""
        return any(row[0].lower() == name.lower() and row[1] in ("YES", "DEFAULT")
                   for row in self.sql("SHOW ENGINES"))

    def anonymous_bytes(self) -> int:
        found = re.search(r"^RssAnon:\s+(\d+)", self._proc("status"), re.M)
        return int(found[1]) * 1024 if found else 0

    def cpu_seconds(self) -> float:
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def device_bytes(self) -> tuple:
        """Returns the bytes read from and written to the device by the process so far."""
        found = dict(line.split(": ") for line in self._proc("io").splitlines())
        return int(found["read_bytes"]), int(found["write_bytes"])

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()

    def spent(self) -> tuple:
        """Returns processor seconds, and bytes read from and written to the device."""
        return (self.cpu_seconds(), *self.device_bytes())

    def pause(self) -> None:
        """Pauses the process until `resume`; do not stop it normally in between."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def log_tail(self, count: int = 15) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return f"(no log in {show(self.log)})"
        return "\n".join("    " + line for line in lines[-count:])

    def _prepare(self) -> None:
        if self.folder.exists() and self.process is not None:
            raise Failure(f"the server in {show(self.folder)} is running already")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.data.exists():
            fresh = self.folder / "data.new"
            shutil.rmtree(fresh, ignore_errors=True)
            subprocess.run(["cp", "-a", "--sparse=always", str(template()), str(fresh)], check=True)
            fresh.rename(self.data)
        self.write_configuration()
        self.socket.unlink(missing_ok=True)

    def write_configuration(self) -> Path:
        lines = {
            "datadir": self.data, "socket": self.socket, "pid_file": self.folder / "pid",
            "basedir": SERVER / "usr", "lc_messages_dir": SERVER / "usr/share/mysql",
            "character_sets_dir": SERVER / "usr/share/mysql/charsets",
            "plugin_dir": plugin_folder(self.plugin or PLUGIN),
            "skip_networking": None, "max_allowed_packet": "256M", "innodb_fast_shutdown": 1,
            "secure_file_priv": "", "local_infile": 1, "tmpdir": self.folder,
        }
        if os.geteuid() == 0:
            lines["user"] = "root"
        if self.plugin:
            lines |= {"plugin_load_add": link_name(self.plugin), "cheetah": "FORCE"}
        lines.update(self.options)
        text = "".join(f"{key}\n" if value is None else f"{key} = {value}\n"
                       for key, value in lines.items())
        place = self.folder / "my.cnf"
        include = f"\n!include {self.included}\n" if self.included else ""
        setup.replace_text(place, f"[mariadbd]\n{text}\n[client]\nsocket = {self.socket}\n"
                                  f"user = root\n{include}")
        return place

    def _socket_path(self) -> Path:
        near = self.folder / "sock"
        if len(str(near)) <= SOCKET_PATH_MAX:
            return near
        self._short = Path(tempfile.mkdtemp(prefix="cheetah-"))
        return self._short / "sock"

    def _forget_short_folder(self) -> None:
        if self._short:
            shutil.rmtree(self._short, ignore_errors=True)

    def _before_exec(self) -> None:
        # The kernel ends the server when this process ends for any reason.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.cgroup:
            (self.cgroup / "cgroup.procs").write_text(str(os.getpid()))

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        why = f"does not answer after {READY_SECONDS} s"
        while time.monotonic() < deadline:
            if self.died():
                why = f"ended at start with status {self.process.returncode}"
                break
            if self.socket.exists():
                with contextlib.suppress(Exception):   # not listening yet
                    return self.connect().close()
            time.sleep(0.05)
        raise Failure(f"the server {why}; end of {show(self.log)}:\n{self.log_tail()}")


def connect(socket: Path, database: str = "", user: str = "root", **more):
    """Returns a PyMySQL connection through a socket, without TLS, because with TLS each connection
    would read all certificates of the machine."""
    import pymysql
    settings = {"autocommit": True, "charset": "utf8mb4", "read_timeout": 3600,
                "max_allowed_packet": 256 << 20, "ssl_disabled": True, **more}
    return pymysql.connect(unix_socket=str(socket), user=user, database=database or None,
                           **settings)


def client_words(socket: Path, *arguments) -> list:
    return [str(SERVER / "usr/bin/mariadb"), "--no-defaults", f"--socket={socket}", "--user=root",
            f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}",
            "--default-character-set=utf8mb4", "--max-allowed-packet=256M", *map(str, arguments)]


def link_name(plugin: Path) -> str:
    """Returns the name of a plugin's link in `plugin_folder`; another build has its own name."""
    return plugin.name if plugin == PLUGIN else f"other-{zlib.crc32(bytes(plugin)):08x}.so"


def plugin_folder(plugin: Path = PLUGIN) -> Path:
    """Returns a folder of symlinks to the distribution's plugins and to `plugin`."""
    folder = VAR / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {p.name: p for p in (SERVER / "usr/lib/mysql/plugin").glob("*.so")}
    wanted[link_name(plugin)] = plugin
    for name, target in wanted.items():
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != str(target):
            fresh = folder / f".{name}.{os.getpid()}"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(target)
            fresh.rename(link)
    return folder


def template() -> Path:
    """Returns a data folder by mariadb-install-db, made once and copied for every server."""
    version = setup.ensure()["package_version"].replace(":", "_")
    place = VAR / f"template-{version}"
    if place.exists():
        return place
    fresh = emptied(VAR / f"template.new.{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="cheetah-") as short:
        # mariadb-install-db is a shell script that does not support blanks in paths.
        root, data = Path(short) / "server", Path(short) / "data"
        root.symlink_to(SERVER)
        data.symlink_to(fresh)
        share = root / "usr/share/mysql"
        words = [root / "usr/bin/mariadb-install-db", "--no-defaults", f"--basedir={root / 'usr'}",
                 f"--datadir={data}", "--auth-root-authentication-method=normal",
                 "--skip-name-resolve", "--skip-test-db", f"--lc-messages-dir={share}",
                 f"--character-sets-dir={share / 'charsets'}",
                 f"--plugin-dir={root / 'usr/lib/mysql/plugin'}"]
        if os.geteuid() == 0:
            words.append("--user=root")
        done = subprocess.run(list(map(str, words)), env=setup.library_environment(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 or not (fresh / "mysql").is_dir():
        raise Failure("mariadb-install-db failed:\n" + "\n".join(done.stdout.splitlines()[-15:]))
    try:
        fresh.rename(place)
    except OSError:  # another run was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def scratch(name: str) -> Path:
    """Creates an empty folder for one run of a test: `var/tmp/NAME-PID`. Deletes the folders of
    ended runs, unless the environment variable named by `KEEP` is set."""
    root = VAR / "tmp"
    for old in root.glob(f"{name}-*"):
        pid = old.name.removeprefix(f"{name}-")
        is_left = not Path(f"/proc/{pid}").exists() and KEEP not in os.environ
        if pid.isdigit() and (is_left or pid == str(os.getpid())):
            shutil.rmtree(old, ignore_errors=True)
    folder = root / f"{name}-{os.getpid()}"
    folder.mkdir(parents=True)
    return folder
