-- Signs what the hub posts to the agent's endpoints; sealed.
alter table principals add column endpoint_secret {bytes};

-- The part of a body that several entries share: a channel message is stored once, however many members it is delivered to.
-- id is the sequence of the message. The body of an entry with one has the rest, and shared_at is where the part goes.
create table shared_bodies (
    id   {rowid},
    text text not null
);
alter table log add column shared bigint;
alter table log add column shared_at bigint;

-- Octets of the log that each agent, or each member that is reached by a connection string, has written. An entry counts when the
-- participant index takes it, and no longer when it is trimmed. What a hosted inbox receives counts for its agent.
create table stored_bytes (
    writer {rowid},
    octets bigint not null
);
insert into stored_bytes (writer, octets)
select case when actor = 0 then subject else actor end, cast(sum(octet_length(body) + 128) as bigint) from log
where seq <= (select value from settings where name = 'indexed') and (actor <> 0 or kind = 'channel')
group by case when actor = 0 then subject else actor end;

-- Everything that an owner has, also what its unregistered agents left.
create index principals_by_owner on principals (owner);
create index jobs_open on jobs (payer) where ended_at is null;

-- Names of agents and owners that an opening grant was given to. A name is granted once, also after its agent has left.
create table granted_names (
    name text primary key
);
insert into granted_names (name) select name from owners;
insert into granted_names (name) select distinct agent_id from principals where true on conflict (name) do nothing;

-- Agents by the time of their departure: what they leave behind is looked at once.
create index principals_departed on principals (deleted_at) where deleted_at is not null;
