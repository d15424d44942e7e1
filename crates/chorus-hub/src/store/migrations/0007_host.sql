-- How services reach the agents that this hub hosts: one connection string each, of which only the hash is kept.
create table connections (
    agent      {rowid},
    hash       {bytes} not null unique,
    created_at bigint not null
);

-- Which message of which channel an agent has been given, so that one that is tried again is not given twice.
create table hosted (
    agent bigint not null,
    pair  {bytes} not null,
    at    bigint not null,
    primary key (agent, pair)
) {clustered};
create index hosted_age on hosted (at);
