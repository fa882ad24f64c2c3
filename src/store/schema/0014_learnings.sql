-- Version 14. Learnings: what failed, and what worked instead. They outlive their sessions. A receipt counts what came
-- of a rule of a memory file; its key is the text of the rule.

CREATE TABLE learnings (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  tool       TEXT NOT NULL,
  subject    TEXT NOT NULL,                 -- program and subcommand, path or host; '' for any
  error_type TEXT NOT NULL,
  details    TEXT NOT NULL,                 -- JSON: names that tell causes apart
  pattern    TEXT NOT NULL,
  fix        TEXT NOT NULL,
  context    TEXT NOT NULL,
  tags       TEXT NOT NULL,                 -- JSON
  state      TEXT NOT NULL,                 -- as in the protocol
  created    INTEGER NOT NULL,
  used       INTEGER,                       -- when it was attached last
  times      INTEGER NOT NULL,              -- how often it was attached
  source     TEXT NOT NULL,                 -- JSON: session, entry, agent, branch, taint
  before     TEXT                           -- JSON: what the last change of the person's replaced
) STRICT;
CREATE INDEX learnings_subject ON learnings(tool, subject);
CREATE UNIQUE INDEX learnings_text ON learnings(tool, subject, error_type, fix);

CREATE TABLE rule_receipts (
  rule     TEXT PRIMARY KEY,
  shown    INTEGER NOT NULL DEFAULT 0,
  followed INTEGER NOT NULL DEFAULT 0,
  violated INTEGER NOT NULL DEFAULT 0,
  promoted TEXT                             -- the line of permissions.yaml that the person made of it
) STRICT, WITHOUT ROWID;
