"""WordPress: installation, posts, comments and searches."""

import json

import fetched
import php

PACKAGES = ["wordpress", "libjs-cropper", "libjs-underscore", "php-getid3", "ca-certificates",
            "wordpress-theme-twentytwentythree"]


def test_wordpress(beside):
    root = fetched.debian("wordpress", PACKAGES, [])
    beside(f"WordPress {fetched.version(root, 'wordpress')}",
           lambda side: use(side, root / "usr/share/wordpress"))


def use(side, site) -> dict:
    words = [*php.words({"error_reporting": "E_ERROR"}), fetched.HERE / "wordpress_use.php"]
    found = {}
    for step in ("install", "write", "read"):
        said = side.call(*words, step, site, side.server.socket, env=php.environment(), timed=step)
        found |= json.loads(said.splitlines()[-1])
    assert found["error"] == "" and found["failed"] == 0 and found["login"] == "WP_User"
    assert found["search"][0] > 20
    return {"tables": side.has_only_its_engine(), "schema": side.schema(), **found, **{
        statement: side.rows(statement) for statement in (
            "SELECT ID, post_title, post_content, post_status, post_type, comment_count FROM "
            "wp_posts ORDER BY 1",
            "SELECT * FROM wp_comments WHERE comment_ID > 1 ORDER BY 1",
            "SELECT post_id, meta_key, meta_value FROM wp_postmeta WHERE meta_key NOT LIKE "
            "'\\_wp\\_trash%' ORDER BY meta_id",
            "SELECT * FROM wp_term_relationships ORDER BY 1, 2")}}
