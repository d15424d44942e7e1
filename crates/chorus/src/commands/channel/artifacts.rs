//! What a room has written down: its list, or one text as it stands.

use super::find;
use crate::{cli::Common, fail::Fail, out};
use chorus_client::Client;

pub async fn run(
    common: &Common,
    client: &Client,
    channel: &str,
    slug: Option<&str>,
    version: Option<u64>,
) -> Result<(), Fail> {
    let room = find(client, channel).await?;
    if let Some(slug) = slug {
        let artifact = room.artifact(slug, version).await?;
        out::say(common.json, &artifact, || artifact.content.clone());
        return Ok(());
    }
    let shelf = room.artifacts().await?;
    for artifact in shelf.artifacts {
        out::say(common.json, &artifact, || {
            let title = artifact
                .title
                .as_deref()
                .map(|title| format!("  {}", out::harmless(title)))
                .unwrap_or_default();
            format!(
                "{}  v{}{title}",
                out::harmless(&artifact.slug),
                artifact.version
            )
        });
    }
    for file in shelf.files {
        out::say(common.json, &file, || {
            format!("{}  {} bytes", out::harmless(&file.name), file.size)
        });
    }
    Ok(())
}
