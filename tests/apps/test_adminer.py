"""Adminer: pages for tables, constraints and searches; forms change a row and create a table."""

import re

import fetched
import shop
import sides
import web

TIMES = re.compile(r"\(?\d+\.\d+ s\)?")
# Adminer checks the engine's name, and shows constraints and offers FULLTEXT only for InnoDB.
ONLY_INNODB = re.compile(r"Foreign keys (Source Target .*?)?Add foreign key ")
BY_NAME = ["foreign", "indexes", "create"]


def test_adminer(beside):
    root = fetched.debian("adminer", ["adminer"], [])

    def use(side) -> dict:
        shop.make(side)
        found = {}
        place = root / "usr/share/adminer"
        with web.served(side, place, place / "adminer.php", {"error_reporting": "0"}) as site:
            given = {"server": f"localhost:{side.server.socket}", "username": sides.USER,
                     "db": sides.DATABASE}
            site.post("", {"auth[driver]": "server", "auth[server]": given["server"],
                           "auth[username]": sides.USER, "auth[password]": sides.PASSWORD,
                           "auth[db]": sides.DATABASE})
            for page in ({}, {"table": "customer"}, {"table": "purchase"}, {"table": "item"},
                         {"foreign": "item"}, {"indexes": "customer"}, {"create": "purchase"},
                         {"schema": ""}, {"privileges": ""}, {"dump": ""}, {"sql": ""},
                         {"trigger": "item", "name": "item_added"},
                         {"select": "item", "where[0][col]": "product", "where[0][op]": "LIKE %%",
                          "where[0][val]": "ab", "limit": "20", "order[0]": "purchase"},
                         {"select": "customer", "fulltext[0]": "customer", "boolean[0]": "1",
                          "limit": "20"}, {"edit": "customer", "where[id]": "7"}):
                text = web.text(site.get("", **given, **page))
                assert sides.DATABASE in text and "Access denied" not in text, text[:500]
                found[str(page)] = text
            token = re.search(r'name="token" value="([\d:]+)"', site.get("", **given, sql=""))
            said = site.post("?" + web.urllib.parse.urlencode({**given, "sql": ""}), {
                "query": "CREATE TABLE made (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES "
                         "customer (id));\nINSERT INTO made VALUES (1, 2);\nDELETE FROM customer "
                         "WHERE id = 2;\nEXPLAIN SELECT * FROM purchase JOIN item ON purchase = id "
                         "WHERE day = '2024-03-03';",
                "limit": "", "token": token.group(1)})
            found["statements"] = web.text(said)
            assert "a foreign key constraint fails" in said
        for name, page in list(found.items()):
            if any(f"'{word}'" in name for word in BY_NAME):
                del found[name]
                continue
            shown = ONLY_INNODB.search(page)
            assert bool(shown) == (side.label == "InnoDB" and name.startswith("{'table'"))
            page = ONLY_INNODB.sub("", page)
            page = TIMES.sub("", page.replace(str(side.server.socket), ""))
            page = page.replace(side.engine.name, "ENGINE")
            # The table list shows sizes and estimated row counts. A plan shows estimates, too.
            found[name] = re.sub(r"[\d,]+", "#", page) if name in ("{}", "statements") else page
        return {"tables": side.has_only_its_engine(), **found}
    beside(f"Adminer {fetched.version(root, 'adminer')}", use)
