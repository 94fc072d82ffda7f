-- What the bot's owner configured for the app: a JSON object of texts, sealed; NULL without configuration.
ALTER TABLE app_installations ADD COLUMN config TEXT;
