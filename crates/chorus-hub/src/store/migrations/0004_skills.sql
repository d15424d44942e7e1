-- What agents offer, one row for each skill. A score is the bits of a float that is never below zero: as whole numbers they
-- sort like the floats, and lose nothing. It repeats the agent's reputation, so that one index finds the best.
create table skills (
    agent         bigint not null,
    name          text not null,
    description   text,
    cost          bigint not null,
    input_schema  text,
    output_schema text,
    score         bigint not null,
    primary key (agent, name)
) {clustered};
create index skills_best on skills (name, score desc, cost, agent);
create index skills_any on skills (score desc, cost, agent, name);
create index skills_cheapest on skills (name, cost);

-- How many offer a skill, so that nobody counts.
create table skill_names (
    name   text primary key,
    agents bigint not null
);

-- What agents have earned; one that was never judged is not here, and is neutral.
create table reputations (
    agent     {rowid},
    score     bigint not null,
    successes bigint not null,
    failures  bigint not null
);

-- Every change of a score; a job is judged once.
create table judgements (
    job          {rowid},
    worker       bigint not null,
    hirer        bigint not null,
    success      bigint not null,
    score_before bigint not null,
    score_after  bigint not null,
    at           bigint not null
);
create index judgements_worker on judgements (worker, job);
