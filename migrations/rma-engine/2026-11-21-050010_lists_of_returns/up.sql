-- The values by which lists of returns filter. No index has them, so a change of a return still adds no entries to the
-- indexes.
ALTER TABLE returns
    -- An object with the fields return_method, resolutions, return_reasons and skus.
    ADD COLUMN facts JSONB NOT NULL DEFAULT '{}',
    -- Paid for the units that were not canceled.
    ADD COLUMN amount_cents BIGINT NOT NULL DEFAULT 0,
    -- The last message to the merchant; NULL before the first one.
    ADD COLUMN last_delivery UUID;

-- The next step that each return needs. The rows are small: the list of a return changes several times, and a change of
-- an indexed column of `returns` would add entries to all its indexes.
CREATE TABLE return_work_lists (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    work_list TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- The SKUs of the units of each return.
CREATE TABLE return_skus (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    sku TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Returns from before this version, by the rules of domain::returns::Rma::work_list.
WITH units AS (
    SELECT
        own.merchant, own.rma_identifier, own.status, own.created_at, unit.value AS unit,
        own.document::jsonb ->> 'return_method' AS return_method,
        (own.document::jsonb ->> 'managed_receiving')::boolean AS managed_receiving,
        (own.document::jsonb ->> 'canceled_at') IS NOT DISTINCT FROM (unit.value ->> 'canceled_at') AS is_active
    FROM returns AS own, jsonb_array_elements(own.document::jsonb -> 'units') AS unit
), steps AS (
    SELECT *, CASE
        WHEN return_method = 'customer-keep' OR status = 'PARTIAL_REFUND' OR unit ->> 'receiving_status' = 'RECEIVED' THEN 3
        WHEN unit ->> 'package_tracking_status' = 'DELIVERED'
            AND NOT (managed_receiving AND unit ->> 'receiving_status' = 'PENDING') THEN 3
        WHEN unit ->> 'package_tracking_status' IN ('ACCEPTED', 'TRANSIT', 'FAILURE', 'DELIVERED')
            AND (unit ->> 'failed_before_scan')::boolean IS NOT TRUE THEN 2
        ELSE 1
    END AS step
    FROM units
), lists AS (
    SELECT
        merchant, rma_identifier, status, created_at, return_method,
        max(step) FILTER (WHERE is_active AND unit ->> 'refunded_by' IS NULL) AS step,
        jsonb_agg(DISTINCT unit -> 'resolution') AS resolutions,
        jsonb_agg(DISTINCT unit -> 'return_reason') AS return_reasons,
        jsonb_agg(DISTINCT unit -> 'sku') AS skus,
        coalesce(sum(greatest((unit #>> '{amounts,product_amount_cents}')::bigint
            - (unit #>> '{amounts,discount_amount_cents}')::bigint
            + (unit #>> '{amounts,tax_amount_cents}')::bigint, 0)) FILTER (WHERE is_active), 0) AS amount_cents
    FROM steps GROUP BY merchant, rma_identifier, status, created_at, return_method
), listed AS (
    INSERT INTO return_work_lists (merchant, rma_identifier, work_list, created_at)
    SELECT
        merchant, rma_identifier,
        CASE
            WHEN status = 'REQUESTED' THEN 'to_review'
            WHEN status NOT IN ('CREATED', 'PARTIAL_REFUND') THEN 'done'
            ELSE coalesce((ARRAY['not_sent', 'on_its_way', 'to_refund'])[step], 'done')
        END,
        created_at
    FROM lists
), with_skus AS (
    INSERT INTO return_skus (merchant, rma_identifier, sku, created_at)
    SELECT merchant, rma_identifier, sku.value, created_at
    FROM lists, jsonb_array_elements_text(skus) AS sku
)
UPDATE returns SET
    facts = jsonb_build_object('return_method', lists.return_method, 'resolutions', lists.resolutions,
        'return_reasons', lists.return_reasons, 'skus', lists.skus),
    amount_cents = lists.amount_cents,
    last_delivery = (
        SELECT delivery FROM timeline AS entry
        WHERE entry.merchant = returns.merchant AND entry.rma_identifier = returns.rma_identifier
            AND delivery IS NOT NULL
        ORDER BY position DESC LIMIT 1
    )
FROM lists WHERE returns.merchant = lists.merchant AND returns.rma_identifier = lists.rma_identifier;

CREATE INDEX return_work_lists_by_list ON return_work_lists (merchant, work_list, created_at, rma_identifier);
-- For lists of all merchants, with the same condition as those of returns.
CREATE INDEX return_work_lists_of_all ON return_work_lists (work_list, created_at, rma_identifier)
    WHERE merchant IS DISTINCT FROM '';
-- Created last, as that of returns: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE return_work_lists
    ADD CONSTRAINT return_work_lists_pkey PRIMARY KEY (rma_identifier, merchant);
-- Begins with the SKU, to find the returns of a SKU in one merchant and in all merchants.
ALTER TABLE return_skus
    ADD CONSTRAINT return_skus_pkey PRIMARY KEY (sku, merchant, created_at, rma_identifier);
