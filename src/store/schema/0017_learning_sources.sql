-- Version 17. A rule of a memory file can become a hook of the person's settings, too. A learning keeps the line of its error as
-- it was printed, and follows the branches of its session.

ALTER TABLE rule_receipts ADD COLUMN promoted_to TEXT;          -- 'hook'; NULL: `promoted` is a permission rule
ALTER TABLE learnings ADD COLUMN error TEXT NOT NULL DEFAULT ''; -- as it was printed; '': not known
ALTER TABLE learnings ADD COLUMN aside TEXT;                     -- the state before its branch was left
