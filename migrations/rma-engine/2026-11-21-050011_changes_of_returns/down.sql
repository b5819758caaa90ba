DROP INDEX timeline_of_all_by_time;
DROP INDEX timeline_by_time;
ALTER TABLE timeline DROP COLUMN recorded_at;
DROP FUNCTION time_of_change();
