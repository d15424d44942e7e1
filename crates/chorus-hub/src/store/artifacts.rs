//! The artifacts (versioned texts) and files of a channel.

use super::{ChannelId, ColumnReader, DbConnection, DbError, FromRow, SqlParam};
use chorus_wire::channel::artifact::{Artifact, FileInfo};
use chorus_wire::time::UnixMicros;

/// A version of an artifact to insert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewArtifactVersion<'a> {
    pub channel: ChannelId,
    pub slug: &'a str,
    pub title: Option<&'a str>,
    pub content: &'a str,
    pub author: &'a str,
    pub at: UnixMicros,
}

macro_rules! artifact_columns {
    () => {
        "slug, title, version, size, created_by, created_at, updated_by, updated_at"
    };
}

/// Reads `artifact_columns!`.
impl FromRow for Artifact {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(Artifact {
            slug: columns.text()?,
            title: columns.maybe_text()?,
            version: columns.int()?.max(0) as u64,
            size: columns.int()?.max(0) as u64,
            created_by: columns.text()?,
            created_at: UnixMicros(columns.int()?),
            updated_by: columns.text()?,
            updated_at: UnixMicros(columns.int()?),
        })
    }
}

/// The artifacts of a channel after a slug, ordered by slug.
pub(crate) async fn list_artifacts(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    after: &str,
    limit: usize,
) -> Result<Vec<Artifact>, DbError> {
    const SQL: &str = concat!(
        "select ",
        artifact_columns!(),
        " from artifacts where channel = $1 and slug > $2 order by slug limit $3"
    );
    let params = [
        SqlParam::id(channel),
        SqlParam::Text(after),
        SqlParam::Int(limit as i64),
    ];
    tx.query(SQL, &params)
        .await?
        .into_iter()
        .map(Artifact::from_row)
        .collect()
}

pub(crate) async fn find_artifact(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    slug: &str,
) -> Result<Option<Artifact>, DbError> {
    const SQL: &str = concat!(
        "select ",
        artifact_columns!(),
        " from artifacts where channel = $1 and slug = $2"
    );
    tx.query_first(SQL, &[SqlParam::id(channel), SqlParam::Text(slug)])
        .await?
        .map(Artifact::from_row)
        .transpose()
}

pub(crate) async fn count_artifacts(
    tx: &DbConnection<'_>,
    channel: ChannelId,
) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from artifacts where channel = $1",
            &[SqlParam::id(channel)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.max(0) as usize)
}

/// The text of one version; `None` when it never existed or was trimmed.
pub(crate) async fn find_artifact_content(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    slug: &str,
    version: u64,
) -> Result<Option<String>, DbError> {
    const SQL: &str =
        "select content from artifact_versions where channel = $1 and slug = $2 and version = $3";
    let params = [
        SqlParam::id(channel),
        SqlParam::Text(slug),
        SqlParam::Int(version.min(i64::MAX as u64) as i64),
    ];
    tx.query_first(SQL, &params)
        .await?
        .map(|mut row| row.text(0))
        .transpose()
}

/// Inserts an artifact with its first version; false when the slug is taken.
pub(crate) async fn create_artifact(
    tx: &DbConnection<'_>,
    new: &NewArtifactVersion<'_>,
) -> Result<bool, DbError> {
    const SQL: &str = "insert into artifacts
                           (channel, slug, title, version, size, created_by, created_at, updated_by, updated_at)
                       values ($1, $2, $3, 1, $4, $5, $6, $5, $6) on conflict (channel, slug) do nothing";
    let params = [
        SqlParam::id(new.channel),
        SqlParam::Text(new.slug),
        SqlParam::optional_text(new.title),
        SqlParam::Int(new.content.len() as i64),
        SqlParam::Text(new.author),
        SqlParam::Int(new.at.0),
    ];
    if tx.execute(SQL, &params).await? == 0 {
        return Ok(false);
    }
    insert_artifact_version(tx, new, 1).await?;
    Ok(true)
}

/// Inserts the version after `base_version` and keeps the newest `kept_versions`; false when `base_version` is not the newest.
pub(crate) async fn update_artifact(
    tx: &DbConnection<'_>,
    new: &NewArtifactVersion<'_>,
    base_version: u64,
    kept_versions: usize,
) -> Result<bool, DbError> {
    const SQL: &str =
        "update artifacts set version = version + 1, size = $4, title = coalesce($5, title),
                           updated_by = $6, updated_at = $7
                       where channel = $1 and slug = $2 and version = $3";
    const TRIM: &str =
        "delete from artifact_versions where channel = $1 and slug = $2 and version <= $3";
    let base_version = base_version.min(i64::MAX as u64) as i64;
    let params = [
        SqlParam::id(new.channel),
        SqlParam::Text(new.slug),
        SqlParam::Int(base_version),
        SqlParam::Int(new.content.len() as i64),
        SqlParam::optional_text(new.title),
        SqlParam::Text(new.author),
        SqlParam::Int(new.at.0),
    ];
    if tx.execute(SQL, &params).await? == 0 {
        return Ok(false);
    }
    insert_artifact_version(tx, new, base_version + 1).await?;
    tx.execute(
        TRIM,
        &[
            SqlParam::id(new.channel),
            SqlParam::Text(new.slug),
            SqlParam::Int(base_version + 1 - kept_versions as i64),
        ],
    )
    .await?;
    Ok(true)
}

async fn insert_artifact_version(
    tx: &DbConnection<'_>,
    new: &NewArtifactVersion<'_>,
    version: i64,
) -> Result<(), DbError> {
    const SQL: &str = "insert into artifact_versions (channel, slug, version, content, author, at)
                       values ($1, $2, $3, $4, $5, $6)";
    let params = [
        SqlParam::id(new.channel),
        SqlParam::Text(new.slug),
        SqlParam::Int(version),
        SqlParam::Text(new.content),
        SqlParam::Text(new.author),
        SqlParam::Int(new.at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

macro_rules! file_columns {
    () => {
        "name, media_type, size, author, at"
    };
}

/// Reads `file_columns!`.
impl FromRow for FileInfo {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(FileInfo {
            name: columns.text()?,
            media_type: columns.maybe_text()?,
            size: columns.int()?.max(0) as u64,
            put_by: columns.text()?,
            put_at: UnixMicros(columns.int()?),
        })
    }
}

pub(crate) async fn list_files(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    limit: usize,
) -> Result<Vec<FileInfo>, DbError> {
    const SQL: &str = concat!(
        "select ",
        file_columns!(),
        " from channel_files where channel = $1 order by name limit $2"
    );
    tx.query(SQL, &[SqlParam::id(channel), SqlParam::Int(limit as i64)])
        .await?
        .into_iter()
        .map(FileInfo::from_row)
        .collect()
}

/// The number and the total size of a channel's files, without the file of this name.
pub(crate) async fn count_files_except(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    name: &str,
) -> Result<(usize, usize), DbError> {
    const SQL: &str = "select count(*), cast(coalesce(sum(size), 0) as bigint) from channel_files
                       where channel = $1 and name <> $2";
    match tx
        .query_first(SQL, &[SqlParam::id(channel), SqlParam::Text(name)])
        .await?
    {
        Some(row) => {
            let mut columns = row.columns();
            let file_count = columns.int()?.max(0) as usize;
            let total_size = columns.int()?.max(0) as usize;
            Ok((file_count, total_size))
        }
        None => Ok((0, 0)),
    }
}

/// Stores a file. Without `replace` it returns false when the name is taken.
pub(crate) async fn put_file(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    info: &FileInfo,
    content: &[u8],
    replace: bool,
) -> Result<bool, DbError> {
    const INSERT: &str =
        "insert into channel_files (channel, name, media_type, size, content, author, at)
                       values ($1, $2, $3, $4, $5, $6, $7) on conflict (channel, name) do nothing";
    if replace {
        const DELETE: &str = "delete from channel_files where channel = $1 and name = $2";
        tx.execute(DELETE, &[SqlParam::id(channel), SqlParam::Text(&info.name)])
            .await?;
    }
    let params = [
        SqlParam::id(channel),
        SqlParam::Text(&info.name),
        SqlParam::optional_text(info.media_type.as_deref()),
        SqlParam::Int(content.len() as i64),
        SqlParam::Bytes(content),
        SqlParam::Text(&info.put_by),
        SqlParam::Int(info.put_at.0),
    ];
    Ok(tx.execute(INSERT, &params).await? == 1)
}

pub(crate) async fn find_file(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    name: &str,
) -> Result<Option<(FileInfo, Vec<u8>)>, DbError> {
    const SQL: &str = concat!(
        "select ",
        file_columns!(),
        ", content from channel_files where channel = $1 and name = $2"
    );
    let Some(row) = tx
        .query_first(SQL, &[SqlParam::id(channel), SqlParam::Text(name)])
        .await?
    else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let info = FileInfo::from_columns(&mut columns)?;
    let content = columns.maybe_bytes()?.unwrap_or_default();
    columns.finish();
    Ok(Some((info, content)))
}

/// Deletes the artifacts and files of a deleted channel.
pub(crate) async fn delete_channel_content(
    tx: &DbConnection<'_>,
    channel: ChannelId,
) -> Result<(), DbError> {
    for sql in [
        "delete from artifacts where channel = $1",
        "delete from artifact_versions where channel = $1",
        "delete from channel_files where channel = $1",
    ] {
        tx.execute(sql, &[SqlParam::id(channel)]).await?;
    }
    Ok(())
}
