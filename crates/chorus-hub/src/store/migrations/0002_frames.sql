-- Who else may address an agent: grantor lets grantee. Both are principals.
create table grants (
    grantor bigint not null,
    grantee bigint not null,
    at      bigint not null,
    primary key (grantor, grantee)
) {clustered};
create index grants_given on grants (grantee);

-- Organisations. An id is of the one space of subjects, and the handle stands in names, beside those of agents.
create table orgs (
    id         {rowid},
    handle     text not null unique,
    created_at bigint not null
);

-- Who belongs to which organisation, in which roles (separated by blanks); invited until accepted_at is set.
create table members (
    org         bigint not null,
    member      bigint not null,
    roles       text not null,
    invited_at  bigint not null,
    accepted_at bigint,
    primary key (org, member)
) {clustered};
create index members_joined on members (member);

-- What one organisation lets another's members address: its own members in the role reaches, or all (*).
create table accords (
    id          text primary key,
    grantor     bigint not null,
    grantee     bigint not null,
    scope       text not null,
    reaches     text not null,
    proposed_at bigint not null,
    accepted_at bigint,
    expires_at  bigint
);
create index accords_granted on accords (grantor, scope);
create index accords_held on accords (grantee);
