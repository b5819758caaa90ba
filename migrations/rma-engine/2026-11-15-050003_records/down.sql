DROP TABLE discrepancies;
DROP TABLE timeline;
DROP FUNCTION refuse_to_rewrite;
