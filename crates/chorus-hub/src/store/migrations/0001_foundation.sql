-- The spine: everything an agent or a channel hears, in the order in which it was committed.
-- subject hears it, actor said it; both are ids of principals (0 is the hub itself).
create table log (
    seq          {rowid},
    subject      bigint not null,
    kind         text not null,
    actor        bigint not null,
    at           bigint not null,
    body         text not null,
    via          text,
    delivered_at bigint
);
create index log_pending on log (seq) where via = 'pending';

-- Who has a part in which entry: it received a message (0), sent one (1), or heard something else (2). Kept up to the
-- setting 'indexed'; the entries after it are few and are looked through.
create table parts (
    who   bigint not null,
    class bigint not null,
    seq   bigint not null,
    primary key (who, class, seq)
) {clustered};

-- What a receiver or its endpoint said of a message.
create table responses (
    seq      {rowid},
    response text not null,
    at       bigint not null
);

-- Why a message did not reach its receiver's endpoint.
create table failures (
    seq        {rowid},
    error_code text not null,
    detail     text not null
);

-- Agents, living and gone: a name that is taken again is another row.
create table principals (
    id            {rowid},
    agent_id      text not null,
    handle        text,
    owner         bigint not null,
    card          text,
    endpoint      text,
    market        text,
    key_hash      {bytes},
    registered_at bigint not null,
    deleted_at    bigint
);
create unique index principals_key on principals (key_hash) where key_hash is not null;
create index principals_living on principals (id) where deleted_at is null;

-- Every name a living agent answers to, in its canonical form.
create table names (
    name      text primary key,
    principal bigint not null
);

create table owners (
    id   {rowid},
    name text not null unique
);

create table sessions (
    token_hash {bytes} primary key,
    principal  bigint not null,
    expires_at bigint not null
);
create index sessions_expiry on sessions (expires_at);

create table invites (
    id         text primary key,
    code_hash  {bytes} not null unique,
    label      text not null,
    uses       bigint not null,
    max_uses   bigint,
    expires_at bigint,
    revoked    bigint not null,
    created_at bigint not null
);

create table idempotency (
    caller      text not null,
    key         text not null,
    fingerprint {bytes} not null,
    seq         bigint not null,
    at          bigint not null,
    primary key (caller, key)
);
create index idempotency_age on idempotency (at);

-- Sums that would otherwise be counted over the whole log.
create table counters (
    id        bigint primary key,
    stored    bigint not null,
    delivered bigint not null,
    queued    bigint not null,
    failed    bigint not null,
    agents    bigint not null
);
insert into counters (id, stored, delivered, queued, failed, agents) values (1, 0, 0, 0, 0, 0);

create table settings (
    name  text primary key,
    value bigint not null
);
insert into settings (name, value) values ('indexed', 0);
