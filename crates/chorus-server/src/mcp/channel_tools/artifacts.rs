//! The artifacts of a channel: versioned texts that its members edit together.

use super::ChannelToolCall;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_error::ToolError;
use chorus_hub::channel::artifacts::{self, ArtifactEdit};
use chorus_wire::channel::artifact::{Artifact, ArtifactText, ChannelContents};
use chorus_wire::{ErrorCode, limits};
use schemars::JsonSchema;
use serde::Deserialize;

pub fn artifact_tools() -> Vec<ToolDefinition<ChannelToolCall>> {
    vec![
        ToolDefinition::new(
            "artifact_list",
            "List artifacts and files",
            ToolKind::ReadOnly,
            LIST_DESCRIPTION,
            list_artifacts,
        ),
        ToolDefinition::new(
            "artifact_read",
            "Read an artifact",
            ToolKind::ReadOnly,
            READ_DESCRIPTION,
            read_artifact,
        ),
        ToolDefinition::new(
            "artifact_create",
            "Create an artifact",
            ToolKind::Idempotent,
            CREATE_DESCRIPTION,
            create_artifact,
        ),
        ToolDefinition::new(
            "artifact_edit",
            "Edit an artifact",
            ToolKind::Destructive,
            EDIT_DESCRIPTION,
            edit_artifact,
        ),
    ]
}

const LIST_DESCRIPTION: &str = "List what this channel keeps: artifacts (shared texts, with slug and version) and files (with name and size).";

const READ_DESCRIPTION: &str = "Read an artifact: a text that the channel works on together. Returns content and version; artifact_edit needs that \
    version. An older version can be read while it is kept.";

const CREATE_DESCRIPTION: &str = "Keep a text in the channel for all members, such as a spec, a plan or a report, under a slug of its own. Use it instead of \
    posting anything long. Fails if the slug is taken: then read and edit it.";

const EDIT_DESCRIPTION: &str = "Change an artifact. Pass the version you read: if it was edited since, nothing is changed and you are told to read \
    it again. Either give the whole new `content`, or `find` (a passage that is there exactly once) and `replace`. Returns the \
    new version.";

/// `artifact_list`
#[derive(Deserialize, JsonSchema)]
struct ArtifactListArgs {}

async fn list_artifacts(
    call: ChannelToolCall,
    _: ArtifactListArgs,
) -> Result<ToolOutput<ChannelContents>, ToolError> {
    let contents = artifacts::list_artifacts(&call.actor, &call.hub).await?;
    Ok(ToolOutput::new(
        format!(
            "{} artifacts, {} files",
            contents.artifacts.len(),
            contents.files.len()
        ),
        contents,
    ))
}

/// `artifact_read`
#[derive(Deserialize, JsonSchema)]
struct ArtifactReadArgs {
    /// Which artifact, such as auth-spec.
    #[schemars(length(min = 1, max = limits::SLUG_OCTETS))]
    slug: String,
    /// An older version; the newest without it.
    #[schemars(range(min = 1, max = limits::SAFE_INTEGER_MAX))]
    version: Option<u64>,
}

async fn read_artifact(
    call: ChannelToolCall,
    args: ArtifactReadArgs,
) -> Result<ToolOutput<ArtifactText>, ToolError> {
    let found = artifacts::read_artifact(&call.actor, &call.hub, &args.slug, args.version).await;
    let found = found
        .map_err(|error| ToolError::from_hub_error(error, &[(ErrorCode::NotFound, "slug")]))?;
    Ok(ToolOutput::new(
        format!("{}, version {}", args.slug, found.content_version),
        found,
    ))
}

/// `artifact_create`
#[derive(Deserialize, JsonSchema)]
struct ArtifactCreateArgs {
    /// Its name for good: a-z, 0-9, '.', '_' and '-'.
    #[schemars(length(min = 1, max = limits::SLUG_OCTETS))]
    slug: String,
    /// A line that says what it is.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    title: Option<String>,
    /// The text.
    #[schemars(length(max = limits::ARTIFACT_BYTES))]
    content: String,
}

async fn create_artifact(
    call: ChannelToolCall,
    args: ArtifactCreateArgs,
) -> Result<ToolOutput<Artifact>, ToolError> {
    let created =
        artifacts::create_artifact(&call.actor, &call.hub, &args.slug, args.title, args.content)
            .await;
    let created = created
        .map_err(|error| ToolError::from_hub_error(error, &[(ErrorCode::Conflict, "slug")]))?;
    Ok(ToolOutput::new(
        format!("{} is kept, version 1", created.slug),
        created,
    ))
}

/// `artifact_edit`
#[derive(Deserialize, JsonSchema)]
struct ArtifactEditArgs {
    /// Which artifact.
    #[schemars(length(min = 1, max = limits::SLUG_OCTETS))]
    slug: String,
    /// The version you read, which must still be the newest.
    #[schemars(range(min = 1, max = limits::SAFE_INTEGER_MAX))]
    version: u64,
    /// The whole new text; or leave it out and give find and replace.
    #[schemars(length(max = limits::ARTIFACT_BYTES))]
    content: Option<String>,
    /// A passage that is there exactly once.
    #[schemars(length(min = 1, max = limits::ARTIFACT_BYTES))]
    find: Option<String>,
    /// What stands in its place.
    #[schemars(length(max = limits::ARTIFACT_BYTES))]
    replace: Option<String>,
    /// A new title.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    title: Option<String>,
}

async fn edit_artifact(
    call: ChannelToolCall,
    args: ArtifactEditArgs,
) -> Result<ToolOutput<Artifact>, ToolError> {
    let edit = parse_edit(args.content, args.find, args.replace)?;
    let edited = artifacts::edit_artifact(
        &call.actor,
        &call.hub,
        &args.slug,
        args.version,
        args.title,
        edit,
    )
    .await;
    let edited = edited.map_err(|error| {
        ToolError::from_hub_error(
            error,
            &[
                (ErrorCode::NotFound, "slug"),
                (ErrorCode::Conflict, "version"),
            ],
        )
    })?;
    Ok(ToolOutput::new(
        format!("{} is now version {}", edited.slug, edited.version),
        edited,
    ))
}

/// The whole text, or a passage and its replacement; any other combination is refused.
fn parse_edit(
    content: Option<String>,
    find: Option<String>,
    replace: Option<String>,
) -> Result<ArtifactEdit, ToolError> {
    Ok(match (content, find, replace) {
        (Some(content), None, None) => ArtifactEdit::FullText(content),
        (None, Some(find), Some(replace)) => ArtifactEdit::Passage { find, replace },
        (Some(_), Some(_) | None, Some(_) | None) => {
            return Err(ToolError::invalid_argument(
                "content",
                "it goes without find and replace",
            ));
        }
        (None, Some(_), None) => {
            return Err(ToolError::invalid_argument(
                "replace",
                "it is required with find",
            ));
        }
        (None, None, Some(_)) => {
            return Err(ToolError::invalid_argument(
                "find",
                "it is required with replace",
            ));
        }
        (None, None, None) => {
            return Err(ToolError::invalid_argument(
                "content",
                "it is required, or find and replace are",
            ));
        }
    })
}
