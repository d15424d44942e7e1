-- Balances in hundredths. 0 is the account that credits are issued from, the only one below zero; an even number is an
-- owner's (twice its id), an odd one holds what a job may cost (twice its id and one) and says for whom.
create table accounts (
    id      {rowid},
    held_by bigint,
    balance bigint not null,
    check (id = 0 or balance >= 0)
);
insert into accounts (id, held_by, balance) values (0, null, 0);
create index accounts_held on accounts (held_by) where held_by is not null;

-- Every movement there ever was: one row has both entries, so a half of one cannot be written.
create table postings (
    id     {rowid},
    kind   text not null,
    debit  bigint not null,
    credit bigint not null,
    amount bigint not null check (amount > 0),
    payer  bigint,
    payee  bigint,
    job_id text,
    note   text,
    at     bigint not null
);
create index postings_payer on postings (payer, id) where payer is not null;
create index postings_payee on postings (payee, id) where payee is not null;
create index postings_job on postings (job_id, id) where job_id is not null;

-- What each transfer was answered with, by whom it was paid: a stranger's transfer_id blocks nobody.
create table transfers (
    payer       bigint not null,
    transfer_id text not null,
    fingerprint {bytes} not null,
    reply       text not null,
    primary key (payer, transfer_id)
) {clustered};

create table jobs (
    id           {rowid},
    job_id       text not null unique,
    fingerprint  {bytes} not null,
    orchestrator bigint not null,
    worker       bigint not null,
    payer        bigint not null,
    payee        bigint not null,
    skill        text not null,
    budget       bigint not null,
    cost         bigint not null,
    state        text not null,
    endpoint     text,
    callback_url text,
    body         text not null,
    requested_at bigint not null,
    deadline     bigint not null,
    attempt_at   bigint not null,
    ended_at     bigint,
    paid         bigint,
    took_ms      bigint,
    output       text,
    error_code   text,
    error        text
);
create index jobs_asked on jobs (orchestrator, id);
create index jobs_worked on jobs (worker, id);
create index jobs_due on jobs (deadline) where ended_at is null;
create index jobs_held on jobs (attempt_at) where state = 'held';

-- Sums that would otherwise be counted over the whole ledger.
create table market (
    id         bigint primary key,
    held       bigint not null,
    volume     bigint not null,
    held_jobs  bigint not null,
    dispatched bigint not null,
    done       bigint not null,
    failed     bigint not null,
    cancelled  bigint not null,
    expired    bigint not null
);
insert into market (id, held, volume, held_jobs, dispatched, done, failed, cancelled, expired) values (1, 0, 0, 0, 0, 0, 0, 0, 0);

-- POSTs that are owed to others. Those of one lane go out in order; leased is until when somebody is at it.
create table outbox (
    id         {rowid},
    purpose    text not null,
    lane       text not null,
    url        text not null,
    headers    text not null,
    body       text not null,
    created_at bigint not null,
    due_at     bigint not null,
    tries      bigint not null,
    leased     bigint not null
);
create index outbox_lane on outbox (lane, id);
create index outbox_due on outbox (due_at);
