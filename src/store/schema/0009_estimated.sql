-- Version 9. Whether a count of a call is an estimate: its server did not count, or the reply ended before it did.
-- Counts from before came from the server, or are 0.

ALTER TABLE calls ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
