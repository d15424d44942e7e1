//! What members are owed, and the tokens that their answers come back with.

use super::{DbError, Param, Tx};
use chorus_wire::time::Micros;

pub(crate) async fn owe(tx: &Tx<'_>, member: i64, seq: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into deliveries (member, seq) values ($1, $2) on conflict do nothing";
    tx.execute(SQL, &[Param::Int(member), Param::Int(seq)])
        .await
        .map(drop)
}

/// The first that it is owed.
pub(crate) async fn first(tx: &Tx<'_>, member: i64) -> Result<Option<i64>, DbError> {
    const SQL: &str = "select seq from deliveries where member = $1 order by seq limit 1";
    tx.one(SQL, &[Param::Int(member)])
        .await?
        .map(|row| row.int(0))
        .transpose()
}

/// The newest that it is owed, newest first.
pub(crate) async fn newest(tx: &Tx<'_>, member: i64, limit: usize) -> Result<Vec<i64>, DbError> {
    const SQL: &str = "select seq from deliveries where member = $1 order by seq desc limit $2";
    let rows = tx
        .query(SQL, &[Param::Int(member), Param::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// This one is settled.
pub(crate) async fn settle(tx: &Tx<'_>, member: i64, seq: i64) -> Result<(), DbError> {
    const SQL: &str = "delete from deliveries where member = $1 and seq = $2";
    tx.execute(SQL, &[Param::Int(member), Param::Int(seq)])
        .await
        .map(drop)
}

/// This one and all before it are.
pub(crate) async fn settle_to(tx: &Tx<'_>, member: i64, seq: i64) -> Result<(), DbError> {
    const SQL: &str = "delete from deliveries where member = $1 and seq <= $2";
    tx.execute(SQL, &[Param::Int(member), Param::Int(seq)])
        .await
        .map(drop)
}

/// All but the newest are let go.
pub(crate) async fn keep_newest(tx: &Tx<'_>, member: i64, most: usize) -> Result<(), DbError> {
    const SQL: &str = "delete from deliveries where member = $1 and seq <=
                       (select seq from deliveries where member = $1 order by seq desc limit 1 offset $2)";
    tx.execute(SQL, &[Param::Int(member), Param::Int(most as i64)])
        .await
        .map(drop)
}

/// It is owed nothing any more.
pub(crate) async fn forget(tx: &Tx<'_>, member: i64) -> Result<(), DbError> {
    tx.execute(
        "delete from deliveries where member = $1",
        &[Param::Int(member)],
    )
    .await
    .map(drop)
}

/// What a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    /// Came with one delivery.
    Callback,
    /// A member's own, until there is another.
    Standing,
    /// The channel's MCP endpoint.
    Tools,
}

impl Opens {
    const ALL: [Self; 3] = [Self::Callback, Self::Standing, Self::Tools];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Callback => "callback",
            Self::Standing => "standing",
            Self::Tools => "tools",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub opens: Opens,
    /// The room's subject.
    pub channel: i64,
    pub member: i64,
    /// How far from a person's word what it came with was.
    pub turn: i64,
    pub expires_at: Option<Micros>,
}

pub(crate) async fn mint(tx: &Tx<'_>, hash: &[u8; 32], token: &Token) -> Result<(), DbError> {
    const SQL: &str = "insert into channel_tokens (hash, opens, channel, member, turn, expires_at)
                       values ($1, $2, $3, $4, $5, $6)";
    let params = [
        Param::Bytes(hash),
        Param::Text(token.opens.as_str()),
        Param::Int(token.channel),
        Param::Int(token.member),
        Param::Int(token.turn),
        Param::int(token.expires_at.map(|at| at.0)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The token of this hash, also when it is dead.
pub(crate) async fn token(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<Token>, DbError> {
    const SQL: &str =
        "select opens, channel, member, turn, expires_at from channel_tokens where hash = $1";
    let Some(mut row) = tx.one(SQL, &[Param::Bytes(hash)]).await? else {
        return Ok(None);
    };
    let opens = row.text(0)?;
    let opens = Opens::ALL.into_iter().find(|one| one.as_str() == opens);
    Ok(Some(Token {
        opens: opens
            .ok_or_else(|| DbError::Other("a token opens what only a newer hub knows".into()))?,
        channel: row.int(1)?,
        member: row.int(2)?,
        turn: row.int(3)?,
        expires_at: row.maybe_int(4)?.map(Micros),
    }))
}

/// The member's standing callback ends now.
pub(crate) async fn end_standing(tx: &Tx<'_>, member: i64, now: Micros) -> Result<(), DbError> {
    const SQL: &str =
        "update channel_tokens set expires_at = $2 where member = $1 and expires_at is null";
    tx.execute(SQL, &[Param::Int(member), Param::Int(now.0)])
        .await
        .map(drop)
}

/// The member is gone: it is owed nothing, and what it had for good ends.
pub(super) async fn part(tx: &Tx<'_>, member: i64, now: Micros) -> Result<(), DbError> {
    forget(tx, member).await?;
    end_standing(tx, member, now).await
}

/// The same for everybody in a room.
pub(super) async fn close(tx: &Tx<'_>, channel: i64, now: Micros) -> Result<(), DbError> {
    const OWED: &str = "delete from deliveries where member in (select id from channel_members where channel = $1)";
    const STANDING: &str =
        "update channel_tokens set expires_at = $2 where expires_at is null and member in
                            (select id from channel_members where channel = $1)";
    tx.execute(OWED, &[Param::Int(channel)]).await?;
    tx.execute(STANDING, &[Param::Int(channel), Param::Int(now.0)])
        .await
        .map(drop)
}

/// Forgets some tokens that ended before `keep`; how many there were.
pub(super) async fn trim(tx: &Tx<'_>, keep: Micros, most: i64) -> Result<u64, DbError> {
    const SQL: &str = "delete from channel_tokens where hash in (
                           select hash from channel_tokens where expires_at < $1 order by expires_at limit $2)";
    tx.execute(SQL, &[Param::Int(keep.0), Param::Int(most)])
        .await
}
