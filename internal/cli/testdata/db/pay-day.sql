\set who random(1, 10)
UPDATE app.account SET balance = balance + :sum WHERE id = :who;
