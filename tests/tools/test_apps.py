"""The parts of `make apps` that need no server: unpacking packages, and the reason for a skip."""

import os
import sys

import pytest
from cheetah_tools import apt, environment
from cheetah_tools.paths import PROJECT
from cheetah_tools.say import Failure


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PROJECT / "tests/apps"))
    import fetched as module
    monkeypatch.setattr(module, "PLACE", tmp_path / "apps")
    yield module
    sys.modules.pop("fetched")


def test_a_part_is_made_once_and_again_when_its_recipe_changes(fetched):
    made = []

    def make(fresh):
        made.append(fresh)
        fresh.mkdir()
    place = fetched.made("part", "one", make)
    assert fetched.made("part", "one", make) == place == fetched.PLACE / "part"
    fetched.made("part", "two", make)
    assert len(made) == 2 and [path.name for path in fetched.PLACE.iterdir()] == ["part"]


def test_what_cannot_be_had_skips_with_the_reason_and_leaves_nothing(fetched):
    def make(fresh):
        fresh.mkdir()
        raise Failure("no network")
    with pytest.raises(pytest.skip.Exception, match="part cannot be had: no network"):
        fetched.made("part", "one", make)
    assert not list(fetched.PLACE.iterdir())


def test_links_to_absolute_paths_stay_within_the_folder(fetched, tmp_path):
    for folder in ("usr/share/app", "var/lib/app"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "var/lib/app/file").write_text("text")
    (tmp_path / "usr/share/app/folder").symlink_to("/var/lib/app")
    (tmp_path / "usr/share/app/near").symlink_to("folder/file")
    fetched.relink(tmp_path)
    assert (tmp_path / "usr/share/app/near").read_text() == "text"
    assert os.readlink(tmp_path / "usr/share/app/folder") == "../../../var/lib/app"


def test_versions_are_those_of_the_packages(fetched, tmp_path):
    (tmp_path / "versions").write_text("php8.2-cli_8.2.36-1~deb12u1_amd64\n"
                                       "mediawiki_1%3a1.39.17-1+deb12u2_all")
    assert fetched.version(tmp_path, "mediawiki") == "1.39.17"
    assert fetched.version(tmp_path, "php8.2-cli") == "8.2.36"


def test_sources_are_those_of_the_versions_in_the_lock(fetched):
    pins = environment.pinned(fetched.SOURCES_LOCK)
    assert len(pins) == 2 and set(pins) <= set(environment.pinned(fetched.LOCK))
    assert fetched.pinned("django") in pins[0]


def test_the_first_choice_of_each_dependency_is_taken(monkeypatch):
    text = ("Package: a\nDepends: php-cli, php-x (>= 1.2) | php-y, perl:any\nSuggests: z\n")
    monkeypatch.setattr(apt.Archive, "_run", lambda *_words: type("Done", (), {"stdout": text}))
    assert apt.Archive().depends("a") == ["php-cli", "php-x", "perl"]
