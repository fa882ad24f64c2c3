-- Version 11. Unsent text is kept in files of the state folder, and no version wrote this table but by importing an
-- exported session. What such an import left here joins the history of prompts, where the composer finds it.

INSERT INTO prompts(project, session, time, text)
  SELECT project, session, 0, text FROM (
    SELECT project, session, json_extract(body, '$.message.text') AS text FROM drafts WHERE json_valid(body)
    UNION ALL
    SELECT drafts.project, drafts.session, json_extract(aside.value, '$.text')
      FROM drafts, json_each(CASE WHEN json_valid(drafts.body) THEN drafts.body ELSE '{}' END, '$.aside') aside
  )
  WHERE typeof(text) = 'text' AND trim(text) <> '';
DROP TABLE drafts;
