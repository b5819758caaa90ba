-- Every line of every refund ever seen: its identifier belongs to one refund of the merchant.
CREATE TABLE refund_lines (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    refund_identifier TEXT COLLATE "C" NOT NULL,
    CONSTRAINT refund_lines_pkey PRIMARY KEY (merchant, identifier)
);

INSERT INTO refund_lines
SELECT merchant, line ->> 'identifier', refund ->> 'identifier'
FROM orders,
    json_array_elements(document::json -> 'refunds') AS refund,
    json_array_elements(refund -> 'refund_line_items') AS line
ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING;
