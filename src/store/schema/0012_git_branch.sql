-- Version 12. Lists of sessions name the git branch that was checked out at the last turn; '' where none is known.

ALTER TABLE sessions ADD COLUMN git_branch TEXT NOT NULL DEFAULT '';
