-- Whose key a channel token ends with: the agent that a delivery was for, or that made a standing callback. Null for the
-- deliveries of members that are reached by a connection string.
alter table channel_tokens add column agent bigint;
create index channel_tokens_agent on channel_tokens (agent) where agent is not null;
create index channel_tokens_member on channel_tokens (member);
