-- Nothing to undo: the older code can read what was filled in.
SELECT;
