-- Version 3. What the files were: ids of the snapshot store, in the order in which a session saw them. A `point` is
-- the state at an entry, a `call` is what one tool call did, a `restore` what a restore did. Rows are only added.

CREATE TABLE steps (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  session BLOB NOT NULL REFERENCES sessions(id),
  kind    TEXT NOT NULL,
  entry   BLOB,              -- of a point
  call    TEXT,              -- of a call: its id
  op      BLOB,              -- of a restore: the operation
  before  TEXT,              -- NULL for a point
  after   TEXT NOT NULL,
  files   TEXT NOT NULL,     -- JSON: path and what happened to it
  time    INTEGER NOT NULL
) STRICT;
CREATE INDEX steps_session ON steps(session, id);
CREATE INDEX steps_entry ON steps(entry) WHERE entry IS NOT NULL;
