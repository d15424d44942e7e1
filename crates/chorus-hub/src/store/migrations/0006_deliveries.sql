-- What members are owed that are reached by a connection string: places in the log, in their order. The outbox has at most one
-- row for each member; what it posts is looked up here when it is posted.
create table deliveries (
    member bigint not null,
    seq    bigint not null,
    primary key (member, seq)
) {clustered};

-- What opens a callback or a channel's tools, hashed. A standing one has no end until there is another. Dead ones are kept for a
-- while, so that they are told apart from those that never were.
create table channel_tokens (
    hash       {bytes} primary key,
    opens      text not null,
    channel    bigint not null,
    member     bigint not null,
    turn       bigint not null,
    expires_at bigint
);
create index channel_tokens_expiry on channel_tokens (expires_at) where expires_at is not null;
create index channel_tokens_standing on channel_tokens (member) where expires_at is null;
