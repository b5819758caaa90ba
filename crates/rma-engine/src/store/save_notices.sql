-- Saves notices ($1 merchants, $2 interfaces, $3 events): $4 facts, $5 times at which they are due, $6 times of the last.
UPDATE notices AS own SET facts = new.facts, due_at = new.due_at, told_at = new.told_at
FROM unnest((SELECT $1), $2, $3, $4, $5, $6)
    AS new (merchant, interface, event, facts, due_at, told_at)
WHERE own.merchant = new.merchant AND own.interface = new.interface AND own.event = new.event
