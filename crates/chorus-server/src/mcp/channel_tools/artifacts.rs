//! What a room keeps: artifacts in versions, and files.

use super::ChannelToolCall;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_error::ToolError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chorus_hub::channel::artifacts::{self, ArtifactEdit};
use chorus_hub::channel::files;
use chorus_wire::channel::artifact::{Artifact, ArtifactText, ChannelContents, FileInfo};
use chorus_wire::{Code, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
        ToolDefinition::new(
            "file_put",
            "Store a file",
            ToolKind::Destructive,
            PUT_DESCRIPTION,
            put_file,
        ),
        ToolDefinition::new(
            "file_get",
            "Fetch a file",
            ToolKind::ReadOnly,
            GET_DESCRIPTION,
            get_file,
        ),
    ]
}

const LIST_DESCRIPTION: &str = "List what this channel keeps: artifacts (shared texts, with slug and version) and files (with name and size).";

const READ_DESCRIPTION: &str = "Read an artifact: a text that the channel works on together. Returns content and version; artifact_edit needs that \
    version. An older version can be read while it is kept.";

const CREATE_DESCRIPTION: &str = "Keep a text in the channel for everybody, such as a spec, a plan or a report, under a slug of its own. Use it instead of \
    posting anything long. Fails if the slug is taken: then read and edit it.";

const EDIT_DESCRIPTION: &str = "Change an artifact. Pass the version you read: if somebody has edited it since, nothing is changed and you are told to read \
    it again. Either give the whole new `content`, or `find` (a passage that is there exactly once) and `replace`. Returns the \
    new version.";

const PUT_DESCRIPTION: &str = "Store a small file in the channel, as base64 of at most 1 MiB. A name that is taken is kept unless `replace` is true.";

const GET_DESCRIPTION: &str =
    "Fetch a file of the channel by its name. Returns its bytes as base64 in `data`.";

/// `artifact_list`
#[derive(Deserialize, JsonSchema)]
struct ArtifactListArgs {}

async fn list_artifacts(
    call: ChannelToolCall,
    _: ArtifactListArgs,
) -> Result<ToolOutput<ChannelContents>, ToolError> {
    let shelf = artifacts::list_artifacts(&call.actor, &call.hub).await?;
    Ok(ToolOutput::new(
        format!(
            "{} artifacts, {} files",
            shelf.artifacts.len(),
            shelf.files.len()
        ),
        shelf,
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
    let found =
        found.map_err(|error| ToolError::from_hub_error(error, &[(Code::NotFound, "slug")]))?;
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
    let created =
        created.map_err(|error| ToolError::from_hub_error(error, &[(Code::Conflict, "slug")]))?;
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
    let edit = match (args.content, args.find, args.replace) {
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
    };
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
            &[(Code::NotFound, "slug"), (Code::Conflict, "version")],
        )
    })?;
    Ok(ToolOutput::new(
        format!("{} is now version {}", edited.slug, edited.version),
        edited,
    ))
}

/// `file_put`
#[derive(Deserialize, JsonSchema)]
struct FilePutArgs {
    /// Its name, without slashes.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    name: String,
    /// Its bytes as base64.
    data: String,
    /// Such as application/json.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    media_type: Option<String>,
    /// Put it in the place of a file of that name.
    replace: Option<bool>,
}

async fn put_file(
    call: ChannelToolCall,
    args: FilePutArgs,
) -> Result<ToolOutput<FileInfo>, ToolError> {
    let content = STANDARD
        .decode(args.data.trim())
        .map_err(|_| ToolError::invalid_argument("data", "it is not base64"))?;
    let replace = args.replace.unwrap_or(false);
    let stored = files::put_file(
        &call.actor,
        &call.hub,
        &args.name,
        args.media_type,
        content,
        replace,
    )
    .await;
    let stored = stored.map_err(|error| {
        ToolError::from_hub_error(error, &[(Code::TooLarge, "data"), (Code::Conflict, "name")])
    })?;
    Ok(ToolOutput::new(
        format!("{} is kept, {} bytes", stored.name, stored.size),
        stored,
    ))
}

/// `file_get`
#[derive(Deserialize, JsonSchema)]
struct FileGetArgs {
    /// Which file, as artifact_list names it.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    name: String,
}

/// A file with its bytes.
#[derive(Serialize, ToSchema)]
struct FileContent {
    #[serde(flatten)]
    info: FileInfo,
    /// Base64.
    data: String,
}

async fn get_file(
    call: ChannelToolCall,
    args: FileGetArgs,
) -> Result<ToolOutput<FileContent>, ToolError> {
    let found = files::get_file(&call.actor, &call.hub, &args.name).await;
    let (info, content) =
        found.map_err(|error| ToolError::from_hub_error(error, &[(Code::NotFound, "name")]))?;
    let text = format!("{}, {} bytes", info.name, info.size);
    Ok(ToolOutput::new(
        text,
        FileContent {
            info,
            data: STANDARD.encode(content),
        },
    ))
}
