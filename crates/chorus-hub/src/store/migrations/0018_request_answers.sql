-- Requests with an Idempotency-Key that were carried out. The row is written with what the request changed; its answer follows,
-- sealed, because it may contain a key. kept is what the answer is made of, sealed, in case the hub stops before the answer is
-- there. execution tells a request from its repetitions; writer is the agent whose quota the octets count for.
create table request_answers (
    caller      text not null,
    key         text not null,
    fingerprint {bytes} not null,
    execution   text not null,
    writer      bigint,
    kept        {bytes},
    answer      {bytes},
    octets      bigint not null,
    expires_at  bigint not null,
    primary key (caller, key)
);
create index request_answers_expiry on request_answers (expires_at);
