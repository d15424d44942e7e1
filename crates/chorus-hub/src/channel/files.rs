//! The files of a room: small ones, kept as they came.

use super::tools::Guest;
use crate::store::artifacts as table;
use crate::{Hub, Result};
use chorus_wire::channel::artifact::{self, FileInfo};
use chorus_wire::{Code, Error, limits};

/// `file_put`: a name that is taken is replaced only by whoever says so.
pub async fn put(
    guest: &Guest,
    hub: &Hub,
    name: &str,
    media_type: Option<String>,
    content: Vec<u8>,
    replace: bool,
) -> Result<FileInfo> {
    if content.len() > limits::FILE_BYTES {
        let said = format!(
            "content must be at most {} bytes before base64",
            limits::FILE_BYTES
        );
        return Err(Error::new(Code::TooLarge, said));
    }
    if media_type.as_deref().is_some_and(|of| !is_media_type(of)) {
        return Err(Error::validation(
            "media_type must be a media type such as application/json",
        ));
    }
    let (guest, name) = (guest.clone(), artifact::file_name(name)?.to_owned());
    hub.store()
        .write(async move |txn| {
            let pass = guest.enter(txn).await?;
            let room = pass.room.id;
            let (count, bytes) = table::files_but(&txn.tx, room, &name).await?;
            if count >= limits::FILES || bytes + content.len() > limits::FILES_BYTES {
                let (files, bytes) = (limits::FILES, limits::FILES_BYTES);
                let said =
                    format!("a channel keeps at most {files} files and {bytes} bytes of them");
                return Err(Error::new(Code::Conflict, said));
            }
            let put_by = pass.member.name;
            let (name, media_type) = (name.clone(), media_type.clone());
            let info = FileInfo {
                name,
                media_type,
                size: content.len() as u64,
                put_by,
                put_at: txn.now(),
            };
            if !table::put(&txn.tx, room, &info, &content, replace).await? {
                let said = format!(
                    "name {} is taken; choose another, or set replace",
                    info.name
                );
                return Err(Error::new(Code::Conflict, said));
            }
            Ok(info)
        })
        .await
}

/// `file_get`
pub async fn get(guest: &Guest, hub: &Hub, name: &str) -> Result<(FileInfo, Vec<u8>)> {
    let (room, name) = (guest.pass.room.id, artifact::file_name(name)?.to_owned());
    let found = hub
        .store()
        .read(async move |tx| Ok(table::fetch(tx, room, &name).await?))
        .await?;
    found.ok_or_else(|| Error::new(Code::NotFound, "the channel has no file of that name"))
}

fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    text.len() <= limits::LABEL_CHARS
        && text
            .split_once('/')
            .is_some_and(|(of, kind)| token(of) && token(kind))
}
