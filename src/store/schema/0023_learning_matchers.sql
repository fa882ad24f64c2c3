-- Version 23. The number of this revision rises with each write that changes the rules of learnings, so that a process reads them
-- again only then, however many there are. The condition is that of the index `learnings_matchers`.

INSERT INTO revisions(name, number) VALUES('learning_matchers', 0);

CREATE TRIGGER learning_matcher_added AFTER INSERT ON learnings
WHEN new.state = 'active' AND (instr(new.fix || new.context, '[when:') OR instr(new.fix || new.context, '[never:')) BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'learning_matchers';
END;
CREATE TRIGGER learning_matcher_changed AFTER UPDATE OF fix, context, state, source ON learnings
WHEN (new.state = 'active' AND (instr(new.fix || new.context, '[when:') OR instr(new.fix || new.context, '[never:')))
  OR (old.state = 'active' AND (instr(old.fix || old.context, '[when:') OR instr(old.fix || old.context, '[never:'))) BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'learning_matchers';
END;
CREATE TRIGGER learning_matcher_removed AFTER DELETE ON learnings
WHEN old.state = 'active' AND (instr(old.fix || old.context, '[when:') OR instr(old.fix || old.context, '[never:')) BEGIN
  UPDATE revisions SET number = number + 1 WHERE name = 'learning_matchers';
END;
