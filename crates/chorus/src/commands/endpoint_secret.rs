//! `chorus endpoint-secret`: makes the secret that signs what the hub posts to the agent's endpoints.

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use serde_json::json;

pub async fn run(common: &CommonArgs) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let made = session.client.create_endpoint_secret().await?;
    let secret = made.endpoint_secret.expose();
    output::print_result(common.json, &json!({"endpoint_secret": secret}), || {
        secret.to_owned()
    });
    Ok(())
}
