-- Version 13. Changes of memory files: what was taken away and added, where it came from, and whether it is in the file.
-- The files themselves are the truth; without a row an entry was written in an editor.

CREATE TABLE memory_changes(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  path TEXT NOT NULL,
  removed TEXT,
  added TEXT,
  state TEXT NOT NULL,
  session BLOB,
  entry BLOB,
  branch TEXT NOT NULL DEFAULT '',
  agent TEXT NOT NULL DEFAULT '',
  taint TEXT NOT NULL
) STRICT;
CREATE INDEX memory_changes_session ON memory_changes(session);
CREATE INDEX memory_changes_state ON memory_changes(state);
