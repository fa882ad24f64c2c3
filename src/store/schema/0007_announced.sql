-- Version 7. Whether the main agent was told of a workflow's end. Of those from before nobody knows: they are not
-- told again.

ALTER TABLE workflows ADD COLUMN announced INTEGER NOT NULL DEFAULT 1;
