-- Version 5. The agents that worked for a session: what each was asked, how it stands, what it brought. What it said
-- is in a session of its own, which hangs off the entry that started it.

CREATE TABLE agents (
  root      BLOB NOT NULL REFERENCES sessions(id),
  name      TEXT NOT NULL,                 -- its path: main/a1
  session   BLOB NOT NULL,                 -- its own; the row comes when it starts
  brief     TEXT NOT NULL,                 -- what it was asked, as JSON
  state     TEXT NOT NULL,                 -- as in the protocol
  report    TEXT,                          -- what it brought, as JSON
  announced INTEGER NOT NULL DEFAULT 0,    -- its parent heard of its end
  created   INTEGER NOT NULL,
  PRIMARY KEY (root, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_session ON agents(session);
