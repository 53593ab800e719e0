"""Web applications run by PHP's built-in web server."""

import contextlib
import http.cookiejar
import re
import urllib.parse
import urllib.request

import php
import servers
import sides


class Site:
    """A client of a web site on this machine. It keeps the site's cookies."""

    def __init__(self, port: int):
        self.address = f"http://127.0.0.1:{port}/"
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, path: str, **query) -> str:
        """Returns a page. Fails unless the status is 200."""
        return self._open(path + ("?" if query else "") + urllib.parse.urlencode(query))

    def post(self, path: str, fields: dict) -> str:
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
    """Serves the folder `root` as a Site during the block. `script` may handle each request."""
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
    """Returns the visible text of a page, with whitespace collapsed."""
    page = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)).strip()
