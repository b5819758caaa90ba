DROP FUNCTION advance_outbox_sequence(BIGINT);
DROP TABLE database_identity;
DROP TABLE inbox;
DROP TABLE event_republishes;
DROP FUNCTION maintain_published_events(DATE, INTEGER);
DROP TABLE published_events;
DROP TABLE outbox;
