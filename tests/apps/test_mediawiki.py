"""MediaWiki: installation, import of pages, search, edits and jobs, and the size on disk."""

import json
import xml.sax.saxutils as escaping

import fetched
import pages
import php
import pytest
import servers
import sides

COUNT, COUNT_LARGE = 200, 4000
SEARCHES = ["university", "history war", "+physics -war", "\"new york\"", "compu*", "music theory",
            "the of", "nothingofthatname", "edited"]
PAGE = """<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>{number}</id>
<timestamp>2015-01-01T{hour:02}:{minute:02}:{second:02}Z</timestamp>
<contributor><username>Importer</username><id>7</id></contributor>
<model>wikitext</model><format>text/x-wiki</format>
<text xml:space="preserve">{text}</text></revision></page>
"""
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">
"""
SIZE_RATIO_MAX = 1 / 3


@pytest.fixture
def dump(new_server, tmp_path, large):
    server, place = servers.started(new_server()), tmp_path / "pages.xml"
    with open(place, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for number, (title, text) in enumerate(pages.pages(server, COUNT_LARGE if large else COUNT),
                                               1):
            file.write(PAGE.format(title=escaping.escape(title), text=escaping.escape(text),
                                   number=number, hour=number // 3600, minute=number // 60 % 60,
                                   second=number % 60))
        file.write("</mediawiki>\n")
    server.stop()
    return place


def test_mediawiki(beside, dump):
    root = fetched.debian("mediawiki", ["mediawiki", "mediawiki-classes"], [])
    what = f"MediaWiki {fetched.version(root, 'mediawiki')} ({dump.stat().st_size / 1e6:.1f} MB)"
    pair = beside(what, lambda side: use(side, root / "usr/share/mediawiki", dump), sizes)
    inno, cheetah = (side.disk() for side in pair)
    assert cheetah <= inno * SIZE_RATIO_MAX


def sizes(inno, cheetah) -> str:
    said = []
    for what, size in (("data", sides.Side.disk), ("with all logs", sides.Side.folder_bytes)):
        first, second = size(inno), size(cheetah)
        said.append(f"{what} on disk {second / 1e6:.1f} MB (InnoDB {first / 1e6:.1f}: "
                    f"{second / first:.2f} of it)")
    return "; ".join(said)


def use(side, wiki, dump) -> dict:
    settings = {"MW_INSTALL_PATH": str(wiki), **php.environment()}
    local = side.folder / "LocalSettings.php"

    def script(name: str, *words, **more) -> str:
        path = name if "/" in name else wiki / "maintenance" / name
        return side.call(*php.words(), path, "--conf", local, *words, env=settings, **more)

    side.call(*php.words(), wiki / "maintenance/install.php", "--confpath", side.folder,
              "--dbname", sides.DATABASE, "--dbserver", f"localhost:{side.server.socket}",
              "--dbuser", sides.USER, "--dbpass", sides.PASSWORD, "--pass", "Administrator-1",
              "--scriptpath", "/w", "--server", "http://localhost", "Wiki", "Admin", env=settings,
              timed="install")
    text = local.read_text()
    assert "ENGINE=InnoDB" in text
    local.write_text(text.replace("ENGINE=InnoDB", f"ENGINE={side.engine.name}")
                     + '$wgCacheDirectory = false;\n$wgJobRunRate = 0;\n')
    script("importDump.php", dump, timed="import")
    script("runJobs.php", timed="jobs")
    script("rebuildrecentchanges.php")
    script("initSiteStats.php", "--update")
    script("rebuildtextindex.php", timed="text index")
    titles = [row[0].decode() for row in side.rows(
        "SELECT page_title FROM page WHERE page_namespace = 0 ORDER BY page_id LIMIT 5, 8")]
    for number, title in enumerate(titles):
        script("edit.php", "--user", "Admin", "--summary", f"Edit {number}", title, timed="edits",
               text=f"Edited, number {number}. [[Main Page]] [[Category:Edited]]\n")
    (side.folder / "moves").write_text(f"{titles[0]}|Moved page\n")
    script("moveBatch.php", side.folder / "moves")
    (side.folder / "deletions").write_text(f"{titles[1]}\n{titles[2]}\n")
    script("deleteBatch.php", side.folder / "deletions")
    script("undelete.php", titles[2])
    script("runJobs.php", timed="jobs")
    script("update.php", "--quick", timed="update")
    found = json.loads(script(str(fetched.HERE / "mediawiki_search.php"), json.dumps(SEARCHES),
                              timed="search").splitlines()[-1])
    assert len(found["searchText edited"]) >= len(titles) - 2
    # The order is not compared because InnoDB's ranks depend on its estimate of the row count.
    found = {key: sorted(titles) for key, titles in found.items()}
    return {"tables": side.has_only_its_engine(), "schema": side.schema(), **found, **{
        statement: side.rows(statement) for statement in (
            "SELECT page_namespace, page_title, page_len, page_is_redirect FROM page ORDER BY 1, 2",
            "SELECT rev_page, rev_len, rev_sha1, rev_minor_edit FROM revision ORDER BY rev_id",
            "SELECT MD5(GROUP_CONCAT(MD5(old_text) ORDER BY old_id)) FROM text",
            "SELECT * FROM pagelinks ORDER BY 1, 2, 3, 4",
            "SELECT cl_from, cl_to, cl_sortkey FROM categorylinks ORDER BY 1, 2",
            "SELECT cat_title, cat_pages FROM category ORDER BY 1",
            "SELECT ar_title, ar_len FROM archive ORDER BY ar_id",
            "SELECT ss_total_edits, ss_good_articles, ss_total_pages, ss_users FROM site_stats",
            "SELECT si_page, si_title, MD5(si_text) FROM searchindex ORDER BY si_page",
            "SELECT log_type, log_action, log_title FROM logging ORDER BY log_id",
            "SELECT job_cmd, COUNT(*) FROM job GROUP BY 1")}}
