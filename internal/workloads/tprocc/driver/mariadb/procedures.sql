CREATE OR REPLACE PROCEDURE tprocc.new_order(w INT, d INT, c INT, n INT, line_list VARCHAR(210))
BEGIN
  DECLARE i, item, supply, quantity, order_id INT DEFAULT 0;
  DECLARE local_only INT DEFAULT 1;
  DECLARE price, amount, total, discount, warehouse_tax, district_tax DECIMAL(14,4) DEFAULT 0;
  DECLARE info CHAR(24);
  DECLARE customer_name VARCHAR(16);
  DECLARE credit CHAR(2);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  SELECT w_tax, c_last, c_credit, c_discount INTO warehouse_tax, customer_name, credit, discount
    FROM customer, warehouse WHERE c_w_id = w AND c_d_id = d AND c_id = c AND w_id = w;
  SELECT d_next_o_id, d_tax INTO order_id, district_tax FROM district WHERE d_w_id = w AND d_id = d FOR UPDATE;
  UPDATE district SET d_next_o_id = order_id + 1 WHERE d_w_id = w AND d_id = d;
  WHILE i < n DO
    SET supply = SUBSTR(line_list, 14 * i + 7, 6), i = i + 1;
    IF supply <> w THEN SET local_only = 0; END IF;
  END WHILE;
  INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
    VALUES (w, d, order_id, c, n, local_only, NOW());
  INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (w, d, order_id);
  SET i = 0;
  WHILE i < n DO
    SET item = SUBSTR(line_list, 14 * i + 1, 6), supply = SUBSTR(line_list, 14 * i + 7, 6),
      quantity = SUBSTR(line_list, 14 * i + 13, 2), price = NULL, i = i + 1;
    SELECT i_price, CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
        WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
        ELSE s_dist_10 END INTO price, info
      FROM item JOIN stock ON s_i_id = i_id WHERE i_id = item AND s_w_id = supply;
    IF price IS NULL THEN
      SIGNAL SQLSTATE '45404' SET MESSAGE_TEXT = 'no such item';
    END IF;
    UPDATE stock SET s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (supply <> w),
        s_quantity = s_quantity - quantity + IF(s_quantity >= quantity + 10, 0, 91)
      WHERE s_w_id = supply AND s_i_id = item;
    SET amount = price * quantity, total = total + amount;
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
        ol_dist_info)
      VALUES (w, d, order_id, i, item, supply, quantity, amount, info);
  END WHILE;
  COMMIT;
  SELECT order_id, total * (1 - discount) * (1 + warehouse_tax + district_tax), customer_name, credit, discount,
    warehouse_tax, district_tax;
END;

CREATE OR REPLACE PROCEDURE tprocc.named(w INT, d INT, name VARCHAR(16), OUT who INT)
BEGIN
  DECLARE n INT DEFAULT 0;
  SET who = NULL;
  SELECT COUNT(*) INTO n FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = name;
  SET n = GREATEST(0, (n + 1) DIV 2 - 1);
  SELECT c_id INTO who FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = name ORDER BY c_first LIMIT n, 1;
  IF who IS NULL THEN
    SIGNAL SQLSTATE '45405' SET MESSAGE_TEXT = 'no customer of that name';
  END IF;
END;

CREATE OR REPLACE PROCEDURE tprocc.payment(w INT, d INT, cw INT, cd INT, c INT, name VARCHAR(16), amount DECIMAL(12,2))
BEGIN
  DECLARE who INT DEFAULT c;
  DECLARE warehouse_name, district_name VARCHAR(10);
  DECLARE balance, discount DECIMAL(12,4);
  DECLARE credit CHAR(2);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  IF who IS NULL THEN CALL named(cw, cd, name, who); END IF;
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
  SELECT w_name INTO warehouse_name FROM warehouse WHERE w_id = w;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d;
  SELECT d_name INTO district_name FROM district WHERE d_w_id = w AND d_id = d;
  UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
      c_payment_cnt = c_payment_cnt + 1,
      c_data = IF(c_credit = 'BC', LEFT(CONCAT_WS(' ', who, cd, cw, d, w, amount, CONCAT('|', c_data)), 500), c_data)
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = who;
  SELECT c_balance, c_credit, c_discount INTO balance, credit, discount FROM customer
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = who;
  INSERT INTO history (h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, h_amount, h_data)
    VALUES (w, d, cw, cd, who, NOW(), amount, CONCAT(warehouse_name, '    ', district_name));
  COMMIT;
  SELECT who, balance, credit, discount;
END;

CREATE OR REPLACE PROCEDURE tprocc.order_status(w INT, d INT, c INT, name VARCHAR(16))
BEGIN
  DECLARE who INT DEFAULT c;
  DECLARE order_id INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  IF who IS NULL THEN CALL named(w, d, name, who); END IF;
  SELECT o_id INTO order_id FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = who ORDER BY o_id DESC LIMIT 1;
  SELECT who, c_balance, order_id, o_carrier_id, o_entry_d,
      (SELECT GROUP_CONCAT(CONCAT_WS(' ', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d)) FROM order_line
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id)
    FROM customer JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id
    WHERE c_w_id = w AND c_d_id = d AND c_id = who AND o_id = order_id;
  COMMIT;
END;

CREATE OR REPLACE PROCEDURE tprocc.delivery(w INT, carrier INT)
BEGIN
  DECLARE d INT DEFAULT 1;
  DECLARE delivered INT DEFAULT 0;
  DECLARE oldest, who INT;
  DECLARE amount DECIMAL(12,2);
  DECLARE moment DATETIME DEFAULT NOW();
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  WHILE d <= 10 DO
    SET oldest = NULL;
    SELECT no_o_id INTO oldest FROM new_order WHERE no_w_id = w AND no_d_id = d ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    IF oldest IS NOT NULL THEN
      DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = oldest;
      UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = oldest;
      SELECT o_c_id INTO who FROM orders WHERE o_w_id = w AND o_d_id = d AND o_id = oldest;
      UPDATE order_line SET ol_delivery_d = moment WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = oldest;
      SELECT SUM(ol_amount) INTO amount FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = oldest;
      UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = w AND c_d_id = d AND c_id = who;
      SET delivered = delivered + 1;
    END IF;
    SET d = d + 1;
  END WHILE;
  COMMIT;
  SELECT delivered;
END;

CREATE OR REPLACE PROCEDURE tprocc.stock_level(w INT, d INT, threshold INT)
BEGIN
  DECLARE next_id INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  SELECT d_next_o_id INTO next_id FROM district WHERE d_w_id = w AND d_id = d;
  SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = w AND s_i_id = ol_i_id
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= next_id - 20 AND ol_o_id < next_id AND s_quantity < threshold;
  COMMIT;
END;
