"""A load in the manner of TPC-C: its nine tables, small, its five transactions, and its consistency
conditions.

The schema, the mix and the conditions (3.3.2) are those of the specification; tables are a
hundredth of its size, so that transactions meet, and there is no think time: it measures nothing.
"""

import random

import pymysql
import servers

DATABASE = "tpcc"
WAREHOUSES, DISTRICTS, CUSTOMERS, ITEMS = 2, 10, 30, 200
FIRST_ORDERS, FIRST_DELIVERED = 30, 21   # of each district
NAMES = ["BAR", "OUGHT", "ABLE", "PRI", "PRES"]
TABLES = {
    "warehouse":
        "w_id INT PRIMARY KEY, w_name VARCHAR(10), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2)",
    "district":
        """d_w_id INT, d_id INT, d_name VARCHAR(10), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2),
        d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)""",
    "customer":
        """c_w_id INT, c_d_id INT, c_id INT, c_last VARCHAR(16), c_first VARCHAR(16), c_credit
        CHAR(2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment
        DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY
        (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first)""",
    "history":
        """h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME,
        h_amount DECIMAL(6,2), h_data VARCHAR(24)""",
    "orders":
        """o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d DATETIME, o_carrier_id INT,
        o_ol_cnt INT, PRIMARY KEY (o_w_id, o_d_id, o_id), UNIQUE KEY by_customer (o_w_id,
        o_d_id, o_c_id, o_id)""",
    "new_order": "no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "order_line":
        """ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT,
        ol_delivery_d DATETIME, ol_quantity INT, ol_amount DECIMAL(6,2), ol_dist_info
        CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)""",
    "item": "i_id INT PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50)",
    "stock":
        """s_w_id INT, s_i_id INT, s_quantity INT, s_dist CHAR(24), s_ytd INT, s_order_cnt INT,
        s_remote_cnt INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)""",
}
PAID = "SELECT h_c_w_id w, h_c_d_id d, h_c_id c, SUM(h_amount) paid FROM history GROUP BY 1, 2, 3"
DELIVERED = ("SELECT o_w_id w, o_d_id d, o_c_id c, SUM(ol_amount) owed FROM orders JOIN order_line "
             "ON ol_w_id = o_w_id AND ol_d_id = o_d_id "
             "AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3")
LINES = "SELECT ol_w_id w, ol_d_id d, ol_o_id o, COUNT(*) n FROM order_line GROUP BY 1, 2, 3"
# Clause of the specification -> rows that violate it.
CONDITIONS = {
    "3.3.2.1: W_YTD = sum(D_YTD)":
        """SELECT w_id, w_ytd, SUM(d_ytd) s FROM warehouse JOIN district ON d_w_id = w_id GROUP
        BY w_id, w_ytd HAVING w_ytd <> s""",
    "3.3.2.2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)":
        """SELECT * FROM (SELECT d_w_id, d_id, d_next_o_id - 1 last, (SELECT MAX(o_id) FROM
        orders WHERE o_w_id = d_w_id AND o_d_id = d_id) o, (SELECT MAX(no_o_id) FROM new_order
        WHERE no_w_id = d_w_id AND no_d_id = d_id) n FROM district) t WHERE NOT last <=> o OR
        n <> last""",
    "3.3.2.3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER":
        """SELECT no_w_id, no_d_id, MAX(no_o_id) a, MIN(no_o_id) b, COUNT(*) n FROM new_order
        GROUP BY 1, 2 HAVING a - b + 1 <> n""",
    "3.3.2.4: sum(O_OL_CNT) = rows in ORDER-LINE":
        """SELECT * FROM (SELECT o_w_id w, o_d_id d, SUM(o_ol_cnt) a FROM orders GROUP BY 1, 2) x
        LEFT JOIN (SELECT ol_w_id w, ol_d_id d, COUNT(*) b FROM order_line GROUP BY 1, 2) y
        USING (w, d) WHERE NOT a <=> b""",
    "3.3.2.5: O_CARRIER_ID is null where there is a row in NEW-ORDER, and only there":
        """SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND
        no_d_id = o_d_id AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT
        NULL)""",
    "3.3.2.6: O_OL_CNT = rows in ORDER-LINE, for each order":
        f"""SELECT o_w_id, o_d_id, o_id, o_ol_cnt, n FROM orders LEFT JOIN ({LINES}) l ON w =
        o_w_id AND d = o_d_id AND o = o_id WHERE NOT o_ol_cnt <=> n""",
    "3.3.2.7: OL_DELIVERY_D is null where O_CARRIER_ID is, and only there":
        """SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line LEFT JOIN orders ON o_w_id
        = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id WHERE o_id IS NULL OR (ol_delivery_d
        IS NULL) <> (o_carrier_id IS NULL)""",
    "3.3.2.8: W_YTD = sum(H_AMOUNT)":
        """SELECT w_id, w_ytd, SUM(h_amount) s FROM warehouse JOIN history ON h_w_id = w_id GROUP
        BY w_id, w_ytd HAVING w_ytd <> s""",
    "3.3.2.9: D_YTD = sum(H_AMOUNT)":
        """SELECT d_w_id, d_id, d_ytd, SUM(h_amount) s FROM district JOIN history ON h_w_id =
        d_w_id AND h_d_id = d_id GROUP BY 1, 2, 3 HAVING d_ytd <> s""",
    "3.3.2.10: C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT)":
        f"""SELECT c_w_id, c_d_id, c_id, c_balance, owed, paid FROM customer LEFT JOIN ({PAID}) p
        ON p.w = c_w_id AND p.d = c_d_id AND p.c = c_id LEFT JOIN ({DELIVERED}) o ON o.w =
        c_w_id AND o.d = c_d_id AND o.c = c_id WHERE c_balance <> COALESCE(owed, 0) -
        COALESCE(paid, 0)""",
    "3.3.2.12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered)":
        f"""SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, owed FROM customer LEFT JOIN
        ({DELIVERED}) o ON o.w = c_w_id AND o.d = c_d_id AND o.c = c_id WHERE c_balance +
        c_ytd_payment <> COALESCE(owed, 0)""",
}
# Lock waits, deadlocks, and a row or a definition that has changed since the snapshot: the
# transaction is given up and another one tried.
RETRIED = (1205, 1213, 1020, 1412)


def create(server, engine: str) -> None:
    """The tables with their first rows, which fulfil every condition."""
    server.sql(f"CREATE DATABASE {DATABASE}")
    for name, columns in TABLES.items():
        server.sql(f"CREATE TABLE {name} ({columns}) ENGINE={engine}", DATABASE)
    fill_all(server)


def fill_all(server) -> None:
    """The first rows of all tables."""
    rng = random.Random(1)
    connection = server.connect(DATABASE, autocommit=False)
    with connection.cursor() as cursor:
        fill(cursor, "item",
             [(i, f"item {i}", price(rng, 1, 100), "data") for i in range(1, ITEMS + 1)])
        connection.commit()
        for w in range(1, WAREHOUSES + 1):
            fill(cursor, "warehouse", [(w, f"w{w}", 0.1, 10 * CUSTOMERS * DISTRICTS)])
            fill(cursor, "stock", [(w, i, rng.randint(10, 100), f"dist {i}", 0, 0, 0, "data")
                                   for i in range(1, ITEMS + 1)])
            for d in range(1, DISTRICTS + 1):
                fill_district(cursor, rng, w, d)
    connection.commit()
    connection.close()


def fill_district(cursor, rng, w: int, d: int) -> None:
    """A district, its customers with one payment of 10 each, and its first orders; those that are
    delivered cost nothing."""
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
    """Insert whole rows."""
    cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)


def price(rng, low: int, high: int) -> str:
    """An amount with two digits."""
    return f"{rng.randint(low * 100, high * 100) / 100:.2f}"


def last_name(c: int) -> str:
    """Several customers of a district have the same."""
    return NAMES[c % 5] + NAMES[c // 5 % 2]


def violations(cursor) -> dict:
    """Condition -> the first rows that violate it, as this connection sees the tables."""
    found = {}
    for condition, query in CONDITIONS.items():
        cursor.execute(query + " LIMIT 3")
        rows = cursor.fetchall()
        if rows:
            found[condition] = rows
    return found


class RolledBack(Exception):
    """The transaction asks for its own rollback, as one new order of a hundred does."""


class Client(servers.Client):
    """One terminal: transaction after transaction until the server is gone or `stopping` is set."""

    database, autocommit = DATABASE, False

    def __init__(self, server, number: int, seed):
        super().__init__(server, number)
        self.rng = random.Random(seed)
        self.orders, self.payments, self.retries, self.done = set(), 0, 0, 0   # acknowledged

    def begin(self, cursor) -> None:
        """Half of the terminals use each of the two isolation levels."""
        level = ["REPEATABLE READ", "READ COMMITTED"][self.number % 2]
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")

    def work(self, cursor) -> None:
        """One transaction."""
        kind = self.rng.choices([self._new_order, self._payment, self._delivery, self._order_status,
                                 self._stock_level], [45, 43, 4, 4, 4])[0]
        try:
            order = kind(cursor)
            self.connection.commit()
        except RolledBack:
            self.connection.rollback()
            return
        except pymysql.MySQLError as failure:
            if failure.args[0] not in RETRIED:
                raise
            self.connection.rollback()
            self.retries += 1
            return
        # From here on the commit is acknowledged.
        self.done += 1
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
        o = self._one(cursor,
                      "SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s FOR "
                      "UPDATE", w, d)[0]
        cursor.execute("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s "
                       "AND d_id = %s", (w, d))
        cursor.execute("INSERT INTO orders VALUES (%s, %s, %s, %s, NOW(), NULL, %s)",
                       (w, d, o, c, count))
        cursor.execute("INSERT INTO new_order VALUES (%s, %s, %s)", (w, d, o))
        for number in range(1, count + 1):
            self._order_line(cursor, w, d, o, number)
        if refused:
            raise RolledBack
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
        credit = self._one(cursor,
                           "SELECT c_credit FROM customer WHERE c_w_id = %s AND c_d_id = %s "
                           "AND c_id = %s FOR UPDATE", cw, cd, c)[0]
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
            cursor.execute("SELECT no_o_id FROM new_order WHERE no_w_id = %s "
                           "AND no_d_id = %s ORDER "
                           "BY no_o_id LIMIT 1 FOR UPDATE", (w, d))
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
                           "c_delivery_cnt + 1 "
                           "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", (owed, w, d, c))

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
        self._one(cursor, "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock "
                  "ON s_w_id = ol_w_id AND s_i_id = ol_i_id "
                          "WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id BETWEEN %s AND %s "
                  "AND s_quantity < %s",
                  w, d, after - 20, after - 1, self.rng.randint(10, 20))
