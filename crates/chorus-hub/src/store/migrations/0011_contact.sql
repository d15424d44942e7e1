-- Consent to channels: null while an agent is only invited. Members from before were added without being asked.
alter table channel_members add column accepted_at bigint;
update channel_members set accepted_at = joined_at;

-- Names that look alike: the confusable skeleton of the local part and the host. Rows from before are filled at the start.
alter table principals add column skeleton text;
create index principals_skeleton on principals (skeleton) where deleted_at is null;

-- Who may contact an agent. contact_version is 0 where nothing limits it, else another number after every change.
-- contacts_only is 1 where only contacts may.
alter table principals add column contact_version bigint not null default 0;
alter table principals add column contacts_only bigint not null default 0;

-- Whom an agent has blocked: the canonical name of an agent, or @ and a host.
create table blocks (
    agent bigint not null,
    name  text not null,
    at    bigint not null,
    primary key (agent, name)
) {clustered};

-- Whom an agent has added as its contacts.
create table contacts (
    agent   bigint not null,
    contact bigint not null,
    at      bigint not null,
    primary key (agent, contact)
) {clustered};
create index contacts_with on contacts (contact);

-- Whom an agent that takes messages only from its contacts has written to.
create table correspondents (
    agent   bigint not null,
    contact bigint not null,
    primary key (agent, contact)
) {clustered};
create index correspondents_with on correspondents (contact);
