CREATE OR ALTER PROCEDURE tprocc.new_order @w INT, @d INT, @c INT, @n INT, @line_list VARCHAR(210) AS
BEGIN
  SET NOCOUNT ON; SET XACT_ABORT ON;
  DECLARE @i INT = 0, @item INT, @supply INT, @quantity INT, @order_id INT, @local INT = 1, @price DECIMAL(5,2),
    @amount DECIMAL(6,2), @total DECIMAL(14,4) = 0, @discount DECIMAL(4,4), @warehouse_tax DECIMAL(4,4),
    @district_tax DECIMAL(4,4), @info CHAR(24), @last VARCHAR(16), @credit CHAR(2), @moment DATETIME2(0) = SYSDATETIME();
  BEGIN TRANSACTION;
  SELECT @warehouse_tax = w_tax, @last = c_last, @credit = c_credit, @discount = c_discount
    FROM tprocc.customer CROSS JOIN tprocc.warehouse WHERE c_w_id = @w AND c_d_id = @d AND c_id = @c AND w_id = @w;
  UPDATE tprocc.district SET @order_id = d_next_o_id, @district_tax = d_tax, d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = @w AND d_id = @d;
  WHILE @i < @n
  BEGIN
    IF CAST(SUBSTRING(@line_list, 14 * @i + 7, 6) AS INT) <> @w SET @local = 0;
    SET @i = @i + 1;
  END;
  INSERT INTO tprocc.orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
    VALUES (@w, @d, @order_id, @c, @n, @local, @moment);
  INSERT INTO tprocc.new_order (no_w_id, no_d_id, no_o_id) VALUES (@w, @d, @order_id);
  SET @i = 0;
  WHILE @i < @n
  BEGIN
    SELECT @item = SUBSTRING(@line_list, 14 * @i + 1, 6), @supply = SUBSTRING(@line_list, 14 * @i + 7, 6),
      @quantity = SUBSTRING(@line_list, 14 * @i + 13, 2), @price = NULL, @i = @i + 1;
    SELECT @price = i_price FROM tprocc.item WHERE i_id = @item;
    IF @price IS NULL THROW 50404, 'no such item', 1;
    UPDATE tprocc.stock SET s_ytd = s_ytd + @quantity, s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + IIF(@supply <> @w, 1, 0),
        s_quantity = s_quantity - @quantity + IIF(s_quantity >= @quantity + 10, 0, 91),
        @info = CASE @d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
          WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
          ELSE s_dist_10 END
      WHERE s_w_id = @supply AND s_i_id = @item;
    SELECT @amount = @price * @quantity, @total = @total + @price * @quantity;
    INSERT INTO tprocc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
        ol_dist_info)
      VALUES (@w, @d, @order_id, @i, @item, @supply, @quantity, @amount, @info);
  END;
  COMMIT;
  SELECT @order_id, @total * (1 - @discount) * (1 + @warehouse_tax + @district_tax), @last, @credit, @discount,
    @warehouse_tax, @district_tax;
END;
GO
CREATE OR ALTER PROCEDURE tprocc.named @w INT, @d INT, @name VARCHAR(16), @who INT OUTPUT AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @n INT;
  SET @who = NULL;
  SELECT @n = COUNT(*) FROM tprocc.customer WHERE c_w_id = @w AND c_d_id = @d AND c_last = @name;
  IF @n = 0 THROW 50405, 'no customer of that name', 1;
  SELECT @who = c_id FROM tprocc.customer WHERE c_w_id = @w AND c_d_id = @d AND c_last = @name
    ORDER BY c_first OFFSET (@n + 1) / 2 - 1 ROWS FETCH NEXT 1 ROWS ONLY;
END;
GO
CREATE OR ALTER PROCEDURE tprocc.payment @w INT, @d INT, @cw INT, @cd INT, @c INT, @name VARCHAR(16),
  @amount DECIMAL(12,2) AS
BEGIN
  SET NOCOUNT ON; SET XACT_ABORT ON;
  DECLARE @who INT = @c, @warehouse_name VARCHAR(10), @district_name VARCHAR(10), @balance DECIMAL(12,2),
    @discount DECIMAL(4,4), @credit CHAR(2);
  BEGIN TRANSACTION;
  IF @who IS NULL EXEC tprocc.named @cw, @cd, @name, @who OUTPUT;
  UPDATE tprocc.warehouse SET w_ytd = w_ytd + @amount, @warehouse_name = w_name WHERE w_id = @w;
  UPDATE tprocc.district SET d_ytd = d_ytd + @amount, @district_name = d_name WHERE d_w_id = @w AND d_id = @d;
  UPDATE tprocc.customer SET @balance = c_balance = c_balance - @amount, c_ytd_payment = c_ytd_payment + @amount,
      c_payment_cnt = c_payment_cnt + 1, @credit = c_credit, @discount = c_discount,
      c_data = CASE WHEN c_credit = 'BC'
        THEN LEFT(CONCAT_WS(' ', @who, @cd, @cw, @d, @w, @amount, CONCAT('|', c_data)), 500) ELSE c_data END
    WHERE c_w_id = @cw AND c_d_id = @cd AND c_id = @who;
  INSERT INTO tprocc.history (h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, h_amount, h_data)
    VALUES (@w, @d, @cw, @cd, @who, SYSDATETIME(), @amount, CONCAT(@warehouse_name, '    ', @district_name));
  COMMIT;
  SELECT @who, @balance, @credit, @discount;
END;
GO
CREATE OR ALTER PROCEDURE tprocc.order_status @w INT, @d INT, @c INT, @name VARCHAR(16) AS
BEGIN
  SET NOCOUNT ON; SET XACT_ABORT ON;
  DECLARE @who INT = @c, @order_id INT, @carrier INT, @entered DATETIME2(0), @balance DECIMAL(12,2);
  BEGIN TRANSACTION;
  IF @who IS NULL EXEC tprocc.named @w, @d, @name, @who OUTPUT;
  SELECT @balance = c_balance FROM tprocc.customer WHERE c_w_id = @w AND c_d_id = @d AND c_id = @who;
  SELECT TOP (1) @order_id = o_id, @carrier = o_carrier_id, @entered = o_entry_d FROM tprocc.orders
    WHERE o_w_id = @w AND o_d_id = @d AND o_c_id = @who ORDER BY o_id DESC;
  SELECT @who, @balance, @order_id, @carrier, @entered,
      (SELECT STRING_AGG(CONCAT_WS(' ', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d), '; ')
        FROM tprocc.order_line WHERE ol_w_id = @w AND ol_d_id = @d AND ol_o_id = @order_id);
  COMMIT;
END;
GO
CREATE OR ALTER PROCEDURE tprocc.delivery @w INT, @carrier INT AS
BEGIN
  SET NOCOUNT ON; SET XACT_ABORT ON;
  DECLARE @d INT = 1, @delivered INT = 0, @oldest INT, @who INT, @amount DECIMAL(12,2),
    @moment DATETIME2(0) = SYSDATETIME();
  BEGIN TRANSACTION;
  WHILE @d <= 10
  BEGIN
    SET @oldest = NULL;
    SELECT TOP (1) @oldest = no_o_id FROM tprocc.new_order WITH (UPDLOCK, ROWLOCK) WHERE no_w_id = @w AND no_d_id = @d
      ORDER BY no_o_id;
    IF @oldest IS NOT NULL
    BEGIN
      DELETE FROM tprocc.new_order WHERE no_w_id = @w AND no_d_id = @d AND no_o_id = @oldest;
      UPDATE tprocc.orders SET o_carrier_id = @carrier, @who = o_c_id
        WHERE o_w_id = @w AND o_d_id = @d AND o_id = @oldest;
      UPDATE tprocc.order_line SET ol_delivery_d = @moment WHERE ol_w_id = @w AND ol_d_id = @d AND ol_o_id = @oldest;
      SELECT @amount = SUM(ol_amount) FROM tprocc.order_line WHERE ol_w_id = @w AND ol_d_id = @d AND ol_o_id = @oldest;
      UPDATE tprocc.customer SET c_balance = c_balance + @amount, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = @w AND c_d_id = @d AND c_id = @who;
      SET @delivered = @delivered + 1;
    END;
    SET @d = @d + 1;
  END;
  COMMIT;
  SELECT @delivered;
END;
GO
CREATE OR ALTER PROCEDURE tprocc.stock_level @w INT, @d INT, @threshold INT AS
BEGIN
  SET NOCOUNT ON; SET XACT_ABORT ON;
  DECLARE @next INT;
  BEGIN TRANSACTION;
  SELECT @next = d_next_o_id FROM tprocc.district WHERE d_w_id = @w AND d_id = @d;
  SELECT COUNT(DISTINCT s_i_id) FROM tprocc.order_line JOIN tprocc.stock ON s_w_id = @w AND s_i_id = ol_i_id
    WHERE ol_w_id = @w AND ol_d_id = @d AND ol_o_id >= @next - 20 AND ol_o_id < @next AND s_quantity < @threshold;
  COMMIT;
END;
