CREATE INDEX receipts_by_asn ON receipts (merchant, asn_number, id);
