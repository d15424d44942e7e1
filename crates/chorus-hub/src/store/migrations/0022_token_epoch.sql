-- The tokens of deliveries are no longer stored: each states the epoch of its member, and ends when the member has a later one.
alter table channel_members add column token_epoch bigint not null default 0;
