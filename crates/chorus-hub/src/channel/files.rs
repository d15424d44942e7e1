//! Files of a channel: small, and stored unchanged.

use super::append::append_file_put;
use super::content_caller::ContentCaller;
use super::owner_quota::{charge_channel_content, check_owner_quota};
use crate::Result;
use crate::context::HubContext;
use crate::store::artifacts;
use chorus_wire::channel::artifact::{self, FileInfo};
use chorus_wire::usage::QuotaName;
use chorus_wire::{Error, ErrorCode, limits};

/// `file_put`: an existing file is replaced only if `replace` is set. The channel is told.
pub async fn put_file(
    caller: &ContentCaller,
    hub: &HubContext,
    name: &str,
    media_type: Option<String>,
    content: Vec<u8>,
    replace: bool,
) -> Result<FileInfo> {
    if content.len() > limits::FILE_BYTES {
        let message = format!(
            "content must be at most {} bytes before base64",
            limits::FILE_BYTES
        );
        return Err(Error::new(ErrorCode::TooLarge, message));
    }
    if let Some(media_type) = &media_type {
        artifact::MEDIA_TYPE.check("media_type", media_type)?;
    }
    let caller = caller.clone();
    let name = artifact::check_file_name(name)?.to_owned();
    charge_channel_content(hub, &caller.read_channel(hub).await?, content.len()).await?;
    hub.store()
        .write(async move |txn| {
            let (channel, author) = caller.find_author(txn).await?;
            let channel_id = channel.id;
            let (count, bytes) = artifacts::count_files_except(&txn.tx, channel_id, &name).await?;
            if count >= limits::FILES_PER_CHANNEL
                || bytes + content.len() > limits::CHANNEL_FILES_BYTES
            {
                let max_files = limits::FILES_PER_CHANNEL;
                let max_bytes = limits::CHANNEL_FILES_BYTES;
                let message = format!(
                    "a channel keeps at most {max_files} files and {max_bytes} bytes of them"
                );
                return Err(Error::new(ErrorCode::Conflict, message));
            }
            if artifacts::find_file(&txn.tx, channel_id, &name)
                .await?
                .is_none()
            {
                check_owner_quota(txn, channel.owner, QuotaName::Artifacts).await?;
            }
            let info = FileInfo {
                name: name.clone(),
                media_type: media_type.clone(),
                size: content.len() as u64,
                put_by: author.name.to_string(),
                put_at: txn.now(),
            };
            if !artifacts::put_file(&txn.tx, channel_id, &info, &content, replace).await? {
                let message = format!(
                    "name {} is taken; choose another, or set replace",
                    info.name
                );
                return Err(Error::new(ErrorCode::Conflict, message));
            }
            append_file_put(txn, &channel, &author, &info)?;
            Ok(info)
        })
        .await
}

/// `GET /channels/{id}/files/{name}`, `file_get`
pub async fn get_file(
    caller: &ContentCaller,
    hub: &HubContext,
    name: &str,
) -> Result<(FileInfo, Vec<u8>)> {
    let channel_id = caller.read_channel(hub).await?.id;
    let name = artifact::check_file_name(name)?.to_owned();
    let found = hub
        .store()
        .read(async move |tx| Ok(artifacts::find_file(tx, channel_id, &name).await?))
        .await?;
    found.ok_or_else(|| Error::new(ErrorCode::NotFound, "the channel has no file of that name"))
}
