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
