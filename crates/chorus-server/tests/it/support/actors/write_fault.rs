//! A database that takes no writes while reads go on, until the story ends it.

use crate::support::hub::{Hub, eventually};
use tokio_postgres::NoTls;

pub enum WriteFault {
    /// Another program holds the write lock of the file.
    Sqlite(rusqlite::Connection),
    /// A failover has left the hub with a server that is read-only.
    Postgres(tokio_postgres::Client, String),
}

impl WriteFault {
    pub async fn begin(hub: &Hub) -> Self {
        let Some(url) = &hub.settings.hub.database_url else {
            let file = hub.dir.path().join("chorus.db");
            let connection = rusqlite::Connection::open(file).unwrap();
            connection.execute_batch("begin immediate").unwrap();
            return Self::Sqlite(connection);
        };
        let (client, connection) = tokio_postgres::connect(url.expose(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let name: String = client
            .query_one("select current_database()", &[])
            .await
            .unwrap()
            .get(0);
        let read_only = format!("alter database {name} set default_transaction_read_only = on");
        client.batch_execute(&read_only).await.unwrap();
        let ended = "select pg_terminate_backend(pid) from pg_stat_activity
                     where datname = current_database() and pid <> pg_backend_pid()";
        client.query(ended, &[]).await.unwrap();
        eventually("reads go on", || async {
            hub.anonymous().get("/health").await.status == 200
        })
        .await;
        Self::Postgres(client, name)
    }

    pub async fn end(self) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("rollback").unwrap(),
            Self::Postgres(client, name) => {
                let sql = format!(
                    "begin read write; alter database {name} reset default_transaction_read_only; commit"
                );
                client.batch_execute(&sql).await.unwrap();
            }
        }
    }
}
