//! The texts of a room: made once, edited by whoever knows the newest version, so that no edit undoes another unseen.

use super::rooms::enter;
use super::tools::Guest;
use crate::store::artifacts::{self as table, Version};
use crate::store::{Tx, Txn};
use crate::{Hub, Principal, Result};
use chorus_wire::channel::artifact::{self, Artifact, ArtifactText, Shelf};
use chorus_wire::{Code, Error, limits};

/// `GET /channels/{id}/artifacts`
pub async fn shelf(who: &Principal, hub: &Hub, id: &str) -> Result<Shelf> {
    of(hub, enter(who, hub, id).await?.room.id).await
}

/// `GET /channels/{id}/artifacts/{slug}`
pub async fn show(
    who: &Principal,
    hub: &Hub,
    id: &str,
    slug: &str,
    version: Option<u64>,
) -> Result<ArtifactText> {
    text(hub, enter(who, hub, id).await?.room.id, slug, version).await
}

/// `artifact_list`
pub async fn list(guest: &Guest, hub: &Hub) -> Result<Shelf> {
    of(hub, guest.pass.room.id).await
}

/// `artifact_read`: the newest version, or one that is still kept.
pub async fn read(
    guest: &Guest,
    hub: &Hub,
    slug: &str,
    version: Option<u64>,
) -> Result<ArtifactText> {
    text(hub, guest.pass.room.id, slug, version).await
}

async fn of(hub: &Hub, room: i64) -> Result<Shelf> {
    hub.store()
        .read(async move |tx| {
            let artifacts = table::list(tx, room, "", limits::ARTIFACTS).await?;
            Ok(Shelf {
                artifacts,
                files: table::files(tx, room, limits::FILES).await?,
            })
        })
        .await
}

async fn text(hub: &Hub, room: i64, slug: &str, version: Option<u64>) -> Result<ArtifactText> {
    let slug = artifact::slug(slug)?.to_owned();
    hub.store()
        .read(async move |tx| found(tx, room, &slug, version).await)
        .await
}

async fn found(tx: &Tx<'_>, room: i64, slug: &str, version: Option<u64>) -> Result<ArtifactText> {
    let artifact = table::get(tx, room, slug)
        .await?
        .ok_or_else(|| nothing(slug))?;
    let content_version = version.unwrap_or(artifact.version);
    let content = table::content(tx, room, slug, content_version).await?;
    let gone = || {
        let said = format!(
            "version {content_version} of {slug} is not kept; the newest is {}",
            artifact.version
        );
        Error::new(Code::NotFound, said)
    };
    Ok(ArtifactText {
        content: content.ok_or_else(gone)?,
        content_version,
        artifact,
    })
}

fn nothing(slug: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("the channel has no artifact {slug}"),
    )
}

/// What an artifact is to become.
#[derive(Clone, Debug)]
pub enum Edit {
    Whole(String),
    /// A passage that is there exactly once, and what stands in its place.
    Passage {
        find: String,
        replace: String,
    },
}

/// `artifact_create`
pub async fn create(
    guest: &Guest,
    hub: &Hub,
    slug: &str,
    title: Option<String>,
    content: String,
) -> Result<Artifact> {
    artifact::content(&content)?;
    let (guest, slug, title) = (
        guest.clone(),
        artifact::slug(slug)?.to_owned(),
        checked(title)?,
    );
    hub.store()
        .write(async move |txn| {
            let pass = guest.enter(txn).await?;
            if table::how_many(&txn.tx, pass.room.id).await? >= limits::ARTIFACTS {
                return Err(Error::new(
                    Code::Conflict,
                    format!("a channel has at most {} artifacts", limits::ARTIFACTS),
                ));
            }
            let new = version(
                txn,
                pass.room.id,
                &slug,
                title.as_deref(),
                &content,
                &pass.member.name,
            );
            if !table::create(&txn.tx, &new).await? {
                let said = format!("slug {slug} is taken; edit it, or choose another");
                return Err(Error::new(Code::Conflict, said));
            }
            table::get(&txn.tx, pass.room.id, &slug)
                .await?
                .ok_or_else(|| nothing(&slug))
        })
        .await
}

/// `artifact_edit`: only whoever names the newest version may write the next one.
pub async fn edit(
    guest: &Guest,
    hub: &Hub,
    slug: &str,
    from: u64,
    title: Option<String>,
    edit: Edit,
) -> Result<Artifact> {
    let (guest, slug, title) = (
        guest.clone(),
        artifact::slug(slug)?.to_owned(),
        checked(title)?,
    );
    hub.store()
        .write(async move |txn| {
            let pass = guest.enter(txn).await?;
            let room = pass.room.id;
            let now = table::get(&txn.tx, room, &slug)
                .await?
                .ok_or_else(|| nothing(&slug))?;
            if now.version != from {
                let by = &now.updated_by;
                let said = format!(
                    "version {from} is not the newest: {by} made it {}; read it and edit that",
                    now.version
                );
                return Err(Error::new(Code::Conflict, said));
            }
            let content = match &edit {
                Edit::Whole(content) => content.clone(),
                Edit::Passage { find, replace } => {
                    let text = table::content(&txn.tx, room, &slug, from)
                        .await?
                        .ok_or_else(|| nothing(&slug))?;
                    replaced(&text, find, replace)?
                }
            };
            artifact::content(&content)?;
            let new = version(
                txn,
                room,
                &slug,
                title.as_deref(),
                &content,
                &pass.member.name,
            );
            // Nobody can have come in between: this is the only writer. The condition says so to the next reader too.
            if !table::edit(&txn.tx, &new, from, limits::ARTIFACT_VERSIONS).await? {
                return Err(Code::Conflict.into());
            }
            table::get(&txn.tx, room, &slug)
                .await?
                .ok_or_else(|| nothing(&slug))
        })
        .await
}

fn version<'a>(
    txn: &Txn<'_>,
    channel: i64,
    slug: &'a str,
    title: Option<&'a str>,
    content: &'a str,
    author: &'a str,
) -> Version<'a> {
    Version {
        channel,
        slug,
        title,
        content,
        author,
        at: txn.now(),
    }
}

fn checked(title: Option<String>) -> Result<Option<String>> {
    let good = |title: &String| {
        (1..=limits::LABEL_CHARS).contains(&title.chars().count())
            && !title.contains(char::is_control)
    };
    match title {
        Some(title) if !good(&title) => Err(Error::validation(format!(
            "title must be one line of 1 to {} characters",
            limits::LABEL_CHARS
        ))),
        title => Ok(title),
    }
}

fn replaced(text: &str, find: &str, replace: &str) -> Result<String> {
    let times = if find.is_empty() {
        0
    } else {
        text.matches(find).take(2).count()
    };
    match times {
        1 => Ok(text.replacen(find, replace, 1)),
        0 => Err(Error::validation("find is not in the artifact")),
        _ => Err(Error::validation(
            "find is in the artifact more than once; take more of the text around it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_replaced_only_where_there_is_no_doubt() {
        assert_eq!(replaced("a b a", "b", "c").unwrap(), "a c a");
        for (find, said) in [
            ("a", "more than once"),
            ("x", "is not in"),
            ("", "is not in"),
        ] {
            assert!(
                replaced("a b a", find, "c")
                    .unwrap_err()
                    .message
                    .contains(said),
                "{find}"
            );
        }
    }
}
