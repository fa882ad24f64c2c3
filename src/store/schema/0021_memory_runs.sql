-- Version 21. Each user of the memory files in each process has a mark of its own for a call that may write them by itself. The
-- columns `by_` of `memory_seen` are not used any more.

CREATE TABLE memory_runs(
  path TEXT NOT NULL,
  runner TEXT NOT NULL,
  pid INTEGER NOT NULL,
  start TEXT NOT NULL,
  boot TEXT NOT NULL,
  space TEXT NOT NULL,
  text TEXT NOT NULL,             -- the file when the call began
  session BLOB NOT NULL,
  entry BLOB,
  branch TEXT NOT NULL,
  agent TEXT NOT NULL,
  PRIMARY KEY(path, runner)
) STRICT;
-- The process of a mark from before is not known: it has ended, as a migration needs the database alone.
INSERT INTO memory_runs(path, runner, pid, start, boot, space, text, session, entry, branch, agent)
  SELECT path, '', 0, '', '', '', text, by_session, by_entry, by_branch, by_agent FROM memory_seen
  WHERE by_session IS NOT NULL;
UPDATE memory_seen SET by_session = NULL, by_entry = NULL, by_branch = '', by_agent = '';
