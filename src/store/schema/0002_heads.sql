-- Version 2. Who has a session open, what waits and what runs belong to one head of it: two windows on two
-- branches of one session have their own. Rows of before belong to the session's current head.

CREATE TABLE leases2 (
  session BLOB NOT NULL,
  head    TEXT NOT NULL,
  nonce   BLOB NOT NULL,
  pid     INTEGER NOT NULL,
  start   TEXT NOT NULL,
  boot    TEXT NOT NULL,
  space   TEXT NOT NULL,
  taken   INTEGER NOT NULL,
  PRIMARY KEY (session, head)
) STRICT, WITHOUT ROWID;
INSERT INTO leases2(session, head, nonce, pid, start, boot, space, taken)
  SELECT l.session, coalesce((SELECT s.head FROM sessions s WHERE s.id = l.session), 'main'),
         l.nonce, l.pid, l.start, l.boot, l.space, l.taken FROM leases l;
DROP TABLE leases;
ALTER TABLE leases2 RENAME TO leases;

CREATE TABLE running2 (
  session BLOB NOT NULL,
  head    TEXT NOT NULL,
  agent   TEXT NOT NULL,
  what    TEXT NOT NULL,
  since   INTEGER NOT NULL,
  PRIMARY KEY (session, head)
) STRICT, WITHOUT ROWID;
INSERT INTO running2(session, head, agent, what, since)
  SELECT r.session, coalesce((SELECT s.head FROM sessions s WHERE s.id = r.session), 'main'),
         r.agent, r.what, r.since FROM running r;
DROP TABLE running;
ALTER TABLE running2 RENAME TO running;

CREATE TABLE queue2 (
  session BLOB NOT NULL REFERENCES sessions(id),
  head    TEXT NOT NULL,
  place   INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, head, place)
) STRICT, WITHOUT ROWID;
INSERT INTO queue2(session, head, place, body)
  SELECT q.session, s.head, q.place, q.body FROM queue q JOIN sessions s ON s.id = q.session;
DROP TABLE queue;
ALTER TABLE queue2 RENAME TO queue;

CREATE TABLE asks2 (
  session BLOB NOT NULL REFERENCES sessions(id),
  head    TEXT NOT NULL,
  place   INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, head, place)
) STRICT, WITHOUT ROWID;
INSERT INTO asks2(session, head, place, body)
  SELECT a.session, s.head, a.place, a.body FROM asks a JOIN sessions s ON s.id = a.session;
DROP TABLE asks;
ALTER TABLE asks2 RENAME TO asks;

-- Bodies of entries that wait for a place where they may stand: what a line of the person's gave while a turn
-- was between a call and its result.
CREATE TABLE pending (
  session BLOB NOT NULL REFERENCES sessions(id),
  head    TEXT NOT NULL,
  place   INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (session, head, place)
) STRICT, WITHOUT ROWID;
