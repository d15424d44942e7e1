-- When the text of a message was first shown to its receiver (R-81).
alter table log add column shown_at bigint;
