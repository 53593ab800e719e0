"""Realistic upgrades: apt and dpkg on a separate machine, with the server's real packages. After
each upgrade, the tables are available, or the upgrade was refused with a reason."""

import shutil
from pathlib import Path

import machine as machines
import pytest
from cheetah_tools import build, package
from cheetah_tools.say import Failure

SERVER, CORE, ENGINE = "mariadb-server", "mariadb-server-core", package.NAME
SETTINGS = "/etc/mysql/mariadb.conf.d/60-cheetah.cnf"
ROWS = "1000\t500500\t15893"
COUNT = "SELECT COUNT(*), SUM(id), SUM(LENGTH(name)) FROM shop.item"
TOLD = "/etc/apt/apt.conf.d/61cheetah-unattended"
ANYWAY = "-o Cheetah::Upgrade=anyway"


@pytest.fixture(scope="module")
def base():
    reason = machines.why_not()
    if reason:
        pytest.skip(f"no machine to upgrade: {reason}")
    try:
        machines.ensure()
    except Failure as failure:
        pytest.skip(f"no machine to upgrade: its packages cannot be had: {failure}")
    return machines.versions()


@pytest.fixture(scope="module")
def ours(base) -> str:
    """The server version for which there is a plugin."""
    return base[0]


@pytest.fixture(scope="module")
def other(base) -> str:
    """An available version without a source."""
    if not base[1]:
        pytest.skip("the archives offer no second version of the server")
    return base[1]


@pytest.fixture(scope="module")
def engine(base, tmp_path_factory):
    return Path(shutil.copy(package.make()[0], tmp_path_factory.mktemp("engine")))


@pytest.fixture
def machine(base, tmp_path):
    made = machines.Machine(machines.PLACE / "tmp" / tmp_path.name)
    try:
        made.offer("now")
        made.run("service mariadb start")
        assert made.server_runs()
        yield made
    finally:
        made.end()


@pytest.fixture
def shop(machine, engine):
    machine.install(engine)
    create_tables(machine)
    return machine


def create_tables(machine) -> None:
    machine.sql("CREATE DATABASE shop; USE shop; "
                "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(60), KEY (name)) "
                "ENGINE=CHEETAH; "
                "INSERT INTO item SELECT seq, CONCAT('the name of ', seq, '.') FROM seq_1_to_1000; "
                "CREATE TABLE plain ENGINE=InnoDB SELECT 7 AS a")


def assert_tables(machine, after: str = "") -> None:
    """Asserts that the server runs, after a start or restart if requested, that the tables are
    intact, and that the server's plugin maturity is the default."""
    if after:
        machine.run(f"service mariadb {after}")
    assert_rows(machine)
    assert machine.sql("SELECT engine FROM information_schema.tables "
                       "WHERE table_name = 'item'") == "CHEETAH"
    assert machine.sql("BEGIN; INSERT INTO shop.item VALUES (0, ''); ROLLBACK; "
                       "SELECT @@plugin_maturity") == "gamma"
    assert machine.sql("CHECK TABLE shop.item").endswith("status\tOK")
    assert not machine.run("dpkg --audit"), "all packages are configured"


def assert_rows(machine) -> None:
    assert machine.server_runs(), machine.log()
    assert machine.sql(COUNT) == ROWS


def assert_down(machine, reason: str) -> None:
    """Asserts that the server does not start and that its log has the reason."""
    machine.run("service mariadb start", fails=True)
    assert not machine.server_runs()
    assert reason in machine.log()


def test_install(machine, engine):
    maturity = machine.sql("SELECT @@plugin_maturity")
    machine.install(engine)
    create_tables(machine)
    assert_tables(machine)
    assert machine.sql("SELECT @@plugin_maturity") == maturity == "gamma"
    assert_tables(machine, after="restart")


def test_a_server_with_a_plugin_in_the_package(shop, engine, ours, tmp_path):
    later = machines.later(ours, "later")
    shop.install(machines.changed(engine, tmp_path / "engine.deb", servers=[ours, later]),
                 "--reinstall")
    shop.offer("now", "later")
    said = shop.apt("upgrade")
    assert shop.version(CORE) == later
    assert shop.plugin() == f"/usr/lib/cheetah/shims/{later[2:]}/ha_cheetah.so"
    assert said.rindex(f"Processing triggers for {ENGINE}") < said.index(f"Setting up {SERVER} (")
    assert_tables(shop)


@pytest.mark.parametrize("first", [ENGINE, CORE])
@pytest.mark.parametrize("command", ["upgrade", f"install {SERVER} {CORE} {ENGINE}",
                                     f"install {ENGINE} {CORE} {SERVER}"])
def test_a_server_and_an_engine_with_its_plugin_in_one_run(
        shop, engine, ours, tmp_path, first, command):
    """The new engine has no plugin for the old server. In either order of unpacking, a plugin
    exists at each moment, and the server's package starts the server once its plugin exists."""
    later = machines.later(ours, "later")
    # This makes apt unpack the engine after the server.
    breaks = f"{CORE} (<< {later})" if first == CORE else ""
    shop.add(machines.changed(engine, tmp_path / "newer.deb", servers=[later], version="0.9",
                              breaks=breaks))
    shop.offer("now", "later")
    shop.run("rm /var/log/dpkg.log")
    shop.watch_plugin()
    shop.apt(f"--no-install-recommends {command}")
    steps = [line.split()[2:4] for line in shop.run("cat /var/log/dpkg.log").splitlines()]
    done = [f"{words[0]} {words[1].partition(':')[0]}" for words in steps]
    assert (done.index(f"upgrade {ENGINE}") < done.index(f"upgrade {CORE}")) == (first == ENGINE)
    assert done.index(f"configure {ENGINE}") < done.index(f"configure {SERVER}")
    assert (shop.version(CORE), shop.version(SERVER), shop.version(ENGINE)) == (later, later, "0.9")
    assert shop.plugin() == f"/usr/lib/cheetah/shims/{later[2:]}/ha_cheetah.so"
    assert shop.plugin() in shop.run("cat /proc/$(pidof mariadbd)/maps"), (
        "what dpkg has started runs")
    shop.assert_plugin_was_there()
    assert_tables(shop)


@pytest.mark.parametrize("first", [ENGINE, CORE])
def test_an_engine_that_dpkg_configures_after_the_server(shop, engine, ours, tmp_path, first):
    """apt does not choose this order. If the engine is unpacked last, it has set the link by then.
    If it is unpacked first, the server has the old engine's plugin until the engine is configured.
    (It starts with that plugin here, because only its package's version differs.)"""
    later = machines.later(ours, "later")
    shutil.copy(machines.changed(engine, tmp_path / "newer.deb", servers=[later], version="0.9"),
                shop.inside("/root"))
    shop.watch_plugin()
    shop.run("dpkg -i /archive/later/mariadb-common_*.deb /archive/later/libmariadb3_*.deb")
    names = [SERVER, CORE, "mariadb-client-core", "mariadb-client", "mariadb-backup"]
    files = [f"/archive/later/{name}_*.deb" for name in names]
    files.insert(0 if first == ENGINE else len(files), "/root/newer.deb")
    shop.run(f"dpkg --auto-deconfigure --unpack {' '.join(files)}")
    shop.run(f"dpkg --configure {' '.join(names)}; true")
    assert "unpacked" in shop.run(f"dpkg-query -W -f '${{db:Status-Status}}' {ENGINE}")
    place = f"built/{ours[2:]}" if first == ENGINE else f"shims/{later[2:]}"
    assert shop.plugin() == f"/usr/lib/cheetah/{place}/ha_cheetah.so"
    if first != ENGINE:
        assert_rows(shop)
    shop.run("dpkg --configure -a")
    shop.assert_plugin_was_there()
    shop.run("service mariadb restart")
    assert shop.plugin() in shop.run("cat /proc/$(pidof mariadbd)/maps")
    assert_tables(shop)


def test_a_server_that_a_plugin_is_built_for(shop, ours):
    rebuilt = machines.later(ours, "rebuilt")
    shop.offer("now", "rebuilt")
    assert f"building a plugin for {CORE} {rebuilt}" in shop.apt("upgrade")
    assert shop.version(CORE) == rebuilt
    assert shop.plugin() == f"/usr/lib/cheetah/built/{rebuilt[2:]}/ha_cheetah.so"
    assert_tables(shop)
    assert_tables(shop, after="restart")


@pytest.mark.parametrize("command", ["upgrade", "dist-upgrade", f"install {SERVER} {CORE}"])
def test_a_server_without_a_plugin_is_refused(shop, ours, other, command):
    shop.offer("now", "other")
    said = shop.apt(command, fails=True)
    assert f"this run of apt is refused: it would change {CORE} to {other}" in said
    assert "the archives do not have the source package" in said
    assert shop.version(CORE) == shop.version(SERVER) == ours
    assert_tables(shop)
    shop.run(f"apt-mark hold {CORE} {SERVER}")
    shop.apt("upgrade")     # all other packages
    assert_tables(shop)


def test_without_a_compiler_it_is_refused_too(shop, ours):
    shop.run("mv /usr/bin/g++ /usr/bin/g++.away")
    shop.offer("now", "rebuilt")
    assert "g++ is missing" in shop.apt("upgrade", fails=True) and shop.version(CORE) == ours
    assert_tables(shop)


def test_a_server_without_a_plugin_anyway(shop, ours, other):
    shop.offer("now", "other")
    shop.run(f"apt-get -y -q {ANYWAY} upgrade; true")
    assert shop.version(CORE) == other and shop.plugin() == ""
    assert_down(shop, "ha_cheetah.so")
    shop.run("dpkg --configure -a; true")
    shop.apt(f"install {' '.join(f'{name}={ours}' for name in machines.OF_SERVER)}")
    assert_tables(shop)


def test_dpkg_alone_does_not_ask(shop, ours, other):
    """dpkg runs no apt hook. The server does not start, and nothing is lost."""
    said = shop.run("dpkg -i /archive/other/mariadb-server-core_*.deb "
                    "/archive/other/mariadb-server_*.deb /archive/other/mariadb-client*.deb "
                    "/archive/other/libmariadb3_*.deb /archive/other/mariadb-common_*.deb "
                    "/archive/other/mariadb-backup_*.deb; true")
    assert f"there is no plugin for {CORE} {other}" in said
    assert_down(shop, "ha_cheetah.so")
    shop.apt(f"install {' '.join(f'{name}={ours}' for name in machines.OF_SERVER)}")
    assert_tables(shop)


def test_the_next_series_is_refused(shop, ours):
    shop.offer("now", "series")
    assert f"remove {ENGINE} in the same run" in shop.apt("dist-upgrade", fails=True)
    assert shop.version(CORE) == ours and shop.version(ENGINE)
    assert_tables(shop)


def test_removal_and_reinstallation(shop, engine):
    assert "the tables stay" in shop.apt(f"remove {ENGINE}")
    shop.run("service mariadb stop")
    assert_down(shop, "ha_cheetah.so")
    shop.offer("now")       # apt works although the hook is missing
    shop.install(engine)
    assert_tables(shop, after="start")


def test_purge_and_reinstallation(shop, engine):
    shop.apt(f"purge {ENGINE}")
    for place in (SETTINGS, "/usr/lib/cheetah", "/etc/apt/apt.conf.d/60cheetah",
                  "/usr/lib/mysql/plugin/ha_cheetah.so", "/var/log/cheetah-shim.log"):
        shop.run(f"test -e {place}", fails=True)
    shop.run("service mariadb restart")
    assert "Unknown storage engine 'CHEETAH'" in shop.sql(COUNT, fails=True)
    assert shop.sql("SELECT a FROM shop.plain") == "7"
    shop.install(engine)
    assert_tables(shop)


def test_removal_of_the_server(shop):
    shop.apt(f"remove {SERVER} {CORE}")
    assert shop.version(ENGINE) and shop.plugin() == ""
    shop.apt(f"install --no-install-recommends {SERVER}")
    assert shop.plugin()
    assert_tables(shop, after="start")


def test_an_engine_without_a_plugin_for_the_server(shop, engine, ours, tmp_path):
    newer = machines.changed(engine, tmp_path / "newer.deb", version="0.9", servers=[ours + ".9"])
    shop.offer("later")     # without a source
    assert "keeps the previous engine" in shop.install(newer)
    assert shop.plugin() == f"/usr/lib/cheetah/built/{ours[2:]}/ha_cheetah.so"
    assert_tables(shop, after="restart")


@pytest.mark.parametrize("has_plugin", [True, False], ids=["with", "without"])
def test_a_server_that_starts_in_the_middle_of_an_upgrade(shop, engine, ours, tmp_path, has_plugin):
    """The server restarts between dpkg's unpack and configure steps, and also while the build of a
    plugin fails. A plugin exists at each moment."""
    servers = [ours if has_plugin else ours + ".9"]
    newer = machines.changed(engine, tmp_path / "newer.deb", version="0.9", servers=servers)
    shutil.copy(newer, shop.inside("/root"))
    shop.offer("later")     # without a source
    shop.watch_plugin()
    shop.run("dpkg --unpack /root/newer.deb")
    assert "unpacked" in shop.run(f"dpkg-query -W -f '${{db:Status-Status}}' {ENGINE}")
    assert shop.plugin() == f"/usr/lib/cheetah/built/{ours[2:]}/ha_cheetah.so"
    shop.run("service mariadb restart")
    assert_rows(shop)
    said = shop.run(f"dpkg --configure {ENGINE}")
    assert ("keeps the previous engine" in said) != has_plugin
    shop.assert_plugin_was_there()
    assert_tables(shop, after="restart")
    assert shop.version(ENGINE) == "0.9"
    shop.run("test -e /usr/lib/cheetah/built/*/ha_cheetah.so", fails=has_plugin)   # no copy is left


@pytest.mark.parametrize("reason", ["the plugin cannot be kept", "its files cannot be unpacked"])
def test_an_upgrade_of_the_engine_that_dpkg_gives_up(shop, engine, ours, tmp_path, reason):
    newer = machines.changed(engine, tmp_path / "newer.deb", version="0.9", servers=[ours + ".9"],
                             also="" if "kept" in reason else "usr/sbin/mariadbd")
    if "kept" in reason:
        shop.write("/usr/lib/cheetah/built", "")    # a file in the place of the folder
    shutil.copy(newer, shop.inside("/root"))
    shop.watch_plugin()
    said = shop.run("dpkg -i /root/newer.deb", fails=True)
    assert ("Not a directory" if "kept" in reason else f"which is also in package {CORE}") in said
    shop.assert_plugin_was_there()
    assert shop.plugin() == f"/usr/lib/cheetah/shims/{ours[2:]}/ha_cheetah.so"
    assert shop.version(ENGINE) == build.workspace_version()
    assert_tables(shop, after="restart")
    shop.run("test -d /usr/lib/cheetah/built/*", fails=True)    # no copy is left


def test_a_first_installation_without_a_plugin(machine, engine, other):
    machine.offer("now", "other")
    machine.apt("upgrade")
    said = machine.install(engine, fails=True)
    assert f"no plugin could be built for {other}" in said and "its settings were renamed" in said
    machine.run("service mariadb restart")
    assert machine.server_runs()
    machine.apt(f"purge {ENGINE}")
    assert not machine.run(f"ls {SETTINGS}* 2>/dev/null; true")


def test_an_older_engine(shop, engine, ours, tmp_path):
    older = machines.changed(engine, tmp_path / "older.deb", servers=[ours], version="0.0.9")
    assert "0.0.9 is older than" in shop.install(older)
    assert_tables(shop, after="restart")
    shop.run("service mariadb stop")
    control = shop.inside("/var/lib/mysql/#cheetah/CONTROL")
    before = control.read_bytes()
    newer = machines.with_unknown_feature(before)
    control.write_bytes(newer)
    assert_down(shop, "written by a newer version of Cheetah")
    assert control.read_bytes() == newer
    control.write_bytes(before)
    assert_tables(shop, after="start")


def test_a_container(machine, engine, tmp_path):
    machine.install(engine)
    machine.run("service mariadb stop; rm -rf /var/lib/mysql/*")
    shutil.copy(package.PACKAGING / "container-start", machine.inside("/usr/sbin"))
    assert "MARIADB_ROOT_PASSWORD" in machine.run("container-start 2>&1", fails=True)
    for _ in range(2):
        machine.run("MARIADB_ROOT_PASSWORD=secret setsid container-start > /root/log 2>&1 &")
        machine.wait_for("mariadb -h localhost -uroot -psecret -e 'SELECT 1'")
        machine.run("mariadb -uroot -psecret -e 'CREATE DATABASE IF NOT EXISTS shop; "
                    "CREATE TABLE IF NOT EXISTS shop.item (id INT PRIMARY KEY) ENGINE=CHEETAH; "
                    "INSERT INTO shop.item SELECT COUNT(*) FROM shop.item'")
        machine.run("pkill -TERM mariadbd; while pgrep mariadbd; do sleep 0.2; done")
    assert machine.run("grep -c 'ready for connections' /var/lib/mysql/error.log").strip() == "2"


# Other packages with security updates; unattended-upgrades starts with those that have the fewest
# dependencies. The last package has so many that it is upgraded after the server.
PARTS = [f"zz-part-{number}" for number in range(15)]


@pytest.fixture
def unattended(shop, tmp_path):
    """The shop with Debian's default unattended-upgrades and outdated other packages."""
    missing = machines.ARCHIVE / "unattended/missing"
    if missing.exists():
        pytest.skip(f"unattended-upgrades cannot be had: {missing.read_text()}")
    shop.offer("now", "unattended")
    shop.apt(f"install --no-install-recommends {machines.UNATTENDED}")
    shop.add(*others(tmp_path, "1"))
    shop.offer("now")
    shop.apt("install aa-tool zz-tool")
    shop.add(*others(tmp_path, "2"))
    return shop


def others(folder: Path, version: str) -> list:
    """Returns test packages that depend on neither the server nor the engine."""
    needs = ", ".join(f"{name} (>= {version})" for name in PARTS)
    return [machines.plain(folder, name, version, needs * (name == "zz-tool"))
            for name in ["aa-tool", *PARTS, "zz-tool"]]


def run_unattended(machine, options: str = "", fails: bool = False) -> str:
    """Runs unattended-upgrade like its timer, and returns its log."""
    log = "/var/log/unattended-upgrades/unattended-upgrades.log"
    machine.run(f"rm -f {log}; unattended-upgrade {options}", fails)
    return machine.run(f"cat {log}")


def assert_upgraded(machine, server: str) -> None:
    """Asserts this version of the server, the newest of other packages, and intact tables."""
    assert machine.version(CORE) == machine.version(SERVER) == server
    # A package without dependencies, and one with many.
    assert [machine.version(name) for name in ("aa-tool", "zz-tool")] == ["2", "2"]
    assert_tables(machine)


def test_unattended_upgrades_take_a_server_that_there_is_a_plugin_for(
        unattended, engine, ours, tmp_path):
    later = machines.later(ours, "later")
    both = machines.changed(engine, tmp_path / "engine.deb", servers=[ours, later])
    unattended.install(both, "--reinstall")
    unattended.offer("later")
    unattended.watch_plugin()
    log = run_unattended(unattended)
    assert "All upgrades installed" in log and "ERROR" not in log
    unattended.assert_plugin_was_there()
    assert_upgraded(unattended, later)


def test_unattended_upgrades_take_a_server_that_a_plugin_is_built_for(unattended, ours):
    rebuilt = machines.later(ours, "rebuilt")
    assert f"building a plugin for {CORE} {rebuilt}" in unattended.offer("rebuilt")
    log = run_unattended(unattended)
    assert "All upgrades installed" in log and "ERROR" not in log
    assert_upgraded(unattended, rebuilt)


@pytest.mark.parametrize("options", ["", "--no-minimal-upgrade-steps"])
def test_unattended_upgrades_leave_a_server_without_a_plugin_alone(
        unattended, engine, ours, tmp_path, options):
    """All other packages are upgraded, as the logs say; with a plugin, the server is, too."""
    later = machines.later(ours, "later")
    said = unattended.offer("later")
    assert f"unattended-upgrades leaves {CORE} {later} alone: there is no plugin for it" in said
    assert "the archives do not have the source package" in said
    log = run_unattended(unattended, options)
    assert f"Initial blacklist: {CORE}$" in log and "ERROR" not in log
    assert_upgraded(unattended, ours)
    said = unattended.run("apt-get update")
    assert "alone" in said and "building" not in said, "it is tried once a day"
    unattended.add(machines.changed(engine, tmp_path / "newer.deb", version="0.9",
                                    servers=[ours, later]))
    unattended.run("apt-get update")
    assert "ERROR" not in run_unattended(unattended, options)
    assert (unattended.version(ENGINE), unattended.version(CORE)) == ("0.9", ours)
    assert "alone" not in unattended.run("apt-get update")
    log = run_unattended(unattended, options)
    assert "blacklist: \n" in log and "ERROR" not in log
    assert unattended.version(CORE) == unattended.version(SERVER) == later
    assert_tables(unattended)


def test_unattended_upgrades_that_have_not_been_told_are_refused(unattended, ours):
    """The plugin disappears after apt's update. Packages that follow the server wait a day."""
    unattended.offer("later")
    unattended.run(f"rm {TOLD}")
    assert "Installing the upgrades failed" in run_unattended(unattended, fails=True)
    log_of_dpkg = "/var/log/unattended-upgrades/unattended-upgrades-dpkg.log"
    assert "this run of apt is refused" in unattended.run(f"cat {log_of_dpkg}")
    assert unattended.version(CORE) == ours
    # aa-tool may be upgraded before or after the server.
    assert unattended.version("zz-tool") == "1"
    assert_tables(unattended)
    unattended.run("apt-get update")
    assert "ERROR" not in run_unattended(unattended)
    assert [unattended.version(name) for name in ("aa-tool", "zz-tool")] == ["2", "2"]
    unattended.apt(f"remove {ENGINE}")
    unattended.run(f"test -e {TOLD}", fails=True)
