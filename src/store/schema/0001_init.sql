-- Version 1. Never edited after release: a change is a new file.
-- Identifiers are 16-byte UUIDs (version 7). Times are milliseconds since 1970 (UTC): for people only,
-- order comes from integer keys, because clocks jump. Money is in millionths of a US dollar.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last batch that each writer committed: after an error whose outcome is not known (a failed flush),
-- the writer looks here before it tries again, so nothing is written twice.
CREATE TABLE writers (
  id    BLOB PRIMARY KEY,
  batch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id         BLOB PRIMARY KEY,
  project    TEXT NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  created    INTEGER NOT NULL,
  used       INTEGER NOT NULL,
  used_order INTEGER NOT NULL,            -- grows with each act of the person's; the list's order
  model      TEXT NOT NULL DEFAULT '',
  profile    TEXT NOT NULL DEFAULT 'ask',
  head       TEXT NOT NULL DEFAULT 'main', -- name of the current head
  budget     INTEGER,
  archived   INTEGER NOT NULL DEFAULT 0,
  trashed    INTEGER,                      -- when it was thrown away; NULL: it was not
  spawned_by BLOB,                         -- the entry (of another session) that it hangs off
  entries    INTEGER NOT NULL DEFAULT 0,
  cost       INTEGER,                      -- sum of the known prices; NULL: none was known
  preview    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX sessions_project ON sessions(project, used_order);
CREATE INDEX sessions_order ON sessions(used_order);

-- The tree. Rows are only added. `payload` is the body as serde_json wrote it; `sum` is a checksum of it
-- and of the links, so that damage below SQLite's notice is seen.
CREATE TABLE entries (
  seq        INTEGER PRIMARY KEY,
  id         BLOB NOT NULL UNIQUE,
  session    BLOB NOT NULL REFERENCES sessions(id),
  parent     BLOB REFERENCES entries(id),
  depth      INTEGER NOT NULL,
  agent      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  time       INTEGER NOT NULL,
  payload    TEXT NOT NULL,
  sum        BLOB NOT NULL,
  snapshot   TEXT,
  prefix     BLOB,      -- nearest prefix at or above
  compaction BLOB,      -- nearest compaction at or above
  todo       INTEGER,   -- row of todo_states in force here
  model      TEXT,
  input      INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER, reasoning INTEGER,
  cost       INTEGER
) STRICT;
CREATE INDEX entries_session ON entries(session, seq);
CREATE INDEX entries_parent ON entries(parent);

CREATE TABLE heads (
  session BLOB NOT NULL REFERENCES sessions(id),
  name    TEXT NOT NULL,
  entry   BLOB REFERENCES entries(id),
  todo    INTEGER,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE ops (
  seq     INTEGER PRIMARY KEY,
  id      BLOB NOT NULL UNIQUE,
  session BLOB NOT NULL REFERENCES sessions(id),
  body    TEXT NOT NULL
) STRICT;
CREATE INDEX ops_session ON ops(session, seq);

-- Lists as they were; entries and heads point here.
CREATE TABLE todo_states (
  id      INTEGER PRIMARY KEY,
  session BLOB NOT NULL REFERENCES sessions(id),
  entry   BLOB,
  list    TEXT NOT NULL
) STRICT;
CREATE INDEX todo_session ON todo_states(session);

CREATE TABLE audit (
  id       INTEGER PRIMARY KEY,
  session  BLOB NOT NULL,
  time     INTEGER NOT NULL,
  agent    TEXT NOT NULL,
  tool     TEXT NOT NULL,
  what     TEXT NOT NULL,
  decision TEXT NOT NULL,
  by_whom  TEXT NOT NULL,
  seconds  REAL NOT NULL,
  outcome  TEXT NOT NULL
) STRICT;
CREATE INDEX audit_session ON audit(session, id);

-- One row for each call of a model.
CREATE TABLE calls (
  id          INTEGER PRIMARY KEY,
  session     BLOB NOT NULL,
  agent       TEXT NOT NULL,
  model       TEXT NOT NULL,
  tier        TEXT NOT NULL,
  day         TEXT NOT NULL,   -- of the person's time zone, 2026-11-21
  time        INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  reasoning   INTEGER NOT NULL,
  cost        INTEGER          -- NULL: the price is not known
) STRICT;
CREATE INDEX calls_session ON calls(session);
CREATE INDEX calls_day ON calls(day);

-- Waiting messages and questions survive a crash.
CREATE TABLE queue (
  session BLOB NOT NULL REFERENCES sessions(id),
  place   INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE asks (
  session BLOB NOT NULL REFERENCES sessions(id),
  place   INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, place)
) STRICT, WITHOUT ROWID;

-- What stands in composers. `session` is empty where no session exists yet.
CREATE TABLE drafts (
  project TEXT NOT NULL,
  session BLOB NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (project, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE prompts (
  id      INTEGER PRIMARY KEY,
  project TEXT NOT NULL,
  session BLOB NOT NULL,
  time    INTEGER NOT NULL,
  text    TEXT NOT NULL
) STRICT;
CREATE INDEX prompts_project ON prompts(project, id);
CREATE INDEX prompts_session ON prompts(session, id);

-- Who has a session open: a process is named by pid, start time and boot.
CREATE TABLE leases (
  session BLOB PRIMARY KEY,
  nonce   BLOB NOT NULL,
  pid     INTEGER NOT NULL,
  start   TEXT NOT NULL,
  boot    TEXT NOT NULL,
  space   TEXT NOT NULL,      -- the pid name space; processes of another one cannot be judged
  taken   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The turn in flight. A row that outlives its process is an interruption.
CREATE TABLE running (
  session BLOB PRIMARY KEY,
  agent   TEXT NOT NULL,
  what    TEXT NOT NULL,
  since   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trust (
  folder   TEXT PRIMARY KEY,
  decision TEXT NOT NULL,
  items    TEXT NOT NULL,
  time     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rules that hold for one session.
CREATE TABLE rules (
  id      INTEGER PRIMARY KEY,
  session BLOB NOT NULL,
  time    INTEGER NOT NULL,
  body    TEXT NOT NULL
) STRICT;
CREATE INDEX rules_session ON rules(session, id);
