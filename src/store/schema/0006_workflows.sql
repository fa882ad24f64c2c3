-- Version 6. Workflows of a session: what each is made of, how it stands, and what each step brought. A step that is
-- done is not run again after a restart.

CREATE TABLE workflows (
  root       BLOB NOT NULL REFERENCES sessions(id),
  id         TEXT NOT NULL,                -- w1, w2, ...
  definition TEXT NOT NULL,                -- its steps, as JSON
  state      TEXT NOT NULL,                -- as in the protocol
  created    INTEGER NOT NULL,
  PRIMARY KEY (root, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_steps (
  root     BLOB NOT NULL,
  workflow TEXT NOT NULL,
  step     TEXT NOT NULL,
  state    TEXT NOT NULL,
  agent    TEXT,                           -- who works at it, or did last: main/a1
  report   TEXT,                           -- what it brought, as JSON
  PRIMARY KEY (root, workflow, step)
) STRICT, WITHOUT ROWID;
