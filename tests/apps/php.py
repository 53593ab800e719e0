"""PHP from Debian's packages, with the extensions that the applications require."""

from pathlib import Path

import fetched
from cheetah_tools import setup

RELEASE, API = "8.2", "20220829"
PACKAGES = [f"php{RELEASE}-{name}" for name in ("cli", "common", "mysql", "mbstring", "xml", "intl",
                                                "opcache", "readline")]
PROGRAM = f"usr/bin/php{RELEASE}"
FOLDER = f"usr/lib/php/{API}"
EXTENSIONS = ["mysqlnd", "mysqli", "pdo", "pdo_mysql", "mbstring", "dom", "xml", "simplexml",
              "xmlreader", "xmlwriter", "intl", "iconv", "ctype", "tokenizer", "fileinfo", "phar",
              "posix", "calendar"]
# Packages that PACKAGES already includes or that no application here needs.
IN_PHP = {"php-cli", "php-common", "php-json", "php-mysql", "php-mbstring", "php-xml", "php-intl",
          "php-curl"}


def libraries(name: str, packages: list) -> Path:
    """Returns the folder with these PHP packages and all PHP packages they depend on."""
    def make(fresh: Path) -> None:
        found, left = set(), list(packages)
        while left:
            package = left.pop()
            if package not in found and package not in IN_PHP:
                found.add(package)
                left += [each for each in fetched.archive().depends(package)
                         if each.startswith("php-")]
        fetched.unpack(sorted(found), [], fresh)
    return fetched.made(name, repr(packages), make)


def words(settings: dict = None) -> list:
    """Returns the start of a command that runs PHP with all extensions and only these settings."""
    root = fetched.debian("php", PACKAGES,
                          [PROGRAM, *(f"{FOLDER}/{name}.so" for name in EXTENSIONS)])
    given = {"extension_dir": root / FOLDER, "memory_limit": "1G", "display_errors": "stderr",
             "date.timezone": "UTC", **(settings or {})}
    pairs = [f"{key}={value}" for key, value in given.items()]
    pairs += [f"extension={name}" for name in EXTENSIONS]
    return [str(root / PROGRAM), "-n", *(word for pair in pairs for word in ("-d", pair))]


def environment() -> dict:
    return setup.library_environment(fetched.PLACE / "php")
