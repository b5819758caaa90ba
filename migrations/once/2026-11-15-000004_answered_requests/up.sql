-- Requests that take effect once however often they are sent: the key that the caller chose, what
-- was asked, and what was answered.
CREATE TABLE answered_requests (
    merchant TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request BYTEA NOT NULL,
    -- JSON; empty only inside the transaction that works it out, and where nobody is answered.
    answer TEXT NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT answered_requests_pkey PRIMARY KEY (merchant, operation, key)
);

CREATE INDEX answered_requests_by_time ON answered_requests (answered_at);
