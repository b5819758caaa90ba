-- The start of the failure that was reported, until its end is reported.
ALTER TABLE delivery_endpoints ADD COLUMN reported_failing_since TIMESTAMPTZ;

-- Failures and recoveries that are not reported yet. The columns change rarely, so the indexes do not slow settlements.
CREATE INDEX delivery_endpoints_unreported ON delivery_endpoints (failing_since)
WHERE failing_since IS NOT NULL AND reported_failing_since IS NULL;
CREATE INDEX delivery_endpoints_recovered ON delivery_endpoints (reported_failing_since)
WHERE failing_since IS NULL AND reported_failing_since IS NOT NULL;
