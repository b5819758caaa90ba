-- Everything that happened to a return: what, when, who, and the message that told the merchant.
CREATE TABLE timeline (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    actor TEXT NOT NULL,
    event TEXT NOT NULL,
    detail JSONB NOT NULL,
    delivery UUID,
    CONSTRAINT timeline_return_fkey
        FOREIGN KEY (merchant, rma_identifier) REFERENCES returns (merchant, rma_identifier)
);

CREATE INDEX timeline_by_return ON timeline (merchant, rma_identifier, position);

CREATE FUNCTION refuse_to_rewrite() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the timeline is only ever added to';
END
$$;

CREATE TRIGGER timeline_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON timeline
FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_rewrite();

-- What does not add up between a merchant and us, for people to look at. What has a fingerprint is
-- noted once, however often it is noticed: snapshots repeat themselves. What happens in a warehouse
-- has none, and is noted each time.
CREATE TABLE discrepancies (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C",
    rma_identifier TEXT COLLATE "C",
    detail JSONB NOT NULL,
    fingerprint BYTEA,
    CONSTRAINT discrepancies_once UNIQUE (merchant, fingerprint)
);

CREATE INDEX discrepancies_by_merchant ON discrepancies (merchant, position);
CREATE INDEX discrepancies_by_kind ON discrepancies (merchant, kind, position);
CREATE INDEX discrepancies_by_order ON discrepancies (merchant, order_identifier, position)
    WHERE order_identifier IS NOT NULL;
CREATE INDEX discrepancies_by_return ON discrepancies (merchant, rma_identifier, position)
    WHERE rma_identifier IS NOT NULL;
