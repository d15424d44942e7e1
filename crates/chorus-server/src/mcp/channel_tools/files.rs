//! The files of a channel: small binaries, passed as base64.

use super::ChannelToolCall;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_error::ToolError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chorus_hub::channel::files;
use chorus_wire::channel::artifact::{FILE_NAME, FileInfo, MEDIA_TYPE};
use chorus_wire::contract::{FieldCheck, octets};
use chorus_wire::{ErrorCode, limits, wire_object};
use serde::Serialize;
use utoipa::ToSchema;

pub fn file_tools() -> Vec<ToolDefinition<ChannelToolCall>> {
    vec![
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

const PUT_DESCRIPTION: &str = "Store a small file in the channel, as base64 of at most 1 MiB. A name that is taken is kept unless `replace` is true.";

const GET_DESCRIPTION: &str =
    "Fetch a file of the channel by its name. Returns its bytes as base64 in `data`.";

wire_object! {
    /// `file_put`
    FilePutArgs, refuses unknown => {
        /// Its name, without slashes.
        required name: String = FieldCheck::Grammar(&FILE_NAME);
        /// Its bytes as base64.
        required data: String = octets(0, limits::CHANNEL_TOOL_CALL_BYTES);
        /// Such as application/json.
        nullable media_type: String = FieldCheck::Grammar(&MEDIA_TYPE);
        /// Put it in the place of a file of that name.
        nullable replace: bool = FieldCheck::Bool;
    }
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
        &call.actor.into(),
        &call.hub,
        &args.name,
        args.media_type,
        content,
        replace,
    )
    .await;
    let stored = stored.map_err(|error| {
        ToolError::from_hub_error(
            error,
            &[(ErrorCode::TooLarge, "data"), (ErrorCode::Conflict, "name")],
        )
    })?;
    Ok(ToolOutput::new(
        format!("{} is kept, {} bytes", stored.name, stored.size),
        stored,
    ))
}

wire_object! {
    /// `file_get`
    FileGetArgs, refuses unknown => {
        /// Which file, as artifact_list names it.
        required name: String = FieldCheck::Grammar(&FILE_NAME);
    }
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
    let found = files::get_file(&call.actor.into(), &call.hub, &args.name).await;
    let (info, content) = found
        .map_err(|error| ToolError::from_hub_error(error, &[(ErrorCode::NotFound, "name")]))?;
    let text = format!("{}, {} bytes", info.name, info.size);
    Ok(ToolOutput::new(
        text,
        FileContent {
            info,
            data: STANDARD.encode(content),
        },
    ))
}
