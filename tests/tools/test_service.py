"""Tests the messages of `make up`, and programs run with its server."""

import sys
from types import SimpleNamespace

import pytest
from cheetah_tools import service
from cheetah_tools.say import Failure


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


@pytest.mark.parametrize("words", [[], ["no-such-program", "full"]])
def test_with_wants_a_program_that_is_there(words):
    with pytest.raises(Failure, match="program"):
        service.with_server(words)


def test_with_hands_on_words_and_status():
    program = "import sys; sys.exit(int(sys.argv[1]))"
    assert service.with_server([sys.executable, "-c", program, "7"]) == 7
