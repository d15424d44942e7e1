-- The last entry of each stream that retention deleted: a reader with an older cursor is told of the gap. Subject 0 is the activity
-- of the hub. What was deleted before this table is not in it.
create table trimmed (
    subject {rowid},
    seq     bigint not null
);
