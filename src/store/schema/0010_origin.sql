-- Version 10. Sessions of runs without a screen ('exec') do not fill the list of those of a person.

ALTER TABLE sessions ADD COLUMN origin TEXT NOT NULL DEFAULT '';
