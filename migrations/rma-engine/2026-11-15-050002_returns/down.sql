DROP TABLE return_units;
DROP TABLE returns;
