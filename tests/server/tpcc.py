"""A load like TPC-C: its nine tables, scaled down, its five transactions, and its consistency
conditions.

The schema, the transaction mix and the conditions (3.3.2) follow the specification. The tables have
a hundredth of the specified size so that transactions conflict, and there is no think time. The
load is not a benchmark."""

import random
from pathlib import Path

import listed
import pymysql
import servers

DATABASE = "tpcc"
WAREHOUSES, DISTRICTS, CUSTOMERS, ITEMS = 2, 10, 30, 200
FIRST_ORDERS, FIRST_DELIVERED = 30, 21   # for each district
NAMES = ["BAR", "OUGHT", "ABLE", "PRI", "PRES"]
LISTS = listed.statements(Path(__file__).with_name("tpcc.sql"))


def named(kind: str) -> dict:
    return {heading.removeprefix(kind + " "): found[0] for heading, found in LISTS.items()
            if heading.startswith(kind + " ")}


TABLES = named("table")   # table -> columns
# Clause of the specification -> a query of rows that violate it.
CONDITIONS = {clause: query.format(**named("part")) for clause, query in named("condition").items()}
# Lock wait timeout, deadlock, changes after the snapshot: the transaction is abandoned.
ASKED = "asked for"
REFUSALS = (1205, 1213, 1020, 1412, ASKED)


def create(server, engine: str) -> None:
    """Creates the tables with their initial rows, which satisfy every condition."""
    server.sql(f"CREATE DATABASE {DATABASE}")
    servers.run(server, *(f"CREATE TABLE {name} ({columns}) ENGINE={engine}"
                          for name, columns in TABLES.items()), database=DATABASE)
    fill_all(server)


def fill_all(server) -> None:
    rng = random.Random(1)
    with server.cursor(DATABASE, autocommit=False) as cursor:
        fill(cursor, "item",
             [(i, f"item {i}", price(rng, 1, 100), "data") for i in range(1, ITEMS + 1)])
        cursor.connection.commit()
        for w in range(1, WAREHOUSES + 1):
            fill(cursor, "warehouse", [(w, f"w{w}", 0.1, 10 * CUSTOMERS * DISTRICTS)])
            fill(cursor, "stock", [(w, i, rng.randint(10, 100), f"dist {i}", 0, 0, 0, "data")
                                   for i in range(1, ITEMS + 1)])
            for d in range(1, DISTRICTS + 1):
                fill_district(cursor, rng, w, d)
        cursor.connection.commit()


def fill_district(cursor, rng, w: int, d: int) -> None:
    """Inserts a district, its customers with one payment of 10 each, and its initial orders.
    Delivered orders cost nothing."""
    fill(cursor, "district", [(w, d, f"d{d}", 0.1, 10 * CUSTOMERS, FIRST_ORDERS + 1)])
    fill(cursor, "customer", [(w, d, c, last_name(c), f"first {c}", rng.choice(["GC", "GC", "BC"]),
                               0.1, -10, 10, 1, 0, "data")
                              for c in range(1, CUSTOMERS + 1)])
    fill(cursor, "history",
         [(c, d, w, d, w, "2026-01-01", 10, "first") for c in range(1, CUSTOMERS + 1)])
    for o in range(1, FIRST_ORDERS + 1):
        delivered, lines = o <= FIRST_DELIVERED, rng.randint(5, 15)
        fill(cursor, "orders",
             [(w, d, o, o % CUSTOMERS + 1, "2026-01-01", 1 if delivered else None, lines)])
        fill(cursor, "order_line",
             [(w, d, o, n, rng.randint(1, ITEMS), w, "2026-01-01" if delivered else None, 5,
                                     0 if delivered else price(rng, 1, 9999), "dist")
                                    for n in range(1, lines + 1)])
    fill(cursor, "new_order", [(w, d, o) for o in range(FIRST_DELIVERED + 1, FIRST_ORDERS + 1)])


def fill(cursor, table: str, rows: list) -> None:
    cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)


def price(rng, low: int, high: int) -> str:
    return f"{rng.randint(low * 100, high * 100) / 100:.2f}"


def last_name(c: int) -> str:
    """Returns a last name that several customers of a district share."""
    return NAMES[c % 5] + NAMES[c // 5 % 2]


def violations(cursor) -> dict:
    """Returns the first rows that violate each condition, as this connection sees the tables."""
    found = {}
    for condition, query in CONDITIONS.items():
        if cursor.execute(query + " LIMIT 3"):
            found[condition] = cursor.fetchall()
    return found


class RolledBack(pymysql.MySQLError):
    """The transaction requests its own rollback, like one of a hundred new orders."""


class Client(servers.Client):
    """One terminal, which runs transactions until the server is gone or `stopping` is set."""

    database, autocommit, refusals = DATABASE, False, REFUSALS

    def __init__(self, server, number: int, seed):
        super().__init__(server, number, seed)
        self.orders, self.payments = set(), 0   # acknowledged

    def begin(self, cursor) -> None:
        """Uses one of two isolation levels, each for half of the terminals."""
        level = ["REPEATABLE READ", "READ COMMITTED"][self.number % 2]
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")

    def work(self, cursor) -> None:
        kind = self.rng.choices([self._new_order, self._payment, self._delivery, self._order_status,
                                 self._stock_level], [45, 43, 4, 4, 4])[0]
        order = kind(cursor)
        self.connection.commit()
        # From here on the commit is acknowledged.
        if order:
            self.orders.add(order)
        self.payments += kind == self._payment

    def _one(self, cursor, query: str, *values) -> tuple:
        cursor.execute(query, values)
        row = cursor.fetchone()
        if row is None:
            raise AssertionError(f"client {self.number}: no row for {query} with {values}")
        return row

    def _place(self) -> tuple:
        return self.rng.randint(1, WAREHOUSES), self.rng.randint(1, DISTRICTS), self.rng.randint(
            1, CUSTOMERS)

    def _supplier(self, w: int) -> int:
        return w if self.rng.random() < 0.9 else self.rng.randint(1, WAREHOUSES)

    def _new_order(self, cursor) -> tuple:
        rng, (w, d, c) = self.rng, self._place()
        count, refused = rng.randint(5, 15), rng.random() < 0.01
        self._one(cursor, "SELECT c_discount, w_tax FROM customer JOIN warehouse ON w_id = c_w_id "
                  "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", w, d, c)
        o = self._one(cursor, "SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s "
                      "FOR UPDATE", w, d)[0]
        cursor.execute("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s "
                       "AND d_id = %s", (w, d))
        cursor.execute("INSERT INTO orders VALUES (%s, %s, %s, %s, NOW(), NULL, %s)",
                       (w, d, o, c, count))
        cursor.execute("INSERT INTO new_order VALUES (%s, %s, %s)", (w, d, o))
        for number in range(1, count + 1):
            self._order_line(cursor, w, d, o, number)
        if refused:
            raise RolledBack(ASKED)
        return w, d, o

    def _order_line(self, cursor, w: int, d: int, o: int, number: int) -> None:
        i, quantity = self.rng.randint(1, ITEMS), self.rng.randint(1, 10)
        supplier = self._supplier(w)
        cost = self._one(cursor, "SELECT i_price FROM item WHERE i_id = %s", i)[0]
        left, dist = self._one(cursor, "SELECT s_quantity, s_dist FROM stock WHERE s_w_id = %s "
                               "AND s_i_id = %s FOR UPDATE", supplier, i)
        cursor.execute("UPDATE stock SET s_quantity = %s, s_ytd = s_ytd + %s, s_order_cnt = "
                       "s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %s "
                       "WHERE s_w_id = %s AND s_i_id = %s",
                       (left - quantity + (0 if left >= quantity + 10 else 91), quantity,
                        int(supplier != w), supplier, i))
        cursor.execute("INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)",
                       (w, d, o, number, i, supplier, quantity, cost * quantity, dist))

    def _payment(self, cursor) -> None:
        rng, (w, d, c), amount = self.rng, self._place(), price(self.rng, 1, 5000)
        cw, cd = (w, d) if rng.random() < 0.85 else self._place()[:2]
        cursor.execute("UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", (amount, w))
        cursor.execute("UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s",
                       (amount, w, d))
        if rng.random() < 0.6:
            cursor.execute("SELECT c_id FROM customer WHERE c_w_id = %s AND c_d_id = %s "
                           "AND c_last = %s ORDER BY c_first FOR UPDATE", (cw, cd, last_name(c)))
            named = cursor.fetchall()
            c = named[len(named) // 2][0]
        credit = self._one(cursor, "SELECT c_credit FROM customer WHERE c_w_id = %s AND c_d_id "
                           "= %s AND c_id = %s FOR UPDATE", cw, cd, c)[0]
        text = f"{c} {cd} {cw} {d} {w} {amount} " if credit == "BC" else ""
        cursor.execute("UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = "
                       "c_ytd_payment + %s, c_payment_cnt = c_payment_cnt + 1, "
                       "c_data = LEFT(CONCAT(%s, c_data), 500) WHERE c_w_id = %s AND c_d_id = %s "
                       "AND c_id = %s", (amount, amount, text, cw, cd, c))
        cursor.execute("INSERT INTO history VALUES (%s, %s, %s, %s, %s, NOW(), %s, %s)",
                       (c, cd, cw, d, w, amount, f"client {self.number}"))

    def _delivery(self, cursor) -> None:
        w, carrier = self.rng.randint(1, WAREHOUSES), self.rng.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            cursor.execute("SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s "
                           "ORDER BY no_o_id LIMIT 1 FOR UPDATE", (w, d))
            oldest = cursor.fetchone()
            if oldest is None:
                continue
            place = (w, d, oldest[0])
            cursor.execute("DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s "
                           "AND no_o_id = %s", place)
            c = self._one(cursor, "SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s "
                          "AND o_id = %s FOR UPDATE", *place)[0]
            cursor.execute("UPDATE orders SET o_carrier_id = %s WHERE o_w_id = %s AND o_d_id = %s "
                           "AND o_id = %s", (carrier, *place))
            cursor.execute("UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = %s "
                           "AND ol_d_id = %s AND ol_o_id = %s", place)
            owed = self._one(cursor, "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %s "
                             "AND ol_d_id = %s AND ol_o_id = %s", *place)[0]
            cursor.execute("UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = "
                           "c_delivery_cnt + 1 WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
                           (owed, w, d, c))

    def _order_status(self, cursor) -> None:
        w, d, c = self._place()
        self._one(cursor, "SELECT c_balance, c_first, c_last FROM customer WHERE c_w_id = %s "
                  "AND c_d_id = %s AND c_id = %s", w, d, c)
        o, count = self._one(cursor, "SELECT o_id, o_ol_cnt FROM orders WHERE o_w_id = %s "
                             "AND o_d_id = %s AND o_c_id = %s ORDER BY o_id DESC LIMIT 1", w, d, c)
        lines = self._one(cursor, "SELECT COUNT(*) FROM order_line WHERE ol_w_id = %s "
                          "AND ol_d_id = %s AND ol_o_id = %s", w, d, o)[0]
        if lines != count:
            raise AssertionError(f"client {self.number} sees order {(w, d, o)} with {lines} lines "
                                 f"of {count}")

    def _stock_level(self, cursor) -> None:
        w, d, _ = self._place()
        after = self._one(cursor, "SELECT d_next_o_id FROM district WHERE d_w_id = %s "
                          "AND d_id = %s", w, d)[0]
        self._one(cursor, "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = "
                  "ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id "
                  "BETWEEN %s AND %s AND s_quantity < %s",
                  w, d, after - 20, after - 1, self.rng.randint(10, 20))
