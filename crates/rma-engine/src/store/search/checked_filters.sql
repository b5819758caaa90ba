-- A part of the statement of search.rs: the filters that are checked for each return. A parameter that is NULL, or
-- false, matches every return.
({status}::text IS NULL OR returns.status = {status})
AND ({is_overdue} IS NOT TRUE OR returns.overdue)
AND ({email}::text IS NULL OR returns.customer_email = {email})
AND ({facts}::jsonb IS NULL OR returns.facts @> {facts})
AND ({min}::bigint IS NULL OR returns.amount_cents >= {min})
AND ({max}::bigint IS NULL OR returns.amount_cents <= {max})
AND ({work_list}::text IS NULL OR EXISTS (
    SELECT FROM return_work_lists AS own
    WHERE own.rma_identifier = returns.rma_identifier AND own.merchant = returns.merchant
        AND own.work_list = {work_list} OFFSET 0
))
AND ({created_from}::timestamptz IS NULL OR returns.created_at >= {created_from})
AND ({created_to}::timestamptz IS NULL OR returns.created_at < {created_to})
AND ({changed_to}::timestamptz IS NULL OR {changed_at} < {changed_to})
AND ({message_state}::text IS NULL OR {message_state} = ({state_of_message}))
