-- Whose agents an owner's are: looked for when one of them leaves, or names another owner.
create index principals_owned on principals (owner, id) where deleted_at is null;

-- Receivers that are gone, and up to where the messages that waited for them have been given up.
create table abandoned (
    subject {rowid},
    after   bigint not null
);
