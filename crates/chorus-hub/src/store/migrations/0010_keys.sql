-- Whose key a channel token ends with: the agent that a delivery was for, or that made a standing callback. Null for the
-- deliveries of members that are reached by a connection string.
alter table channel_tokens add column agent bigint;
create index channel_tokens_agent on channel_tokens (agent) where agent is not null;
create index channel_tokens_member on channel_tokens (member);

-- Further keys of agents, hashed. scopes are separated by blanks; used_on is the day of the last use, in days since 1970. A key
-- that ends loses its row.
create table agent_keys (
    id         text primary key,
    agent      bigint not null,
    hash       {bytes} not null unique,
    label      text not null,
    scopes     text not null,
    created_at bigint not null,
    expires_at bigint,
    used_on    bigint
);
create index agent_keys_agent on agent_keys (agent);
create index agent_keys_expiry on agent_keys (expires_at) where expires_at is not null;

-- Rotations of a registration's key whose new key has not been used: the key that asked may ask again with the same
-- Idempotency-Key.
create table key_rotations (
    agent       {rowid},
    asked_by    {bytes} not null unique,
    new_hash    {bytes} not null unique,
    request_key text not null,
    fingerprint {bytes} not null
);

-- The further key that something was made with, and ends with; null for the key of the registration.
alter table sessions add column made_with text;
alter table channel_tokens add column made_with text;
alter table connections add column made_with text;
