UPDATE discrepancies SET fingerprint = decode(md5(position::TEXT), 'hex') WHERE fingerprint IS NULL;
ALTER TABLE discrepancies ALTER COLUMN fingerprint SET NOT NULL;
