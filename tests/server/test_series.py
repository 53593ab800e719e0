"""A plugin loads only into the server version it was built for, and reports its version."""

import pytest
from cheetah_tools import build
from cheetah_tools.paths import FIRST_SERIES, PLUGIN, PROJECT, SERIES
from cheetah_tools.setup import RELEASES
from servers import started


def test_the_plugin_of_another_series_is_refused(new_server):
    builds = [PROJECT / "build" / ("" if series == FIRST_SERIES else series) / PLUGIN.name
              for series in RELEASES if series != SERIES]
    others = [plugin for plugin in builds if plugin.exists()]
    if not others:
        names = " or ".join(series for series in RELEASES if series != SERIES)
        pytest.skip(f"no plugin of another series is built here: make build SERVER={names}")
    for plugin in others:
        server = started(new_server({"cheetah": "ON"}, plugin=plugin))
        assert not server.has_engine("CHEETAH")
        assert "Couldn't load plugins from" in server.log.read_text()


def test_the_server_shows_the_version_of_the_engine_and_of_its_views(server):
    shown = server.sql("SELECT DISTINCT PLUGIN_VERSION, PLUGIN_AUTH_VERSION "
                       "FROM information_schema.PLUGINS WHERE PLUGIN_NAME LIKE 'CHEETAH%'")
    version = build.workspace_version()
    assert shown == [(version.rpartition(".")[0], version)]
