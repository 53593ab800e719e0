-- tables
CREATE TABLE shop.customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL,
    referrer INT, UNIQUE (name), CONSTRAINT by_whom FOREIGN KEY (referrer) REFERENCES customers
    (id) ON DELETE SET NULL) ENGINE=InnoDB COMMENT 'who; \'buys\' ENGINE=InnoDB';
CREATE TABLE shop.orders (customer INT NOT NULL, number INT NOT NULL CHECK (number > 0), last_item
    INT, paid DECIMAL(10,2) NOT NULL DEFAULT 0, half DECIMAL(10,2) AS (paid / 2) PERSISTENT,
    double_paid DECIMAL(11,2) AS (paid * 2), PRIMARY KEY (customer, number), KEY paid (paid),
    FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE ON UPDATE CASCADE)
    ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4;
CREATE TABLE crm.products (code CHAR(8) CHARACTER SET latin1 PRIMARY KEY, what TEXT) ENGINE=InnoDB;
CREATE TABLE shop.items (id INT AUTO_INCREMENT PRIMARY KEY, customer INT, number INT, product
    CHAR(8) CHARACTER SET latin1 NOT NULL, KEY whose (customer, number), KEY products (product),
    CONSTRAINT of_order FOREIGN KEY (customer, number) REFERENCES orders (customer, number) ON
    UPDATE CASCADE ON DELETE NO ACTION, CONSTRAINT of_product FOREIGN KEY (product) REFERENCES
    crm.products (code)) ENGINE=InnoDB AUTO_INCREMENT=777777;
ALTER TABLE shop.orders ADD CONSTRAINT last FOREIGN KEY (last_item) REFERENCES items (id) ON
    DELETE SET NULL;
CREATE TABLE crm.`odd``n a.me` (`a``b` INT PRIMARY KEY, `c	d` INT, e INT, CONSTRAINT `x-y z`
    FOREIGN KEY (`c	d`) REFERENCES shop.customers (id) ON DELETE CASCADE, KEY e (e), FOREIGN KEY
    (e) REFERENCES `odd``n a.me` (`a``b`)) ENGINE=InnoDB;
CREATE TABLE shop.alone (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT 0, body
    LONGTEXT, e ENUM('a', 'b'), UNIQUE (at, id), FULLTEXT words (body)) ENGINE=InnoDB;
CREATE TABLE shop.parts (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=InnoDB PARTITION BY RANGE (id)
    (PARTITION p0 VALUES LESS THAN (50), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE SEQUENCE shop.numbers START WITH 7 INCREMENT BY 3 ENGINE=InnoDB;
CREATE VIEW shop.names AS SELECT name FROM shop.customers;
CREATE TRIGGER shop.loud BEFORE INSERT ON shop.customers FOR EACH ROW SET NEW.name =
    UPPER(NEW.name);

-- rows
INSERT INTO shop.customers (id, name, referrer) SELECT seq, CONCAT('name ', seq), NULLIF(seq DIV
    3, 0) FROM seq_1_to_{n};
INSERT INTO shop.orders (customer, number, paid) SELECT 1 + seq DIV 3, 1 + seq % 3, seq FROM
    seq_1_to_{n};
INSERT INTO crm.products SELECT CONCAT('p', seq), REPEAT('text ', seq % 100) FROM seq_1_to_500;
INSERT INTO shop.items (customer, number, product) SELECT IF(seq % 7, 1 + seq DIV 3, NULL), 1 +
    seq % 3, CONCAT('p', 1 + seq % 500) FROM seq_1_to_{n};
UPDATE shop.orders o JOIN (SELECT customer, number, MAX(id) id FROM shop.items GROUP BY 1, 2) i
    USING (customer, number) SET o.last_item = i.id;
INSERT INTO crm.`odd``n a.me` SELECT seq, NULLIF(seq % 9, 0), seq FROM seq_1_to_100;
INSERT INTO shop.alone (at, body, e) SELECT IF(seq % 3, FROM_UNIXTIME(1e9 + seq), 0),
    REPEAT(MD5(seq), seq % 400), 'b' FROM seq_1_to_{n};
INSERT INTO shop.parts SELECT seq, seq % 10 FROM seq_1_to_200;
SELECT NEXTVAL(shop.numbers);
