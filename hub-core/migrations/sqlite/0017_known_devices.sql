-- Browsers are known as devices of a user by a signed cookie that names this number: another number ends them all.
ALTER TABLE users ADD COLUMN device_generation INTEGER NOT NULL DEFAULT 0;
