//! `chorus channel artifacts`: lists a channel's artifacts and files, or prints one artifact.

use super::find_channel;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;

pub async fn show_artifacts(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    slug: Option<&str>,
    version: Option<u64>,
) -> Result<(), Fail> {
    let channel_client = find_channel(client, channel).await?;
    if let Some(slug) = slug {
        let artifact = channel_client.fetch_artifact(slug, version).await?;
        output::print_result(common.json, &artifact, || artifact.content.clone());
        return Ok(());
    }
    let listing = channel_client.list_artifacts().await?;
    for artifact in listing.artifacts {
        output::print_result(common.json, &artifact, || {
            let title = artifact
                .title
                .as_deref()
                .map(|title| format!("  {}", output::escape_controls(title)))
                .unwrap_or_default();
            format!(
                "{}  v{}{title}",
                output::escape_controls(&artifact.slug),
                artifact.version
            )
        });
    }
    for file in listing.files {
        output::print_result(common.json, &file, || {
            format!(
                "{}  {} bytes",
                output::escape_controls(&file.name),
                file.size
            )
        });
    }
    Ok(())
}
