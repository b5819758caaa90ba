-- A part of the statement of write.rs: the condition that no stored refund differs. $18 to $25: refunds.rs.
NOT EXISTS (
    SELECT FROM unnest($18, $19, $20, $21)
        AS new (merchant, identifier, order_digest, digest), LATERAL (
        SELECT FROM refunds WHERE merchant = new.merchant AND identifier = new.identifier
            AND (order_digest <> new.order_digest OR digest <> new.digest) LIMIT 1
    ) AS other
) AND NOT EXISTS (
    SELECT FROM unnest($23, $24, $25) AS new (merchant, identifier, refund_digest),
    LATERAL (
        SELECT FROM refund_lines
        WHERE merchant = new.merchant AND identifier = new.identifier
            AND refund_digest <> new.refund_digest LIMIT 1
    ) AS other
)
