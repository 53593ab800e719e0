"""A small shop as tools meet it: tables with constraints, full text, generated columns, a trigger,
a view; and a writer beside the tools."""

import random
import time

import pymysql
import servers
import sides

TABLES = """
CREATE TABLE customer (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL,
 country CHAR(2) NOT NULL, note TEXT, UNIQUE KEY (name), KEY (country, name), FULLTEXT KEY (note));
CREATE TABLE purchase (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL,
 placed DATETIME NOT NULL, total DECIMAL(10,2) NOT NULL DEFAULT 0, state ENUM('new','sent','paid')
 NOT NULL DEFAULT 'new', day DATE AS (CAST(placed AS DATE)) STORED, KEY (customer, placed),
 KEY (day), KEY (state, total), CONSTRAINT buyer FOREIGN KEY (customer) REFERENCES customer (id)
 ON UPDATE CASCADE);
CREATE TABLE item (purchase BIGINT UNSIGNED NOT NULL, line INT NOT NULL, product VARCHAR(40),
 amount INT NOT NULL, data BLOB, PRIMARY KEY (purchase, line), KEY (product), CONSTRAINT belongs
 FOREIGN KEY (purchase) REFERENCES purchase (id) ON DELETE CASCADE);
CREATE TABLE account (id INT AUTO_INCREMENT PRIMARY KEY, balance INT NOT NULL, moves INT NOT NULL
 DEFAULT 0, KEY (balance));
INSERT INTO customer (name, country, note) SELECT CONCAT('Name ', seq), ELT(1 + seq % 5, 'de', 'fr',
 'it', 'pl', 'es'), CONCAT('note ', MD5(seq % 97), ' of a customer ', REPEAT('ö', seq % 40))
 FROM seq_1_to_2000;
INSERT INTO purchase (customer, placed, total, state) SELECT 1 + seq * 7 % 2000, '2024-01-01' +
 INTERVAL seq * 37 MINUTE, seq % 997 / 10, ELT(1 + seq % 3, 'new', 'sent', 'paid')
 FROM seq_1_to_10000;
INSERT INTO item SELECT 1 + seq DIV 3, seq % 3, MD5(seq % 500), seq % 9, IF(seq % 100, NULL,
 REPEAT(UNHEX(MD5(seq)), 600)) FROM seq_0_to_29999;
INSERT INTO account (balance) SELECT 1000 FROM seq_1_to_200;
CREATE VIEW open_purchases AS SELECT id, customer, total FROM purchase WHERE state = 'new';
CREATE TRIGGER item_added AFTER INSERT ON item FOR EACH ROW UPDATE purchase SET total = total +
 NEW.amount WHERE id = NEW.purchase;
"""
TOTAL = 200 * 1000
# Lock wait timeout, deadlock: applications then try again.
AGAIN = (1205, 1213)
PAUSE_SECONDS = 0.005


def make(side) -> None:
    """Make it in the side's database."""
    connection = side.server.connect(sides.DATABASE)
    with connection.cursor() as cursor:
        for statement in TABLES.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    connection.close()


class Writer(servers.Client):
    """Moves amounts between accounts; the sum of all stays what it is. It also adds and removes
    accounts without an amount."""

    database, autocommit = sides.DATABASE, False

    def __init__(self, server, number: int = 0):
        super().__init__(server, number)
        self.rng, self.moves = random.Random(number), 0

    def work(self, cursor) -> None:
        """One transaction, if the tool beside lets it."""
        try:
            self.move(cursor)
        except pymysql.OperationalError as failure:
            if failure.args[0] not in AGAIN:
                raise
            self.connection.rollback()
        time.sleep(PAUSE_SECONDS)

    def move(self, cursor) -> None:
        """One transaction."""
        first, second = self.rng.sample(range(1, 201), 2)
        for account, amount in sorted([(first, 7), (second, -7)]):
            cursor.execute("UPDATE account SET balance = balance + %s, moves = moves + 1 WHERE "
                           "id = %s", (amount, account))
        if self.moves % 5 == 0:
            cursor.execute("INSERT INTO account (balance) VALUES (0)")
        if self.moves % 10 == 0:
            cursor.execute("DELETE FROM account WHERE id > 200 ORDER BY id LIMIT 1")
        self.connection.commit()
        self.moves += 1


class Writing:
    """With this, two writers are at work."""

    def __init__(self, side):
        self.side = side
        self.writers = [Writer(side.server, number) for number in range(2)]

    def __enter__(self):
        for writer in self.writers:
            writer.start()
        servers.wait_until(lambda: all(writer.moves for writer in self.writers), "writers")
        return self

    def __exit__(self, *_):
        for writer in self.writers:
            writer.stopping.set()
        for writer in self.writers:
            writer.join(120)
            assert not writer.is_alive() and not writer.failure, writer.failure

    def check(self, database: str = sides.DATABASE) -> None:
        """The sum is what it was, and so is what a transaction left behind."""
        rows = self.side.rows("SELECT SUM(balance), SUM(moves) % 2 FROM account", database)
        assert rows == [(TOTAL, 0)], rows
