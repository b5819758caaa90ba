-- The rules of merchants for returns after each change. Rows are never changed. The lists of shoppers are not kept: a
-- merchant that replaces a list must be able to rely on the digests being gone.
CREATE TABLE merchant_policy_versions (
    merchant TEXT NOT NULL
        CONSTRAINT merchant_policy_versions_merchant_fkey REFERENCES merchants (identifier),
    -- The version of the merchant that the change made.
    version BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    actor TEXT NOT NULL,
    rules JSONB NOT NULL,
    CONSTRAINT merchant_policy_versions_pkey PRIMARY KEY (merchant, version)
);

-- The present rules are the first version. The audit log knows who wrote them, and when.
INSERT INTO merchant_policy_versions (merchant, version, created_at, actor, rules)
SELECT
    merchants.identifier,
    merchants.version,
    COALESCE(change.created_at, merchants.updated_at),
    COALESCE(change.actor, 'unknown'),
    merchants.document #> '{settings,policy,rules}'
FROM merchants
LEFT JOIN LATERAL (
    SELECT audit_records.created_at, audit_records.actor
    FROM audit_records
    WHERE
        audit_records.merchant = merchants.identifier
        AND audit_records.action IN ('merchant.created', 'merchant.updated')
        AND audit_records.detail ? 'policy'
    ORDER BY audit_records.created_at DESC, audit_records.id DESC
    LIMIT 1
) AS change ON true
WHERE merchants.document #> '{settings,policy,rules}' <> '[]';
