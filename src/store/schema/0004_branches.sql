-- Version 4. A branch is a head; the person may name it and put it away. A tag is a name for one entry. The index
-- holds what a row of the tree shows, so that a tree is read without touching the payloads.

ALTER TABLE heads ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE heads ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

CREATE TABLE tags (
  session BLOB NOT NULL REFERENCES sessions(id),
  name    TEXT NOT NULL,
  entry   BLOB NOT NULL REFERENCES entries(id),
  time    INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_entry ON tags(entry);

DROP INDEX entries_session;
CREATE INDEX entries_session ON entries(
  session, seq, id, parent, depth, agent, kind, time, model, input, output, cache_read, cache_write, cost);
