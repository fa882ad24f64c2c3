-- Version 20. What each call of a tool asks for is found without reading all changes of memory files and all learnings. The
-- number of a revision rises with each write of what it is named after, so that a process knows when to read again.

CREATE TABLE revisions(
  name TEXT PRIMARY KEY,
  number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO revisions(name, number) VALUES('memory_origins', 0);

-- A removal that was recorded once for each time that it was seen: the last one says all.
DELETE FROM memory_changes WHERE state IN ('outside', 'declined') AND added IS NULL AND archived IS NULL AND id NOT IN (
  SELECT max(id) FROM memory_changes WHERE state IN ('outside', 'declined') AND added IS NULL AND archived IS NULL
  GROUP BY path, removed, state
);

CREATE INDEX memory_changes_path ON memory_changes(path, state);
CREATE INDEX memory_changes_added ON memory_changes(path, added) WHERE added IS NOT NULL;
CREATE INDEX memory_changes_removed ON memory_changes(path, removed) WHERE removed IS NOT NULL;

CREATE TRIGGER memory_origin_added AFTER INSERT ON memory_changes WHEN new.added IS NOT NULL BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'memory_origins';
END;
CREATE TRIGGER memory_origin_changed AFTER UPDATE ON memory_changes
WHEN new.added IS NOT NULL OR old.added IS NOT NULL BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'memory_origins';
END;
CREATE TRIGGER memory_origin_removed AFTER DELETE ON memory_changes WHEN old.added IS NOT NULL BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'memory_origins';
END;

CREATE INDEX learnings_state ON learnings(state, tool, subject);
CREATE INDEX learnings_matchers ON learnings(id)
  WHERE state = 'active' AND (instr(fix || context, '[when:') OR instr(fix || context, '[never:'));
