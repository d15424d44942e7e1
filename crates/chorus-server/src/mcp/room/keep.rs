//! What a room keeps: artifacts in versions, and files.

use super::Visit;
use crate::mcp::refusal::Refusal;
use crate::mcp::tool::{Nature, Said, Verb};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chorus_hub::channel::artifacts::{self, Edit};
use chorus_hub::channel::files;
use chorus_wire::channel::artifact::{Artifact, ArtifactText, FileInfo, Shelf};
use chorus_wire::{Code, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub fn verbs() -> Vec<Verb<Visit>> {
    vec![
        Verb::new(
            "artifact_list",
            "List artifacts and files",
            Nature::Reads,
            LIST,
            list,
        ),
        Verb::new(
            "artifact_read",
            "Read an artifact",
            Nature::Reads,
            READ,
            read,
        ),
        Verb::new(
            "artifact_create",
            "Create an artifact",
            Nature::Settles,
            CREATE,
            create,
        ),
        Verb::new(
            "artifact_edit",
            "Edit an artifact",
            Nature::Replaces,
            EDIT,
            edit,
        ),
        Verb::new("file_put", "Store a file", Nature::Replaces, PUT, put),
        Verb::new("file_get", "Fetch a file", Nature::Reads, GET, get),
    ]
}

const LIST: &str = "List what this channel keeps: artifacts (shared texts, with slug and version) and files (with name and size).";

const READ: &str = "Read an artifact: a text that the channel works on together. Returns content and version; artifact_edit needs that \
    version. An older version can be read while it is kept.";

const CREATE: &str = "Keep a text in the channel for everybody, such as a spec, a plan or a report, under a slug of its own. Use it instead of \
    posting anything long. Fails if the slug is taken: then read and edit it.";

const EDIT: &str = "Change an artifact. Pass the version you read: if somebody has edited it since, nothing is changed and you are told to read \
    it again. Either give the whole new `content`, or `find` (a passage that is there exactly once) and `replace`. Returns the \
    new version.";

const PUT: &str = "Store a small file in the channel, as base64 of at most 1 MiB. A name that is taken is kept unless `replace` is true.";

const GET: &str = "Fetch a file of the channel by its name. Returns its bytes as base64 in `data`.";

/// `artifact_list`
#[derive(Deserialize, JsonSchema)]
struct ListArgs {}

async fn list(visit: Visit, _: ListArgs) -> Result<Said<Shelf>, Refusal> {
    let shelf = artifacts::list(&visit.guest, &visit.hub).await?;
    Ok(Said::new(
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
struct ReadArgs {
    /// Which artifact, such as auth-spec.
    #[schemars(length(min = 1, max = limits::SLUG_OCTETS))]
    slug: String,
    /// An older version; the newest without it.
    #[schemars(range(min = 1, max = limits::WHOLE_NUMBER))]
    version: Option<u64>,
}

async fn read(visit: Visit, args: ReadArgs) -> Result<Said<ArtifactText>, Refusal> {
    let found = artifacts::read(&visit.guest, &visit.hub, &args.slug, args.version).await;
    let found = found.map_err(|error| Refusal::told(error, &[(Code::NotFound, "slug")]))?;
    Ok(Said::new(
        format!("{}, version {}", args.slug, found.content_version),
        found,
    ))
}

/// `artifact_create`
#[derive(Deserialize, JsonSchema)]
struct CreateArgs {
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

async fn create(visit: Visit, args: CreateArgs) -> Result<Said<Artifact>, Refusal> {
    let made = artifacts::create(
        &visit.guest,
        &visit.hub,
        &args.slug,
        args.title,
        args.content,
    )
    .await;
    let made = made.map_err(|error| Refusal::told(error, &[(Code::Conflict, "slug")]))?;
    Ok(Said::new(format!("{} is kept, version 1", made.slug), made))
}

/// `artifact_edit`
#[derive(Deserialize, JsonSchema)]
struct EditArgs {
    /// Which artifact.
    #[schemars(length(min = 1, max = limits::SLUG_OCTETS))]
    slug: String,
    /// The version you read, which must still be the newest.
    #[schemars(range(min = 1, max = limits::WHOLE_NUMBER))]
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

async fn edit(visit: Visit, args: EditArgs) -> Result<Said<Artifact>, Refusal> {
    let edit = match (args.content, args.find, args.replace) {
        (Some(content), None, None) => Edit::Whole(content),
        (None, Some(find), Some(replace)) => Edit::Passage { find, replace },
        (Some(_), Some(_) | None, Some(_) | None) => {
            return Err(Refusal::argument(
                "content",
                "it goes without find and replace",
            ));
        }
        (None, Some(_), None) => {
            return Err(Refusal::argument("replace", "it is required with find"));
        }
        (None, None, Some(_)) => {
            return Err(Refusal::argument("find", "it is required with replace"));
        }
        (None, None, None) => {
            return Err(Refusal::argument(
                "content",
                "it is required, or find and replace are",
            ));
        }
    };
    let edited = artifacts::edit(
        &visit.guest,
        &visit.hub,
        &args.slug,
        args.version,
        args.title,
        edit,
    )
    .await;
    let edited = edited.map_err(|error| {
        Refusal::told(
            error,
            &[(Code::NotFound, "slug"), (Code::Conflict, "version")],
        )
    })?;
    Ok(Said::new(
        format!("{} is now version {}", edited.slug, edited.version),
        edited,
    ))
}

/// `file_put`
#[derive(Deserialize, JsonSchema)]
struct PutArgs {
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

async fn put(visit: Visit, args: PutArgs) -> Result<Said<FileInfo>, Refusal> {
    let content = STANDARD
        .decode(args.data.trim())
        .map_err(|_| Refusal::argument("data", "it is not base64"))?;
    let replace = args.replace.unwrap_or(false);
    let kept = files::put(
        &visit.guest,
        &visit.hub,
        &args.name,
        args.media_type,
        content,
        replace,
    )
    .await;
    let kept = kept.map_err(|error| {
        Refusal::told(error, &[(Code::TooLarge, "data"), (Code::Conflict, "name")])
    })?;
    Ok(Said::new(
        format!("{} is kept, {} bytes", kept.name, kept.size),
        kept,
    ))
}

/// `file_get`
#[derive(Deserialize, JsonSchema)]
struct GetArgs {
    /// Which file, as artifact_list names it.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    name: String,
}

/// A file with its bytes.
#[derive(Serialize, ToSchema)]
struct FileData {
    #[serde(flatten)]
    info: FileInfo,
    /// Base64.
    data: String,
}

async fn get(visit: Visit, args: GetArgs) -> Result<Said<FileData>, Refusal> {
    let found = files::get(&visit.guest, &visit.hub, &args.name).await;
    let (info, content) =
        found.map_err(|error| Refusal::told(error, &[(Code::NotFound, "name")]))?;
    let text = format!("{}, {} bytes", info.name, info.size);
    Ok(Said::new(
        text,
        FileData {
            info,
            data: STANDARD.encode(content),
        },
    ))
}
