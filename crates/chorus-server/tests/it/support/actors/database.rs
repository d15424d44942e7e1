//! The database of a hub, as an operator with other tools sees it.

use crate::support::hub::Hub;
use std::time::Duration;
use tokio_postgres::NoTls;

/// Runs statements that both engines read.
pub async fn run_sql(hub: &Hub, sql: &str) {
    match &hub.settings.hub.database_url {
        None => {
            let connection = rusqlite::Connection::open(hub.dir.path().join("chorus.db")).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            connection.execute_batch(sql).unwrap();
        }
        Some(url) => {
            let (client, connection) = tokio_postgres::connect(url.expose(), NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap();
        }
    }
}

/// The number that a query gives.
pub async fn read_number(hub: &Hub, sql: &str) -> i64 {
    match &hub.settings.hub.database_url {
        None => {
            let connection = rusqlite::Connection::open(hub.dir.path().join("chorus.db")).unwrap();
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        }
        Some(url) => {
            let (client, connection) = tokio_postgres::connect(url.expose(), NoTls).await.unwrap();
            tokio::spawn(connection);
            client.query_one(sql, &[]).await.unwrap().get(0)
        }
    }
}

/// Every row of every table of a PostgreSQL database as text, with the name of its table. Octets are in hexadecimal digits.
pub async fn dump_postgres(url: &str) -> Vec<(String, String)> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let tables =
        "select table_name::text from information_schema.tables where table_schema = 'public'";
    let mut found = Vec::new();
    for table in client.query(tables, &[]).await.unwrap() {
        let table: String = table.get(0);
        let rows = format!("select r::text from \"{table}\" r");
        for row in client.query(&rows, &[]).await.unwrap() {
            found.push((table.clone(), row.get(0)));
        }
    }
    found
}
