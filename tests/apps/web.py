"""Web applications in PHP's own web server."""

import contextlib
import http.cookiejar
import re
import urllib.parse
import urllib.request

import php
import servers
import sides


class Site:
    """A site on this machine, with the cookies that it gave us."""

    def __init__(self, port: int):
        self.address = f"http://127.0.0.1:{port}/"
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, path: str, **query) -> str:
        """A page; fails unless its status is 200."""
        return self._open(path + ("?" if query else "") + urllib.parse.urlencode(query))

    def post(self, path: str, fields: dict) -> str:
        """The page that a form leads to."""
        return self._open(path, urllib.parse.urlencode(fields).encode())

    def answers(self) -> bool:
        try:
            return bool(self.get(""))
        except OSError:
            return False

    def _open(self, path: str, data: bytes = None) -> str:
        with self.opener.open(self.address + path, data, timeout=120) as answer:
            return answer.read().decode()


@contextlib.contextmanager
def served(side, root, script=None, settings: dict = None):
    """A Site of the folder `root`, while the block lasts. `script`: handles each request."""
    port = sides.free_port()
    words = [*php.words({"session.save_path": side.folder, "display_errors": "0",
                         "log_errors": "1", "error_log": side.folder / "php.log",
                         **(settings or {})}), "-S", f"127.0.0.1:{port}", "-t", str(root)]
    with sides.running([*words, *[script] * bool(script)], side.folder / "web.log",
                       **php.environment()):
        site = Site(port)
        servers.wait_until(site.answers, "an answer of PHP's web server")
        yield site


def text(page: str) -> str:
    """What a person reads of a page: without tags, scripts and spaces."""
    page = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)).strip()
