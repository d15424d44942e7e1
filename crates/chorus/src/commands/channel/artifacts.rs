//! `chorus channel artifacts|write|file`: lists a channel's artifacts and files, prints or writes an artifact, fetches a file.

use super::find_channel;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use std::io::{Read, Write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct WriteArgs {
    channel: String,
    /// The name of the artifact: a-z, 0-9, '.', '_' and '-'
    slug: String,
    /// Where the text is; - is standard input
    file: PathBuf,
    /// The version that you changed; without it the artifact is created
    #[arg(long, value_name = "VERSION")]
    from: Option<u64>,
    /// A line that says what it is
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct FileArgs {
    channel: String,
    name: String,
    /// Write it here instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Creates an artifact, or replaces the version that the caller read.
pub async fn write_artifact(
    common: &CommonArgs,
    client: &HubClient,
    args: WriteArgs,
) -> Result<(), Fail> {
    let content = read_content(&args.file)?;
    let channel_client = find_channel(client, &args.channel).await?;
    let title = args.title.as_deref();
    let artifact = match args.from {
        Some(version) => {
            channel_client
                .edit_artifact(&args.slug, version, title, &content)
                .await?
        }
        None => {
            channel_client
                .create_artifact(&args.slug, title, &content)
                .await?
        }
    };
    output::print_result(common.json, &artifact, || {
        format!(
            "{} is version {}",
            output::escape_controls(&artifact.slug),
            artifact.version
        )
    });
    Ok(())
}

fn read_content(file: &std::path::Path) -> Result<String, Fail> {
    let read = if file == std::path::Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|e| Fail::usage_error(format!("{}: {e}", file.display())))
}

/// Writes the bytes of a file to standard output or to a file.
pub async fn fetch_file(
    common: &CommonArgs,
    client: &HubClient,
    args: FileArgs,
) -> Result<(), Fail> {
    let bytes = find_channel(client, &args.channel)
        .await?
        .fetch_file(&args.name)
        .await?;
    let Some(path) = args.output else {
        // As it is: an escape sequence of a terminal is a matter of the program that reads it.
        return std::io::stdout()
            .write_all(&bytes)
            .map_err(|e| Fail::usage_error(format!("standard output: {e}")));
    };
    std::fs::write(&path, &bytes)
        .map_err(|e| Fail::usage_error(format!("{}: {e}", path.display())))?;
    let saved = serde_json::json!({"name": args.name, "size": bytes.len(), "path": path});
    output::print_result(common.json, &saved, || {
        format!("{} bytes in {}", bytes.len(), path.display())
    });
    Ok(())
}

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
