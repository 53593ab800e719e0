"""phpMyAdmin: its pages for a database and a table."""

import shutil

import fetched
import php
import shop
import sides
import web

CONFIGURATION = """<?php
$cfg['blowfish_secret'] = '0123456789abcdef0123456789abcdef';
$cfg['Servers'][1] = ['auth_type' => 'config', 'host' => 'localhost', 'socket' => '{socket}',
  'user' => '{user}', 'password' => '{password}'];
$cfg['TempDir'] = '{folder}/tmp';
$cfg['SendErrorReports'] = 'never';
$cfg['VersionCheck'] = false;
"""
# Pages that show engine-specific values are loaded but not compared.
PAGES = ["/database/structure", "/table/structure", "/table/relation", "/table/indexes",
         "/table/operations"]
COMPARED = ["/table/search", "/database/search", "/database/export"]


def test_phpmyadmin(beside):
    root = php.libraries("phpmyadmin", ["phpmyadmin"])

    def use(side) -> dict:
        shop.make(side)
        site_folder = installed(side, root)
        found = {}
        settings = {"include_path": root / "usr/share/php", "error_reporting": "0"}
        with web.served(side, site_folder, settings=settings) as site:
            for page in PAGES + COMPARED:
                text = web.text(site.get("index.php", route=page, db=sides.DATABASE, table="item",
                                         server="1"))
                assert "item" in text, (page, text[:500])
                if page in COMPARED:
                    # The text before contains port numbers.
                    found[page] = text.partition(" | phpMyAdmin ")[2]
            relations = site.get("index.php", route="/table/relation", db=sides.DATABASE,
                                 table="item", server="1")
            # phpMyAdmin checks the engine's name and shows constraints only for InnoDB.
            assert ("belongs" in relations) == (side.label == "InnoDB")
        return {"tables": side.has_only_its_engine(), **found}
    beside(f"phpMyAdmin {fetched.version(root, 'phpmyadmin')}", use)


def installed(side, root):
    """Returns a copy of phpMyAdmin that is configured for the side's server."""
    place = side.folder / "phpmyadmin"
    shutil.copytree(root / "usr/share/phpmyadmin", place, symlinks=False,
                    ignore_dangling_symlinks=True)
    (side.folder / "tmp").mkdir()
    (place / "config.inc.php").write_text(CONFIGURATION.format(
        socket=side.server.socket, user=sides.USER, password=sides.PASSWORD, folder=side.folder))
    vendor = place / "libraries/vendor_config.php"
    text = vendor.read_text()
    for old, new in (("/var/lib/phpmyadmin/tmp/", f"{side.folder}/tmp/"),
                     ("/etc/phpmyadmin/config.inc.php", f"{place}/config.inc.php")):
        assert old in text
        text = text.replace(old, new)
    vendor.write_text(text)
    return place
