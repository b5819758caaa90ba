DROP INDEX receipts_by_asn;
