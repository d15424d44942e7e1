//! After a copy was restored: the log goes on far beyond everything that clients have seen since the copy was made. Given out
//! again, those places would hide new entries from whoever remembers the old ones.

use super::value::DbError;
use super::{FILE, Tx, lock, migrations, postgres, sqlite};
use crate::clock::Clock;
use crate::hub::StartError;
use chorus_wire::secret::Secret;
use std::path::Path;

/// More than a hub writes between two copies, and a thousand times less than there are places.
const LEAP: &str = "insert into log (seq, subject, kind, actor, at, body)
                    select max(seq) + 1000000000, 0, 'activity', 0, max(at), '{\"type\":\"restored\",\"data\":{}}'
                    from log having count(*) > 0";

/// Leaves the places out; nobody else may be using the data.
pub(crate) async fn restored(data_dir: &Path, database: Option<&Secret>) -> Result<(), StartError> {
    let failed = |e: DbError| StartError::Store {
        what: "nothing was changed".into(),
        cause: e.to_string(),
    };
    let now = Clock::system().now().0;
    if let Some(url) = database {
        let client = postgres::Client::connect(url).await.map_err(failed)?;
        client.hold(true).await.map_err(failed)?;
        return leap(&Tx::Postgres(&client), now).await.map_err(failed);
    }
    let file = data_dir.join(FILE);
    if !file.exists() {
        return Err(failed(DbError::Unavailable(format!(
            "{} is not there",
            file.display()
        ))));
    }
    let _lock = lock::Lock::take(data_dir)?;
    let connection = sqlite::open_writer(&file).map_err(failed)?;
    leap(&Tx::Sqlite(&connection), now).await.map_err(failed)
}

async fn leap(tx: &Tx<'_>, now: i64) -> Result<(), DbError> {
    migrations::run(tx, now).await?;
    match tx.execute(LEAP, &[]).await? {
        0 => Err(DbError::Unavailable("there is nothing in it".into())),
        _ => Ok(()),
    }
}
