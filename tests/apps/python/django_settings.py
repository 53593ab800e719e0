"""Settings for Django's own tests; the environment has the server's socket and the outcome file."""

import json
import os

import pymysql

pymysql.install_as_MySQLdb()

from django.test.runner import DiscoverRunner  # noqa: E402  (after the line above)

SECRET_KEY = "not secret"
USE_TZ = False
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES = {name: {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": "app",
                    "PASSWORD": "app", "HOST": os.environ["APP_SOCKET"],
                    "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"}}
             for name in ("default", "other")}
INSTALLED_APPS = []


class Runner(DiscoverRunner):
    """Records which tests failed and which were skipped."""

    def run_suite(self, suite, **kwargs):
        result = super().run_suite(suite, **kwargs)
        outcome = {"run": result.testsRun}
        for kind in ("failures", "errors", "skipped", "expectedFailures"):
            outcome[kind] = sorted(str(case) for case, _ in getattr(result, kind))
        outcome["unexpectedSuccesses"] = sorted(map(str, result.unexpectedSuccesses))
        with open(os.environ["APP_OUTCOME"], "w", encoding="utf-8") as file:
            json.dump(outcome, file)
        return result


TEST_RUNNER = "django_settings.Runner"
