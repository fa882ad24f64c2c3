-- Trials of skills: runs with and without one, summed.

CREATE TABLE skill_trials (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  time   INTEGER NOT NULL,
  skill  TEXT NOT NULL,
  result TEXT NOT NULL                     -- JSON: the sums, and the hash of the text that was tried
) STRICT;
CREATE INDEX skill_trials_skill ON skill_trials(skill);
