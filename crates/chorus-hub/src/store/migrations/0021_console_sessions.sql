-- The console session that a token belongs to: a session belongs to itself, the token of a stream to the session that asked for it.
-- Null for tokens that were made with a key, and for sessions from before this column.
alter table sessions add column console_session {bytes};
create index sessions_by_console on sessions (principal, console_session);
