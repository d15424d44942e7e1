-- Whose share of the posts an outbox row uses: the owner of the receiver; 0 for what the operators own, and for rows from before.
alter table outbox add column owner bigint not null default 0;
