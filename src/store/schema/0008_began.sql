-- Version 8. When the state before a call was looked at: where two agents worked at the same time, one began in the middle
-- of what the other did. Of rows from before it is not known.

ALTER TABLE steps ADD COLUMN began INTEGER;
