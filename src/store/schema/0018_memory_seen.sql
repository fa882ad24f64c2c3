-- Version 18. Each memory file as it was when Tiller looked at it last: what is missing from it later was removed outside of
-- Tiller. The columns `by_` are those of a call that may write the file by itself, while it runs.

CREATE TABLE memory_seen(
  path TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  by_session BLOB,
  by_entry BLOB,
  by_branch TEXT NOT NULL DEFAULT '',
  by_agent TEXT NOT NULL DEFAULT ''
) STRICT;
