//! The artifacts of a channel: versioned texts that its members edit together.

use super::ChannelToolCall;
use crate::mcp::shared_args::NoArguments;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_error::ToolError;
use chorus_hub::channel::artifacts::{self, ArtifactEdit};
use chorus_wire::channel::artifact::{
    Artifact, ArtifactText, ChannelContents, SLUG, TITLE_CHECK, VERSION_CHECK, artifact_text,
};
use chorus_wire::contract::FieldCheck;
use chorus_wire::{ErrorCode, wire_object};

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

async fn list_artifacts(
    call: ChannelToolCall,
    _: NoArguments,
) -> Result<ToolOutput<ChannelContents>, ToolError> {
    let contents = artifacts::list_artifacts(&call.actor.into(), &call.hub).await?;
    Ok(ToolOutput::new(
        format!(
            "{} artifacts, {} files",
            contents.artifacts.len(),
            contents.files.len()
        ),
        contents,
    ))
}

wire_object! {
    /// `artifact_read`
    ArtifactReadArgs, refuses unknown => {
        /// Which artifact, such as auth-spec.
        required slug: String = FieldCheck::Grammar(&SLUG);
        /// An older version; the newest without it.
        nullable version: u64 = VERSION_CHECK;
    }
}

async fn read_artifact(
    call: ChannelToolCall,
    args: ArtifactReadArgs,
) -> Result<ToolOutput<ArtifactText>, ToolError> {
    let found =
        artifacts::read_artifact(&call.actor.into(), &call.hub, &args.slug, args.version).await;
    let found = found
        .map_err(|error| ToolError::from_hub_error(error, &[(ErrorCode::NotFound, "slug")]))?;
    Ok(ToolOutput::new(
        format!("{}, version {}", args.slug, found.content_version),
        found,
    ))
}

wire_object! {
    /// `artifact_create`
    ArtifactCreateArgs, refuses unknown => {
        /// Its name for good: a-z, 0-9, '.', '_' and '-'.
        required slug: String = FieldCheck::Grammar(&SLUG);
        /// A line that says what it is.
        nullable title: String = TITLE_CHECK;
        /// The text.
        required content: String = artifact_text(0);
    }
}

async fn create_artifact(
    call: ChannelToolCall,
    args: ArtifactCreateArgs,
) -> Result<ToolOutput<Artifact>, ToolError> {
    let created = artifacts::create_artifact(
        &call.actor.into(),
        &call.hub,
        &args.slug,
        args.title,
        args.content,
    )
    .await;
    let created = created
        .map_err(|error| ToolError::from_hub_error(error, &[(ErrorCode::Conflict, "slug")]))?;
    Ok(ToolOutput::new(
        format!("{} is kept, version 1", created.slug),
        created,
    ))
}

wire_object! {
    /// `artifact_edit`
    ArtifactEditArgs, refuses unknown => {
        /// Which artifact.
        required slug: String = FieldCheck::Grammar(&SLUG);
        /// The version you read, which must still be the newest.
        required version: u64 = VERSION_CHECK;
        /// The whole new text; or leave it out and give find and replace.
        nullable content: String = artifact_text(0);
        /// A passage that is there exactly once.
        nullable find: String = artifact_text(1);
        /// What stands in its place.
        nullable replace: String = artifact_text(0);
        /// A new title.
        nullable title: String = TITLE_CHECK;
    }
}

async fn edit_artifact(
    call: ChannelToolCall,
    args: ArtifactEditArgs,
) -> Result<ToolOutput<Artifact>, ToolError> {
    let edit = parse_edit(args.content, args.find, args.replace)?;
    let edited = artifacts::edit_artifact(
        &call.actor.into(),
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
