// The little of the host program that is needed to log in, receive and send.

export const normalizeAccountId = (id) => id.toLowerCase().replace(/[^a-z0-9]+/g, "-");

export const withFileLock = async (...given) => given.at(-1)();

export const resolvePreferredOpenClawTmpDir = () => process.env.OPENCLAW_STATE_DIR;
