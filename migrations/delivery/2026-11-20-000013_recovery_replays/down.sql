DROP INDEX delivery_replays_recovery;
