-- A job that names only a skill may be given to the next worker. A job on the board has no worker (0) before it is claimed; the lease
-- is until when its worker has to report. A delivery that waits for approval has its output and price in the columns of the end.
alter table jobs add column any_worker bigint not null default 0;
alter table jobs add column board bigint not null default 0;
alter table jobs add column approve_ms bigint;
alter table jobs add column lease_until bigint;
alter table jobs add column output_schema text;
alter table jobs add column progress text;
alter table jobs add column question text;
alter table jobs add column answer text;
create index jobs_board on jobs (skill, id) where state = 'open';
create index jobs_open_all on jobs (id) where state = 'open';
create index jobs_leased on jobs (lease_until) where lease_until is not null;

-- What happened to a job between its request and its end, by number.
create table job_updates (
    job   bigint not null,
    n     bigint not null,
    kind  text not null,
    agent bigint not null,
    text  text,
    at    bigint not null,
    primary key (job, n)
) {clustered};

alter table market add column open_jobs bigint not null default 0;
alter table market add column input_required bigint not null default 0;
alter table market add column delivered bigint not null default 0;

-- Whether the agent takes its jobs at an endpoint: such an agent is not offline because its key is silent.
alter table skills add column at_endpoint bigint not null default 0;
drop index skills_best;
drop index skills_any;
create index skills_best on skills (name, score desc, cost, agent, at_endpoint);
create index skills_any on skills (score desc, cost, agent, name, at_endpoint);
update skills set at_endpoint = 1 where agent in (select id from principals where market like '%"api_endpoint":"http%');

-- How a score came about: owners that hired the agent and what they paid, by day.
alter table reputations add column hirers bigint not null default 0;
alter table reputations add column earned bigint not null default 0;
create table hirer_days (
    agent     bigint not null,
    owner     bigint not null,
    day       bigint not null,
    successes bigint not null,
    failures  bigint not null,
    earned    bigint not null,
    primary key (agent, owner, day)
) {clustered};
insert into hirer_days (agent, owner, day, successes, failures, earned)
select g.worker, p.owner, g.at / 86400000000, cast(sum(g.success) as bigint), cast(sum(1 - g.success) as bigint),
       cast(coalesce(sum(j.paid), 0) as bigint)
from judgements g join principals p on p.id = g.hirer left join jobs j on j.id = g.job
group by g.worker, p.owner, g.at / 86400000000;
update reputations set
    hirers = (select count(distinct owner) from hirer_days h where h.agent = reputations.agent),
    earned = coalesce((select cast(sum(h.earned) as bigint) from hirer_days h where h.agent = reputations.agent), 0);

-- A transfer that names a job sent directly between agents is made once.
create index postings_transfers on postings (payer, job_id) where kind = 'transfer' and job_id is not null;
