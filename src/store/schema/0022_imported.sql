-- Version 22. What a file brought is stored as it stood there, and counts as text of others wherever it is read.

ALTER TABLE entries ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
-- Other rows have no entry in it: no payload is read to find these.
CREATE INDEX entries_imported ON entries(session, id) WHERE imported = 1;
