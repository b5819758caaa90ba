-- Every line of every refund ever seen: its identifier belongs to one refund of the merchant.
CREATE TABLE refund_lines (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    -- Of the refund's identifier, which may be long and have thousands of lines.
    refund_digest BYTEA NOT NULL,
    CONSTRAINT refund_lines_pkey PRIMARY KEY (merchant, identifier)
);

INSERT INTO refund_lines
SELECT merchant, line ->> 'identifier', sha256(convert_to(refund ->> 'identifier', 'UTF8'))
FROM orders,
    json_array_elements(document::json -> 'refunds') AS refund,
    json_array_elements(refund -> 'refund_line_items') AS line
ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING;
