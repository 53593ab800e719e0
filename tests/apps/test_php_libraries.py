"""Doctrine's DBAL and ORM, Laravel's Illuminate\\Database: schemas, relations, transactions."""

import json

import fetched
import php
import pytest


def said(side, root, script: str, *words, **more) -> str:
    settings = {"include_path": root / "usr/share/php", "error_reporting": "E_ALL & ~E_DEPRECATED"}
    return side.call(*php.words(settings), fetched.HERE / script, side.server.socket, *words,
                     env=php.environment(), **more)


def run(side, root, script: str, *words) -> dict:
    return json.loads(said(side, root, script, *words, timed="use").splitlines()[-1])


def test_doctrine(beside):
    root = php.libraries("doctrine", ["php-doctrine-orm", "php-symfony-cache"])

    def use(side) -> dict:
        found = run(side, root, "doctrine_use.php")
        assert len(found["constraints"]) == 1 and found["to be changed"] == []
        # If a table names its engine, Doctrine creates constraints only if the engine is InnoDB.
        assert [found[f"engine {name}"] for name in ("none", "InnoDB", "CHEETAH")] == [1, 1, 0]
        # Nor does Doctrine detect changed constraints in tables of another engine.
        assert found.pop("to be changed back") == (2 if side.label == "InnoDB" else 0)
        assert found["children"].endswith("ForeignKeyConstraintViolationException 1451")
        return {**found, "tables": side.has_only_its_engine(), "schema": side.schema(),
                "checksums": side.checksums()}
    beside(f"Doctrine DBAL {fetched.version(root, 'php-doctrine-dbal')}, ORM "
           f"{fetched.version(root, 'php-doctrine-orm')}", use)


@pytest.mark.parametrize("named", [False, True], ids=["default", "named"])
def test_laravel(beside, named):
    root = php.libraries("laravel", ["php-illuminate-database", "php-illuminate-events",
                                    "php-doctrine-dbal"])

    def use(side) -> dict:
        if named and side.engine.name != "InnoDB":
            # Laravel's strict mode has NO_ENGINE_SUBSTITUTION: another engine is refused.
            assert " 1290 " in said(side, root, "laravel_use.php", "InnoDB", ok=(255,))
        found = run(side, root, "laravel_use.php", *([side.engine.name] if named else []))
        assert (found["twice"], found["no parent"], found["children"]) == (1062, 1452, 1451)
        assert found["nested"] == "Outer" and len(found["words"]) > 40
        return {**found, "tables": side.has_only_its_engine(), "schema": side.schema()}
    how = "engine named in its configuration" if named else "the server's default engine"
    beside(f"Laravel's database {fetched.version(root, 'php-illuminate-database')}, {how}", use)
