-- What a room keeps beside what was said: texts that are worked on together, by their newest version.
create table artifacts (
    channel    bigint not null,
    slug       text not null,
    title      text,
    version    bigint not null,
    size       bigint not null,
    created_by text not null,
    created_at bigint not null,
    updated_by text not null,
    updated_at bigint not null,
    primary key (channel, slug)
) {clustered};

-- Every version that is still kept.
create table artifact_versions (
    channel bigint not null,
    slug    text not null,
    version bigint not null,
    content text not null,
    author  text not null,
    at      bigint not null,
    primary key (channel, slug, version)
);

create table channel_files (
    channel    bigint not null,
    name       text not null,
    media_type text,
    size       bigint not null,
    content    {bytes} not null,
    author     text not null,
    at         bigint not null,
    primary key (channel, name)
);
