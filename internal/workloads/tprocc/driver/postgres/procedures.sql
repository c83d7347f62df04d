CREATE OR REPLACE FUNCTION tprocc.new_order(w int, d int, c int, items int[], supplies int[], quantities int[],
  OUT order_id int, OUT total numeric, OUT last varchar, OUT credit char(2), OUT discount numeric,
  OUT warehouse_tax numeric, OUT district_tax numeric)
LANGUAGE plpgsql AS $$
DECLARE
  moment timestamp := clock_timestamp();
  price numeric;
  amount numeric;
  info char(24);
  amounts numeric[] := '{}';
  infos text[] := '{}';
BEGIN
  SELECT w_tax, c_last, c_credit, c_discount INTO STRICT warehouse_tax, last, credit, discount
    FROM tprocc.customer, tprocc.warehouse WHERE c_w_id = w AND c_d_id = d AND c_id = c AND w_id = w;
  UPDATE tprocc.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
    RETURNING d_next_o_id - 1, d_tax INTO STRICT order_id, district_tax;
  INSERT INTO tprocc.orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
    VALUES (w, d, order_id, c, cardinality(items), (w = ALL (supplies))::int, moment);
  INSERT INTO tprocc.new_order VALUES (w, d, order_id);
  total := 0;
  FOR i IN 1 .. cardinality(items) LOOP
    UPDATE tprocc.stock SET s_quantity = s_quantity - quantities[i]
          + CASE WHEN s_quantity >= quantities[i] + 10 THEN 0 ELSE 91 END,
        s_ytd = s_ytd + quantities[i], s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + (supplies[i] <> w)::int
      FROM tprocc.item WHERE s_w_id = supplies[i] AND s_i_id = items[i] AND i_id = items[i]
      RETURNING i_price, CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
        WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
        ELSE s_dist_10 END INTO price, info;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'no item % in warehouse %', items[i], supplies[i] USING ERRCODE = 'TP404';
    END IF;
    amount := price * quantities[i];
    total := total + amount;
    amounts := amounts || amount;
    infos := infos || info::text;
  END LOOP;
  INSERT INTO tprocc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
      ol_dist_info)
    SELECT w, d, order_id, n, i, s, q, a, t
      FROM unnest(items, supplies, quantities, amounts, infos) WITH ORDINALITY AS line (i, s, q, a, t, n);
  total := total * (1 - discount) * (1 + warehouse_tax + district_tax);
END $$;

CREATE OR REPLACE FUNCTION tprocc.named(w int, d int, name varchar) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
  ids int[];
BEGIN
  SELECT array_agg(c_id ORDER BY c_first) INTO ids
    FROM tprocc.customer WHERE c_w_id = w AND c_d_id = d AND c_last = name;
  IF ids IS NULL THEN
    RAISE EXCEPTION 'no customer % in warehouse %, district %', name, w, d USING ERRCODE = 'TP405';
  END IF;
  RETURN ids[(cardinality(ids) + 1) / 2];
END $$;

CREATE OR REPLACE FUNCTION tprocc.payment(w int, d int, cw int, cd int, c int, name varchar, amount numeric,
  OUT who int, OUT balance numeric, OUT credit char(2), OUT discount numeric)
LANGUAGE plpgsql AS $$
DECLARE
  warehouse_name varchar;
  district_name varchar;
BEGIN
  who := c;
  IF c IS NULL THEN
    who := tprocc.named(cw, cd, name);
  END IF;
  UPDATE tprocc.warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO STRICT warehouse_name;
  UPDATE tprocc.district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d
    RETURNING d_name INTO STRICT district_name;
  UPDATE tprocc.customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
      c_payment_cnt = c_payment_cnt + 1,
      c_data = CASE WHEN c_credit = 'BC'
        THEN left(concat_ws(' ', who, cd, cw, d, w, amount, '|') || c_data, 500) ELSE c_data END
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = who
    RETURNING c_balance, c_credit, c_discount INTO STRICT balance, credit, discount;
  INSERT INTO tprocc.history VALUES
    (w, d, cw, cd, who, clock_timestamp(), amount, warehouse_name || '    ' || district_name);
END $$;

CREATE OR REPLACE FUNCTION tprocc.order_status(w int, d int, c int, name varchar,
  OUT who int, OUT balance numeric, OUT order_id int, OUT carrier int, OUT entered timestamp, OUT lines text)
LANGUAGE plpgsql AS $$
BEGIN
  who := c;
  IF c IS NULL THEN
    who := tprocc.named(w, d, name);
  END IF;
  SELECT c_balance INTO STRICT balance FROM tprocc.customer WHERE c_w_id = w AND c_d_id = d AND c_id = who;
  SELECT o_id, o_carrier_id, o_entry_d INTO STRICT order_id, carrier, entered FROM tprocc.orders
    WHERE o_w_id = w AND o_d_id = d AND o_c_id = who ORDER BY o_id DESC LIMIT 1;
  SELECT string_agg(concat_ws(' ', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d), '; ') INTO lines
    FROM tprocc.order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id;
END $$;

CREATE OR REPLACE FUNCTION tprocc.delivery(w int, carrier int, OUT delivered int)
LANGUAGE plpgsql AS $$
DECLARE
  moment timestamp := clock_timestamp();
  oldest int;
  who int;
  amount numeric;
BEGIN
  delivered := 0;
  FOR d IN 1 .. 10 LOOP
    SELECT no_o_id INTO oldest FROM tprocc.new_order WHERE no_w_id = w AND no_d_id = d
      ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM tprocc.new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = oldest;
    UPDATE tprocc.orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = oldest
      RETURNING o_c_id INTO STRICT who;
    WITH lines AS (UPDATE tprocc.order_line SET ol_delivery_d = moment
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = oldest RETURNING ol_amount)
      SELECT sum(ol_amount) INTO amount FROM lines;
    UPDATE tprocc.customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = w AND c_d_id = d AND c_id = who;
    delivered := delivered + 1;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION tprocc.stock_level(w int, d int, threshold int, OUT low bigint)
LANGUAGE plpgsql AS $$
DECLARE
  next int;
BEGIN
  SELECT d_next_o_id INTO STRICT next FROM tprocc.district WHERE d_w_id = w AND d_id = d;
  SELECT count(DISTINCT s_i_id) INTO low FROM tprocc.order_line JOIN tprocc.stock ON s_w_id = w AND s_i_id = ol_i_id
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= next - 20 AND ol_o_id < next AND s_quantity < threshold;
END $$;
