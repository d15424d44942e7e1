-- Rooms. An id is of the one space of subjects: what is said there are entries of the log. owner is null where operators
-- made it, or where its owner is gone. A deleted room keeps its row, so that its tokens are told apart from those that never were.
create table channels (
    id         {rowid},
    public_id  text not null unique,
    name       text not null,
    service    text,
    context    text,
    owner      bigint,
    created_at bigint not null,
    deleted_at bigint
);
create index channels_owned on channels (owner) where deleted_at is null;
create index channels_deleted on channels (deleted_at) where deleted_at is not null;

-- Who is in which room. An id is of the same space. connection and signing are sealed; they go when the member does. turn is
-- how many steps from agent to agent lay between a person's word and what the member heard last.
create table channel_members (
    id             {rowid},
    channel        bigint not null,
    name           text not null,
    folded         text not null,
    principal      bigint,
    via            text not null,
    deliver        text not null,
    connection     {bytes},
    signing        {bytes},
    status         text,
    status_at      bigint,
    identity       text,
    unreachable_at bigint,
    turn           bigint not null,
    joined_at      bigint not null,
    left_at        bigint
);
create unique index channel_members_name on channel_members (channel, folded) where left_at is null;
create unique index channel_members_agent on channel_members (channel, principal) where left_at is null and principal is not null;
create index channel_members_of on channel_members (principal, channel) where left_at is null and principal is not null;
create index channel_members_left on channel_members (left_at) where left_at is not null;

-- Tool calls whose results may still come: where in the log each one is.
create table channel_calls (
    member  bigint not null,
    call_id text not null,
    seq     bigint not null,
    primary key (member, call_id)
) {clustered};
create index channel_calls_place on channel_calls (seq);
