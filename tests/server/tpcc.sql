-- part PAID
SELECT h_c_w_id w, h_c_d_id d, h_c_id c, SUM(h_amount) paid FROM history GROUP BY 1, 2, 3;

-- part DELIVERED
SELECT o_w_id w, o_d_id d, o_c_id c, SUM(ol_amount) owed FROM orders JOIN order_line ON ol_w_id =
    o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2,
    3;

-- part LINES
SELECT ol_w_id w, ol_d_id d, ol_o_id o, COUNT(*) n FROM order_line GROUP BY 1, 2, 3;

-- table warehouse
w_id INT PRIMARY KEY, w_name VARCHAR(10), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2);

-- table district
d_w_id INT, d_id INT, d_name VARCHAR(10), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id
    INT, PRIMARY KEY (d_w_id, d_id);

-- table customer
c_w_id INT, c_d_id INT, c_id INT, c_last VARCHAR(16), c_first VARCHAR(16), c_credit CHAR(2),
    c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt
    INT, c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name
    (c_w_id, c_d_id, c_last, c_first);

-- table history
h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME, h_amount
    DECIMAL(6,2), h_data VARCHAR(24);

-- table orders
o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_entry_d DATETIME, o_carrier_id INT, o_ol_cnt INT,
    PRIMARY KEY (o_w_id, o_d_id, o_id), UNIQUE KEY by_customer (o_w_id, o_d_id, o_c_id, o_id);

-- table new_order
no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id);

-- table order_line
ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_supply_w_id INT,
    ol_delivery_d DATETIME, ol_quantity INT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24),
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);

-- table item
i_id INT PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50);

-- table stock
s_w_id INT, s_i_id INT, s_quantity INT, s_dist CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt
    INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id);

-- condition 3.3.2.1: W_YTD = sum(D_YTD)
SELECT w_id, w_ytd, SUM(d_ytd) s FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id,
    w_ytd HAVING w_ytd <> s;

-- condition 3.3.2.2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)
SELECT * FROM (SELECT d_w_id, d_id, d_next_o_id - 1 last, (SELECT MAX(o_id) FROM orders WHERE
    o_w_id = d_w_id AND o_d_id = d_id) o, (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id =
    d_w_id AND no_d_id = d_id) n FROM district) t WHERE NOT last <=> o OR n <> last;

-- condition 3.3.2.3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER
SELECT no_w_id, no_d_id, MAX(no_o_id) a, MIN(no_o_id) b, COUNT(*) n FROM new_order GROUP BY 1, 2
    HAVING a - b + 1 <> n;

-- condition 3.3.2.4: sum(O_OL_CNT) = rows in ORDER-LINE
SELECT * FROM (SELECT o_w_id w, o_d_id d, SUM(o_ol_cnt) a FROM orders GROUP BY 1, 2) x LEFT JOIN
    (SELECT ol_w_id w, ol_d_id d, COUNT(*) b FROM order_line GROUP BY 1, 2) y USING (w, d) WHERE
    NOT a <=> b;

-- condition 3.3.2.5: O_CARRIER_ID is null where there is a row in NEW-ORDER, and only there
SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id =
    o_d_id AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL);

-- condition 3.3.2.6: O_OL_CNT = rows in ORDER-LINE, for each order
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, n FROM orders LEFT JOIN ({LINES}) l ON w = o_w_id AND d =
    o_d_id AND o = o_id WHERE NOT o_ol_cnt <=> n;

-- condition 3.3.2.7: OL_DELIVERY_D is null where O_CARRIER_ID is, and only there
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id
    AND o_d_id = ol_d_id AND o_id = ol_o_id WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <>
    (o_carrier_id IS NULL);

-- condition 3.3.2.8: W_YTD = sum(H_AMOUNT)
SELECT w_id, w_ytd, SUM(h_amount) s FROM warehouse JOIN history ON h_w_id = w_id GROUP BY w_id,
    w_ytd HAVING w_ytd <> s;

-- condition 3.3.2.9: D_YTD = sum(H_AMOUNT)
SELECT d_w_id, d_id, d_ytd, SUM(h_amount) s FROM district JOIN history ON h_w_id = d_w_id AND
    h_d_id = d_id GROUP BY 1, 2, 3 HAVING d_ytd <> s;

-- condition 3.3.2.10: C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT)
SELECT c_w_id, c_d_id, c_id, c_balance, owed, paid FROM customer LEFT JOIN ({PAID}) p ON p.w =
    c_w_id AND p.d = c_d_id AND p.c = c_id LEFT JOIN ({DELIVERED}) o ON o.w = c_w_id AND o.d =
    c_d_id AND o.c = c_id WHERE c_balance <> COALESCE(owed, 0) - COALESCE(paid, 0);

-- condition 3.3.2.12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered)
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, owed FROM customer LEFT JOIN ({DELIVERED})
    o ON o.w = c_w_id AND o.d = c_d_id AND o.c = c_id WHERE c_balance + c_ytd_payment <>
    COALESCE(owed, 0);

-- planted 3.3.2.1
UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1;

-- planted 3.3.2.2
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 2 AND d_id = 3;

-- planted 3.3.2.3
DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 25;

-- planted 3.3.2.4
DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 10 AND ol_o_id = 30 AND ol_number = 1;

-- planted 3.3.2.5
UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1;

-- planted 3.3.2.6
UPDATE order_line SET ol_o_id = 29, ol_number = 99 WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 30 AND ol_number = 1;

-- planted 3.3.2.7
UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2;

-- planted 3.3.2.8
UPDATE history SET h_w_id = 1 WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 1;

-- planted 3.3.2.9
UPDATE history SET h_d_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1;

-- planted 3.3.2.10
UPDATE history SET h_c_id = 2 WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 1;

-- planted 3.3.2.12
UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 1 AND c_d_id = 4 AND c_id = 7;
