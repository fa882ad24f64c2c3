-- Version 24. What is shown about a change of a memory file and decides nothing, as JSON: who wrote an entry that the user
-- accepted, the file that it was imported from, what an editor made of it. NULL: nothing.

ALTER TABLE memory_changes ADD COLUMN details TEXT;
