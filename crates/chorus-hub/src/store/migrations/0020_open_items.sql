-- Locks, decisions and handovers until they end. subject is the agent or organisation that they were said to. An ended row stays for
-- some minutes, so that a repeated request gets the same answer: ended_as says how, ended_by who. extended_by is the last frame that
-- extended a lease.
create table open_items (
    id            {rowid},
    subject       bigint not null,
    frame_id      text not null,
    item          text not null,
    sender        bigint not null,
    sender_handle text not null,
    scope         text not null,
    tool          text,
    lease_id      text,
    frame         text not null,
    opened_at     bigint not null,
    expires_at    bigint not null,
    extended_by   text,
    ended_at      bigint,
    ended_as      text,
    ended_by      text,
    unique (subject, frame_id)
);
create index open_items_subject on open_items (subject, id);
create index open_items_lease on open_items (sender, lease_id);
create index open_items_frame on open_items (frame_id);
create index open_items_expiry on open_items (expires_at);
