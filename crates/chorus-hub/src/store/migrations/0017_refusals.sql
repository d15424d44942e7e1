-- Why a member did not take its last delivery, and when it refused it. Null after it took one.
alter table channel_members add column refusal text;
alter table channel_members add column refused_at bigint;
