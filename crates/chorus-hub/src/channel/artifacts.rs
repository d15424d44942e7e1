//! Artifacts of a channel: an edit names the version it starts from, so that no edit overwrites
//! another unseen.

use super::append::append_artifact_change;
use super::content_caller::ContentCaller;
use super::owner_quota::{charge_channel_content, check_owner_quota};
use crate::Result;
use crate::context::HubContext;
use crate::store::artifacts::{self, NewArtifactVersion};
use crate::store::{ChannelId, DbConnection, WriteTxn};
use chorus_wire::channel::artifact::{self, Artifact, ArtifactText, ChannelContents};
use chorus_wire::usage::QuotaName;
use chorus_wire::{Error, ErrorCode, limits};

/// `GET /channels/{id}/artifacts`, `artifact_list`
pub async fn list_artifacts(caller: &ContentCaller, hub: &HubContext) -> Result<ChannelContents> {
    load_artifact_list(hub, caller.read_channel(hub).await?.id).await
}

/// `GET /channels/{id}/artifacts/{slug}`, `artifact_read`: the newest version, or an older one that
/// is still kept.
pub async fn read_artifact(
    caller: &ContentCaller,
    hub: &HubContext,
    slug: &str,
    version: Option<u64>,
) -> Result<ArtifactText> {
    load_artifact(hub, caller.read_channel(hub).await?.id, slug, version).await
}

async fn load_artifact_list(hub: &HubContext, channel_id: ChannelId) -> Result<ChannelContents> {
    hub.store()
        .read(async move |tx| {
            let artifacts =
                artifacts::list_artifacts(tx, channel_id, "", limits::ARTIFACTS_PER_CHANNEL)
                    .await?;
            Ok(ChannelContents {
                artifacts,
                files: artifacts::list_files(tx, channel_id, limits::FILES_PER_CHANNEL).await?,
            })
        })
        .await
}

async fn load_artifact(
    hub: &HubContext,
    channel_id: ChannelId,
    slug: &str,
    version: Option<u64>,
) -> Result<ArtifactText> {
    let slug = artifact::check_slug(slug)?.to_owned();
    hub.store()
        .read(async move |tx| fetch_version(tx, channel_id, &slug, version).await)
        .await
}

async fn fetch_version(
    tx: &DbConnection<'_>,
    channel_id: ChannelId,
    slug: &str,
    version: Option<u64>,
) -> Result<ArtifactText> {
    let artifact = artifacts::find_artifact(tx, channel_id, slug)
        .await?
        .ok_or_else(|| artifact_not_found(slug))?;
    let content_version = version.unwrap_or(artifact.version);
    let content = artifacts::find_artifact_content(tx, channel_id, slug, content_version).await?;
    let version_gone = || {
        let message = format!(
            "version {content_version} of {slug} is not kept; the newest is {}",
            artifact.version
        );
        Error::new(ErrorCode::NotFound, message)
    };
    Ok(ArtifactText {
        content: content.ok_or_else(version_gone)?,
        content_version,
        artifact,
    })
}

fn artifact_not_found(slug: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("the channel has no artifact {slug}"),
    )
}

/// One edit of an artifact.
#[derive(Clone, Debug)]
pub enum ArtifactEdit {
    FullText(String),
    /// A passage that occurs exactly once, and its replacement.
    Passage {
        find: String,
        replace: String,
    },
}

impl ArtifactEdit {
    /// The whole text, or a passage and its replacement; `None` for any other combination.
    pub fn from_parts(
        content: Option<String>,
        find: Option<String>,
        replace: Option<String>,
    ) -> Option<Self> {
        match (content, find, replace) {
            (Some(content), None, None) => Some(Self::FullText(content)),
            (None, Some(find), Some(replace)) => Some(Self::Passage { find, replace }),
            (_, _, _) => None,
        }
    }
}

/// `POST /channels/{id}/artifacts`, `artifact_create`: the channel is told.
pub async fn create_artifact(
    caller: &ContentCaller,
    hub: &HubContext,
    slug: &str,
    title: Option<String>,
    content: String,
) -> Result<Artifact> {
    artifact::check_artifact_content(&content)?;
    let caller = caller.clone();
    let slug = artifact::check_slug(slug)?.to_owned();
    let title = check_title(title)?;
    charge_channel_content(hub, &caller.read_channel(hub).await?, content.len()).await?;
    hub.store()
        .write(async move |txn| {
            let (channel, author) = caller.find_author(txn).await?;
            check_owner_quota(txn, channel.owner, QuotaName::Artifacts).await?;
            if artifacts::count_artifacts(&txn.tx, channel.id).await?
                >= limits::ARTIFACTS_PER_CHANNEL
            {
                return Err(Error::new(
                    ErrorCode::Conflict,
                    format!(
                        "a channel has at most {} artifacts",
                        limits::ARTIFACTS_PER_CHANNEL
                    ),
                ));
            }
            let new = build_version(
                txn,
                channel.id,
                &slug,
                title.as_deref(),
                &content,
                &author.name,
            );
            if !artifacts::create_artifact(&txn.tx, &new).await? {
                let message = format!("slug {slug} is taken; edit it, or choose another");
                return Err(Error::new(ErrorCode::Conflict, message));
            }
            let created = find_existing(&txn.tx, channel.id, &slug).await?;
            append_artifact_change(txn, &channel, &author, &created)?;
            caller.record_operator_act(txn, "create_artifact", &slug);
            Ok(created)
        })
        .await
}

async fn find_existing(
    tx: &DbConnection<'_>,
    channel_id: ChannelId,
    slug: &str,
) -> Result<Artifact> {
    artifacts::find_artifact(tx, channel_id, slug)
        .await?
        .ok_or_else(|| artifact_not_found(slug))
}

/// `PATCH /channels/{id}/artifacts/{slug}`, `artifact_edit`: refused unless `from` is the newest
/// version. The channel is told.
pub async fn edit_artifact(
    caller: &ContentCaller,
    hub: &HubContext,
    slug: &str,
    from: u64,
    title: Option<String>,
    edit: ArtifactEdit,
) -> Result<Artifact> {
    let caller = caller.clone();
    let slug = artifact::check_slug(slug)?.to_owned();
    let title = check_title(title)?;
    let octets = match &edit {
        ArtifactEdit::FullText(content) => content.len(),
        ArtifactEdit::Passage { replace, .. } => replace.len(),
    };
    charge_channel_content(hub, &caller.read_channel(hub).await?, octets).await?;
    hub.store()
        .write(async move |txn| {
            let (channel, author) = caller.find_author(txn).await?;
            let channel_id = channel.id;
            let current = find_existing(&txn.tx, channel_id, &slug).await?;
            if current.version != from {
                let by = &current.updated_by;
                let message = format!(
                    "version {from} is not the newest: {by} made it {}; read it and edit that",
                    current.version
                );
                return Err(Error::new(ErrorCode::Conflict, message));
            }
            let content = match &edit {
                ArtifactEdit::FullText(content) => content.clone(),
                ArtifactEdit::Passage { find, replace } => {
                    let text = artifacts::find_artifact_content(&txn.tx, channel_id, &slug, from)
                        .await?
                        .ok_or_else(|| artifact_not_found(&slug))?;
                    replace_passage(&text, find, replace)?
                }
            };
            artifact::check_artifact_content(&content)?;
            let new = build_version(
                txn,
                channel_id,
                &slug,
                title.as_deref(),
                &content,
                &author.name,
            );
            // The version cannot have changed since the check above, because there is one writer.
            // The update checks it again, so that it does not depend on that.
            if !artifacts::update_artifact(&txn.tx, &new, from, limits::ARTIFACT_VERSIONS_KEPT)
                .await?
            {
                return Err(ErrorCode::Conflict.into());
            }
            let edited = find_existing(&txn.tx, channel_id, &slug).await?;
            append_artifact_change(txn, &channel, &author, &edited)?;
            caller.record_operator_act(txn, "edit_artifact", &slug);
            Ok(edited)
        })
        .await
}

fn build_version<'a>(
    txn: &WriteTxn<'_>,
    channel: ChannelId,
    slug: &'a str,
    title: Option<&'a str>,
    content: &'a str,
    author: &'a str,
) -> NewArtifactVersion<'a> {
    NewArtifactVersion {
        channel,
        slug,
        title,
        content,
        author,
        at: txn.now(),
    }
}

fn check_title(title: Option<String>) -> Result<Option<String>> {
    let is_valid = |title: &String| {
        (1..=limits::LABEL_CHARS).contains(&title.chars().count())
            && !title.contains(char::is_control)
    };
    match title {
        Some(title) if !is_valid(&title) => Err(Error::validation(format!(
            "title must be one line of 1 to {} characters",
            limits::LABEL_CHARS
        ))),
        title => Ok(title),
    }
}

/// The text is as it is: the request is well-formed.
fn refuse_passage(message: &str) -> Error {
    Error {
        field: Some("find".into()),
        ..Error::new(ErrorCode::Conflict, message)
    }
}

fn replace_passage(text: &str, find: &str, replace: &str) -> Result<String> {
    let occurrences = if find.is_empty() {
        0
    } else {
        text.matches(find).take(2).count()
    };
    match occurrences {
        1 => Ok(text.replacen(find, replace, 1)),
        0 => Err(refuse_passage("find is not in the artifact")),
        _ => Err(refuse_passage(
            "find is in the artifact more than once; take more of the text around it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_replaced_only_if_it_occurs_exactly_once() {
        assert_eq!(replace_passage("a b a", "b", "c").unwrap(), "a c a");
        for (find, expected_message) in [
            ("a", "more than once"),
            ("x", "is not in"),
            ("", "is not in"),
        ] {
            assert!(
                replace_passage("a b a", find, "c")
                    .unwrap_err()
                    .message
                    .contains(expected_message),
                "{find}"
            );
        }
    }
}
