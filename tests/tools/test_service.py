"""What `make up` says."""

from types import SimpleNamespace

from cheetah_tools import service


def test_a_server_without_the_engine_says_why(tmp_path):
    log = tmp_path / "error.log"
    before = "[ERROR] CHEETAH: cannot open: of an earlier start\n"
    log.write_text(before + "[Note] InnoDB: started\n[ERROR] CHEETAH: cannot open: no key 1\n")
    server = SimpleNamespace(plugin=tmp_path / "ha_cheetah.so", log=log)
    said = service.why_without(server, len(before))
    assert said == ["  the engine did not start:", "  [ERROR] CHEETAH: cannot open: no key 1"]


def test_a_plugin_that_is_not_built_is_said_to_be_so(tmp_path):
    server = SimpleNamespace(plugin=None, log=tmp_path / "error.log")
    assert "make build" in service.why_without(server, 0)[0]
