//! The `open_items` table: locks, decisions and handovers, kept until they end.

use super::orgs::parse_stored_handle;
use super::{
    AgentId, ColumnReader, DbConnection, DbError, FromRow, OpenItemId, OrgId, SqlParam, SubjectId,
};
use crate::clock_watch::ExpiryClock;
use chorus_wire::frame::{FrameScope, OpenItemKind};
use chorus_wire::identity::Handle;
use chorus_wire::time::UnixMicros;
use chorus_wire::{limits, string_enum};
use std::time::Duration;
use uuid::Uuid;

/// How long an ended item is recognised when a request about it is repeated: as long as a repeated `frame_id`.
const ENDED_RETENTION: Duration = limits::RING_RETENTION;

/// An item that a frame opens.
#[derive(Clone, Debug)]
pub(crate) struct NewOpenItem {
    pub frame_id: Uuid,
    pub item: OpenItemKind,
    pub sender: AgentId,
    pub sender_handle: Handle,
    pub scope: FrameScope,
    pub tool: Option<String>,
    /// Of a lock.
    pub lease_id: Option<Uuid>,
    pub frame: String,
}

string_enum! {
    /// How an item ended, where a request says so.
    ItemEnd {
        Released "released",
        Answered "answered",
        Taken "taken",
        Withdrawn "withdrawn",
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OpenItemRecord {
    pub id: OpenItemId,
    pub subject: SubjectId,
    pub frame_id: Uuid,
    pub item: OpenItemKind,
    pub sender: AgentId,
    pub sender_handle: Handle,
    pub scope: FrameScope,
    pub tool: Option<String>,
    pub frame: String,
    pub opened_at: UnixMicros,
    pub expires_at: UnixMicros,
    pub extended_by: Option<String>,
    /// How it ended and by which session, if it has ended before its time.
    pub ended_as: Option<ItemEnd>,
    pub ended_by: Option<String>,
}

impl OpenItemRecord {
    pub fn is_open(&self, clock: ExpiryClock) -> bool {
        self.ended_as.is_none() && !self.is_over(clock)
    }

    /// Whether its time is over, whether it has ended before or not.
    pub fn is_over(&self, clock: ExpiryClock) -> bool {
        clock.is_over(self.opened_at, self.expires_at)
    }
}

macro_rules! select_items {
    ($rest:literal) => {
        concat!(
            "select id, subject, frame_id, item, sender, sender_handle, scope, tool, frame, opened_at, expires_at, \
             extended_by, ended_as, ended_by from open_items ",
            $rest
        )
    };
}

fn parse_stored<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DbError> {
    parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored in an open item")))
}

/// Reads the columns of `select_items!`.
impl FromRow for OpenItemRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(OpenItemRecord {
            id: columns.id()?,
            subject: columns.id()?,
            frame_id: parse_stored(&columns.text()?, |text| text.parse().ok())?,
            item: parse_stored(&columns.text()?, OpenItemKind::parse)?,
            sender: columns.id()?,
            sender_handle: parse_stored_handle(&columns.text()?)?,
            scope: parse_stored(&columns.text()?, FrameScope::parse)?,
            tool: columns.maybe_text()?,
            frame: columns.text()?,
            opened_at: UnixMicros(columns.int()?),
            expires_at: UnixMicros(columns.int()?),
            extended_by: columns.maybe_text()?,
            ended_as: columns
                .maybe_text()?
                .map(|text| parse_stored(&text, ItemEnd::parse))
                .transpose()?,
            ended_by: columns.maybe_text()?,
        })
    }
}

/// The present, the present without the last leap of the clock, and when it leaped. An item that was opened before the leap ends by
/// the second, so that a leap neither deletes nor hides it (D-123). A claim that is renewed afterwards keeps the time at which it
/// was opened: it may last longer by the leap, for a day at most.
fn clock_params(clock: ExpiryClock) -> [SqlParam<'static>; 3] {
    [
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().0),
    ]
}

/// Deletes the expired items of a subject, and the ended ones when there are many, so that it never has more rows than twice
/// its limit, whatever retention does.
pub(crate) async fn trim_subject_items(
    tx: &DbConnection<'_>,
    subject: SubjectId,
    clock: ExpiryClock,
) -> Result<(), DbError> {
    const EXPIRED: &str = "delete from open_items where subject = $1 and expires_at <= $2
        and (expires_at <= $3 or opened_at >= $4)";
    const ENDED: &str = "delete from open_items where subject = $1 and ended_at is not null
        and (select count(*) from open_items where subject = $1 and ended_at is not null) >= $2";
    let [now, now_before_leap, leaped_at] = clock_params(clock);
    let params = [SqlParam::id(subject), now, now_before_leap, leaped_at];
    tx.execute(EXPIRED, &params).await?;
    let max = SqlParam::Int(limits::OPEN_ITEMS_PER_HANDLE as i64);
    tx.execute(ENDED, &[SqlParam::id(subject), max])
        .await
        .map(drop)
}

/// Counts what is open under a subject, after [`trim_subject_items`].
pub(crate) async fn count_open_items(
    tx: &DbConnection<'_>,
    subject: SubjectId,
) -> Result<usize, DbError> {
    const SQL: &str = "select count(*) from open_items where subject = $1 and ended_at is null";
    let row = tx.query_first(SQL, &[SqlParam::id(subject)]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Inserts an item. A write group has the lock of all hubs, so the next id is the highest.
pub(crate) async fn insert_item(
    tx: &DbConnection<'_>,
    subject: SubjectId,
    new: &NewOpenItem,
    now: UnixMicros,
    expires_at: UnixMicros,
) -> Result<OpenItemId, DbError> {
    const SQL: &str = "insert into open_items (id, subject, frame_id, item, sender, sender_handle, scope, tool, lease_id, frame,
                           opened_at, expires_at)
                       values ((select coalesce(max(id), 0) + 1 from open_items), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
                       returning id";
    let frame_id = new.frame_id.to_string();
    let scope = new.scope.to_string();
    let lease_id = new.lease_id.map(|id| id.to_string());
    let params = [
        SqlParam::id(subject),
        SqlParam::Text(&frame_id),
        SqlParam::Text(new.item.as_str()),
        SqlParam::id(new.sender),
        SqlParam::Text(new.sender_handle.as_str()),
        SqlParam::Text(&scope),
        SqlParam::optional_text(new.tool.as_deref()),
        SqlParam::optional_text(lease_id.as_deref()),
        SqlParam::Text(&new.frame),
        SqlParam::Int(now.0),
        SqlParam::Int(expires_at.0),
    ];
    let row = tx.query_first(SQL, &params).await?;
    row.ok_or_else(|| DbError::Other("no item was written".into()))?
        .id(0)
}

/// The item that a frame opened under a subject, also when it has ended.
pub(crate) async fn find_item(
    tx: &DbConnection<'_>,
    subject: SubjectId,
    frame_id: Uuid,
) -> Result<Option<OpenItemRecord>, DbError> {
    const SQL: &str = select_items!("where subject = $1 and frame_id = $2");
    let frame_id = frame_id.to_string();
    tx.query_first(SQL, &[SqlParam::id(subject), SqlParam::Text(&frame_id)])
        .await?
        .map(OpenItemRecord::from_row)
        .transpose()
}

/// The open items of one kind that a frame opened, under any subject: frame ids are chosen by their senders.
pub(crate) async fn find_items_of_frame(
    tx: &DbConnection<'_>,
    item: OpenItemKind,
    frame_id: Uuid,
    clock: ExpiryClock,
) -> Result<Vec<OpenItemRecord>, DbError> {
    const SQL: &str = select_items!(
        "where frame_id = $1 and item = $2 and ended_at is null
         and (expires_at > $3 or expires_at > $4 and opened_at < $5) order by id"
    );
    let frame_id = frame_id.to_string();
    let [now, now_before_leap, leaped_at] = clock_params(clock);
    let params = [
        SqlParam::Text(&frame_id),
        SqlParam::Text(item.as_str()),
        now,
        now_before_leap,
        leaped_at,
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.into_iter().map(OpenItemRecord::from_row).collect()
}

/// The open claims with a lease of the sender, under any subject.
pub(crate) async fn find_leases(
    tx: &DbConnection<'_>,
    sender: AgentId,
    lease_id: Uuid,
    clock: ExpiryClock,
) -> Result<Vec<OpenItemRecord>, DbError> {
    const SQL: &str = select_items!(
        "where sender = $1 and lease_id = $2 and ended_at is null
         and (expires_at > $3 or expires_at > $4 and opened_at < $5) order by id"
    );
    let lease_id = lease_id.to_string();
    let [now, now_before_leap, leaped_at] = clock_params(clock);
    let params = [
        SqlParam::id(sender),
        SqlParam::Text(&lease_id),
        now,
        now_before_leap,
        leaped_at,
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.into_iter().map(OpenItemRecord::from_row).collect()
}

/// Replaces the frame of a claim that is announced again. It keeps its place among the claims.
pub(crate) async fn renew_lock(
    tx: &DbConnection<'_>,
    id: OpenItemId,
    new: &NewOpenItem,
    expires_at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str =
        "update open_items set frame_id = $2, frame = $3, expires_at = $4 where id = $1";
    let frame_id = new.frame_id.to_string();
    let params = [
        SqlParam::id(id),
        SqlParam::Text(&frame_id),
        SqlParam::Text(&new.frame),
        SqlParam::Int(expires_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn extend_lock(
    tx: &DbConnection<'_>,
    id: OpenItemId,
    expires_at: UnixMicros,
    extended_by: Uuid,
) -> Result<(), DbError> {
    const SQL: &str = "update open_items set expires_at = $2, extended_by = $3 where id = $1";
    let extended_by = extended_by.to_string();
    let params = [
        SqlParam::id(id),
        SqlParam::Int(expires_at.0),
        SqlParam::Text(&extended_by),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Ends an open item; false when another request has ended it.
pub(crate) async fn end_item(
    tx: &DbConnection<'_>,
    id: OpenItemId,
    end: ItemEnd,
    ended_by: &str,
    now: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str =
        "update open_items set ended_at = $2, ended_as = $3, ended_by = $4, expires_at = $5
                       where id = $1 and ended_at is null";
    let params = [
        SqlParam::id(id),
        SqlParam::Int(now.0),
        SqlParam::Text(end.as_str()),
        SqlParam::Text(ended_by),
        SqlParam::Int(now.saturating_add(ENDED_RETENTION).0),
    ];
    Ok(tx.execute(SQL, &params).await? > 0)
}

/// Opens an item again whose end reached no session.
pub(crate) async fn reopen_item(
    tx: &DbConnection<'_>,
    id: OpenItemId,
    expires_at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update open_items set ended_at = null, ended_as = null, ended_by = null, expires_at = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(id), SqlParam::Int(expires_at.0)])
        .await
        .map(drop)
}

pub(crate) async fn delete_item(tx: &DbConnection<'_>, id: OpenItemId) -> Result<(), DbError> {
    tx.execute("delete from open_items where id = $1", &[SqlParam::id(id)])
        .await
        .map(drop)
}

/// The items open under a subject, and under the organisations of `member`, before `before`, newest first. The flag is false
/// when there are more.
pub(crate) async fn list_items(
    tx: &DbConnection<'_>,
    subject: SubjectId,
    member: Option<AgentId>,
    before: OpenItemId,
    clock: ExpiryClock,
) -> Result<(Vec<OpenItemRecord>, bool), DbError> {
    const SQL: &str = select_items!(
        "where subject in (select cast($1 as bigint) union all
                           select org from members where member = $2 and accepted_at is not null)
         and id < $3 and ended_at is null
         and (expires_at > $4 or expires_at > $5 and opened_at < $6) order by id desc"
    );
    let [now, now_before_leap, leaped_at] = clock_params(clock);
    let params = [
        SqlParam::id(subject),
        SqlParam::optional_id(member),
        SqlParam::id(before),
        now,
        now_before_leap,
        leaped_at,
    ];
    let (rows, is_complete) = tx
        .query_within_bytes(SQL, &params, limits::LIST_PAGE_BYTES)
        .await?;
    let records: Result<Vec<_>, _> = rows.into_iter().map(OpenItemRecord::from_row).collect();
    Ok((records?, is_complete))
}

/// Deletes the items of and for an agent that unregistered.
pub(crate) async fn delete_agent_items(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<(), DbError> {
    for sql in [
        "delete from open_items where subject = $1",
        "delete from open_items where sender = $1",
    ] {
        tx.execute(sql, &[SqlParam::id(agent)]).await?;
    }
    Ok(())
}

/// Deletes the items for an organisation that has ended.
pub(super) async fn delete_org_items(tx: &DbConnection<'_>, org: OrgId) -> Result<(), DbError> {
    tx.execute(
        "delete from open_items where subject = $1",
        &[SqlParam::id(org)],
    )
    .await
    .map(drop)
}

/// Deletes items whose time is over, `max` at most. Returns how many.
pub(super) async fn delete_expired_items(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    max: i64,
) -> Result<u64, DbError> {
    const SQL: &str = "delete from open_items where id in
        (select id from open_items where expires_at <= $1 order by expires_at limit $2)";
    tx.execute(SQL, &[SqlParam::Int(now.0), SqlParam::Int(max)])
        .await
}
