-- A part of the statement of write.rs: inserts refunds ($18 to $22) and their lines ($23 to $25), see refunds.rs.
, seen AS (
    INSERT INTO refunds (merchant, identifier, order_digest, digest, first_seen_at)
    SELECT * FROM unnest($18, $19, $20, $21, $22) WHERE (SELECT holds FROM precondition)
    ON CONFLICT ON CONSTRAINT refunds_pkey DO NOTHING RETURNING 1
), seen_lines AS (
    INSERT INTO refund_lines (merchant, identifier, refund_digest)
    SELECT * FROM unnest($23, $24, $25) WHERE (SELECT holds FROM precondition)
    ON CONFLICT ON CONSTRAINT refund_lines_pkey DO NOTHING RETURNING 1
)
