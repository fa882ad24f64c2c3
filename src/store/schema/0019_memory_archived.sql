-- A change of a memory file that moves an entry into its archive (1) or out of it (0). NULL: it moves none.

ALTER TABLE memory_changes ADD COLUMN archived INTEGER;
