-- Version 15. Turns that used a skill, and trials of skills: how they ended and what they cost.

CREATE TABLE skill_uses (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  time    INTEGER NOT NULL,
  skill   TEXT NOT NULL,
  session BLOB,                            -- of a use
  kind    TEXT NOT NULL,                   -- agent, person, with, without
  done    INTEGER NOT NULL,                -- the turn succeeded
  checked INTEGER,                         -- its check succeeded; NULL: there was none
  cost    INTEGER,                         -- NULL: not known
  tokens  INTEGER NOT NULL
) STRICT;
CREATE INDEX skill_uses_skill ON skill_uses(skill);
