\set a random(1, 1000)
\sett b 3
select :a;
