//! The persistent callbacks of channel members, and the tokens of deliveries from hubs before D-122, which stored
//! them too.

use super::{AgentId, ChannelId, ColumnReader, DbConnection, DbError, FromRow, MemberId, SqlParam};
use chorus_wire::{string_enum, time::UnixMicros};
use subtle::ConstantTimeEq;

string_enum! {
    /// What a channel token is for.
    TokenPurpose {
        /// The callback of one delivery.
        Callback "callback",
        /// A member's own callback, valid until it is replaced.
        PersistentCallback "standing",
        /// The channel's MCP endpoint.
        Tools "tools",
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ChannelToken {
    pub purpose: TokenPurpose,
    /// The channel's subject id.
    pub channel: ChannelId,
    pub member: MemberId,
    /// Agent-to-agent steps between a person's message and the delivery that carried the token.
    pub turn: i64,
    pub expires_at: Option<UnixMicros>,
    /// The agent with whose key it ends.
    pub agent: Option<AgentId>,
    /// The further key that made it; `None` for the key of the registration.
    pub made_with: Option<String>,
}

macro_rules! token_columns {
    () => {
        "t.opens, t.channel, t.member, t.turn, t.expires_at, t.agent, t.made_with, k.expires_at"
    };
}

/// Reads `token_columns!`.
impl FromRow for ChannelToken {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let purpose = TokenPurpose::parse(&columns.text()?);
        let mut token = ChannelToken {
            purpose: purpose.ok_or_else(|| {
                DbError::Other("a token opens what only a newer hub knows".into())
            })?,
            channel: columns.id()?,
            member: columns.id()?,
            turn: columns.int()?,
            expires_at: columns.maybe_int()?.map(UnixMicros),
            agent: columns.maybe_id()?,
            made_with: columns.maybe_text()?,
        };
        // it ends with its key, also when the key expires.
        let key_expires_at = columns.maybe_int()?.map(UnixMicros);
        let ends = [token.expires_at, key_expires_at];
        token.expires_at = ends.into_iter().flatten().min();
        Ok(token)
    }
}

pub(crate) async fn insert_channel_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    token: &ChannelToken,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into channel_tokens (hash, opens, channel, member, turn, expires_at, agent, made_with)
                       values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let params = [
        SqlParam::Bytes(hash),
        SqlParam::Text(token.purpose.as_str()),
        SqlParam::id(token.channel),
        SqlParam::id(token.member),
        SqlParam::Int(token.turn),
        SqlParam::optional_int(token.expires_at.map(|at| at.0)),
        SqlParam::optional_id(token.agent),
        SqlParam::optional_text(token.made_with.as_deref()),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The token of this hash, also when it is expired.
pub(crate) async fn find_channel_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<ChannelToken>, DbError> {
    const SQL: &str = concat!(
        "select ",
        token_columns!(),
        ", t.hash from channel_tokens t left join agent_keys k on k.id = t.made_with where t.hash = $1"
    );
    let Some(row) = tx.query_first(SQL, &[SqlParam::Bytes(hash)]).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let token = ChannelToken::from_columns(&mut columns)?;
    let stored_hash = columns.maybe_bytes()?.unwrap_or_default();
    columns.finish();
    // the index found the row by equality; this comparison takes the same time wherever two hashes differ.
    let is_equal = bool::from(stored_hash.ct_eq(hash.as_slice()));
    Ok(is_equal.then_some(token))
}

/// Expires the member's persistent callback now.
pub(crate) async fn expire_persistent_callback(
    tx: &DbConnection<'_>,
    member: MemberId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str =
        "update channel_tokens set expires_at = $2 where member = $1 and expires_at is null";
    tx.execute(SQL, &[SqlParam::id(member), SqlParam::Int(now.0)])
        .await
        .map(drop)
}

/// Expires the tokens of the agent's deliveries now.
pub(crate) async fn expire_delivery_tokens(
    tx: &DbConnection<'_>,
    agent: AgentId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const NEXT_EPOCH: &str = "update channel_members set token_epoch = token_epoch + 1 where principal = $1 and left_at is null";
    tx.execute(NEXT_EPOCH, &[SqlParam::id(agent)]).await?;
    // Those that a hub before D-122 stored.
    const SQL: &str = "update channel_tokens set expires_at = $2
        where expires_at > $2 and opens <> 'standing'
          and (agent = $1 or member in (select id from channel_members where principal = $1))";
    tx.execute(SQL, &[SqlParam::id(agent), SqlParam::Int(now.0)])
        .await
        .map(drop)
}

/// Expires the persistent callbacks that a key of the agent made. Those from before their maker was recorded end with
/// the registration's key of their member, and with that of the channel's owner.
pub(crate) async fn expire_made_tokens(
    tx: &DbConnection<'_>,
    agent: AgentId,
    made_with: Option<&str>,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_tokens set expires_at = $2
        where (expires_at is null or expires_at > $2) and opens = 'standing'
          and ((agent = $1 and coalesce(made_with, '') = $3)
            or (agent is null and $3 = ''
                and (member in (select id from channel_members where principal = $1)
                  or channel in (select id from channels where owner = $1))))";
    let params = [
        SqlParam::id(agent),
        SqlParam::Int(now.0),
        SqlParam::Text(made_with.unwrap_or_default()),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Expires the persistent callbacks that an agent made which is unregistered.
pub(super) async fn expire_callbacks_made_by(
    tx: &DbConnection<'_>,
    agent: AgentId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_tokens set expires_at = $2
                       where agent = $1 and opens = 'standing' and expires_at is null";
    tx.execute(SQL, &[SqlParam::id(agent), SqlParam::Int(now.0)])
        .await
        .map(drop)
}

/// The persistent callbacks of the registration's key are those of a further key from now on.
pub(crate) async fn retie_made_tokens(
    tx: &DbConnection<'_>,
    agent: AgentId,
    made_with: &str,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_tokens set made_with = $2
                       where agent = $1 and made_with is null and opens = 'standing'";
    tx.execute(SQL, &[SqlParam::id(agent), SqlParam::Text(made_with)])
        .await
        .map(drop)
}

/// Deletes up to `limit` tokens that expired before `keep_since`. Returns how many.
pub(super) async fn delete_expired_channel_tokens(
    tx: &DbConnection<'_>,
    keep_since: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    const SQL: &str = "delete from channel_tokens where hash in (
                           select hash from channel_tokens where expires_at < $1 order by expires_at limit $2)";
    tx.execute(SQL, &[SqlParam::Int(keep_since.0), SqlParam::Int(limit)])
        .await
}
