//! Channels of a hub: create, update, manage members, post messages, read and follow them.

use crate::event_stream::EventStream;
use crate::http::{ApiCall, encode_segment};
use crate::{HubClient, Result, limits};
use chorus_wire::channel::artifact::{Artifact, ArtifactText, ChannelContents};
use chorus_wire::channel::channels::{
    Channel, ChannelDeleted, ChannelMember, ChannelMemberRemoved,
};
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::channel::persistent_callback::PersistentCallback;
use chorus_wire::cursor::Cursor;
use chorus_wire::secret::Secret;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const PATH: &str = "/channels";

/// A member to add to a channel.
#[derive(Clone, Debug)]
pub enum NewMember {
    /// An agent of any service, by its connection string.
    Connection {
        url: Secret,
        name: String,
        signing_secret: Option<Secret>,
    },
    /// An agent of the hub.
    Agent {
        agent_id: String,
        name: Option<String>,
    },
}

/// A client for one channel.
#[derive(Clone, Debug)]
pub struct ChannelClient {
    client: HubClient,
    path: String,
}

impl HubClient {
    /// Creates a channel; the caller owns it.
    pub async fn create_channel(
        &self,
        name: &str,
        service: Option<&str>,
        context: Option<&str>,
    ) -> Result<Channel> {
        let body = print_fields(&[
            ("name", Some(name)),
            ("service", service),
            ("context", context),
        ]);
        self.fetch_data_with_retry(ApiCall::post(PATH, body)).await
    }

    /// All channels that this caller is in or invited to.
    pub async fn list_channels(&self) -> Result<Vec<Channel>> {
        let mut channels: Vec<Channel> = Vec::new();
        for _ in 0..limits::MAX_DIRECTORY_PAGES {
            let after = channels
                .last()
                .map(|last| format!("&after={}", encode_segment(&last.id)))
                .unwrap_or_default();
            let path = format!("{PATH}?limit={}{after}", limits::PAGE_SIZE);
            let page: Vec<Channel> = self
                .send_with_retry(ApiCall::get(path))
                .await?
                .into_data()?
                .0;
            let is_last = page.len() < limits::PAGE_SIZE;
            channels.extend(page);
            if is_last {
                break;
            }
        }
        Ok(channels)
    }

    pub fn channel(&self, id: &str) -> ChannelClient {
        ChannelClient {
            client: self.clone(),
            path: format!("{PATH}/{}", encode_segment(id)),
        }
    }
}

impl ChannelClient {
    pub async fn fetch_channel(&self) -> Result<Channel> {
        Ok(self
            .client
            .send_with_retry(ApiCall::get(&*self.path))
            .await?
            .into_data()?
            .0)
    }

    /// Changes name or context; `None` keeps the current value.
    pub async fn update_channel(
        &self,
        name: Option<&str>,
        context: Option<&str>,
    ) -> Result<Channel> {
        let body = print_fields(&[("name", name), ("context", context)]);
        Ok(self
            .client
            .send_with_retry(ApiCall::patch(&*self.path, body))
            .await?
            .into_data()?
            .0)
    }

    pub async fn delete_channel(&self) -> Result<ChannelDeleted> {
        self.client.fetch_data(ApiCall::delete(&*self.path)).await
    }

    pub async fn list_members(&self) -> Result<Vec<ChannelMember>> {
        Ok(self
            .client
            .send_with_retry(ApiCall::get(format!("{}/members", self.path)))
            .await?
            .into_data()?
            .0)
    }

    /// `deliver` is `all` or `mentions`.
    pub async fn add_member(&self, member: &NewMember, deliver: &str) -> Result<ChannelMember> {
        let body = match member {
            NewMember::Connection {
                url,
                name,
                signing_secret,
            } => print_fields(&[
                ("connection", Some(url.expose())),
                ("name", Some(name)),
                (
                    "signing_secret",
                    signing_secret.as_ref().map(Secret::expose),
                ),
                ("deliver", Some(deliver)),
            ]),
            NewMember::Agent { agent_id, name } => print_fields(&[
                ("agent_id", Some(agent_id)),
                ("name", name.as_deref()),
                ("deliver", Some(deliver)),
            ]),
        };
        self.client
            .fetch_data_with_retry(ApiCall::post(format!("{}/members", self.path), body))
            .await
    }

    pub async fn remove_member(&self, name: &str) -> Result<ChannelMemberRemoved> {
        self.client
            .fetch_data(ApiCall::delete(format!(
                "{}/members/{}",
                self.path,
                encode_segment(name)
            )))
            .await
    }

    /// Accepts the invitation of the member of this name, which must be the caller.
    pub async fn accept_invitation(&self, name: &str) -> Result<ChannelMember> {
        let path = format!("{}/members/{}/accept", self.path, encode_segment(name));
        self.client
            .fetch_data_with_retry(ApiCall::post(path, "{}".to_owned()))
            .await
    }

    /// Creates a member's persistent callback; the previous one stops working at once.
    pub async fn create_persistent_callback(&self, name: &str) -> Result<PersistentCallback> {
        let path = format!("{}/members/{}/callback", self.path, encode_segment(name));
        self.client
            .fetch_data_with_retry(ApiCall::post(path, "{}".to_owned()))
            .await
    }

    /// Changes which messages are delivered to a member: `all` or `mentions`.
    pub async fn set_delivery_mode(&self, name: &str, deliver: &str) -> Result<ChannelMember> {
        let path = format!("{}/members/{}", self.path, encode_segment(name));
        let body = print_fields(&[("deliver", Some(deliver))]);
        Ok(self
            .client
            .send_with_retry(ApiCall::patch(path, body))
            .await?
            .into_data()?
            .0)
    }

    /// Posts a message. Retries use one idempotency key, so the message is posted once.
    pub async fn post_message(&self, content: &str) -> Result<ChannelRow> {
        self.post_parts(content, None).await
    }

    /// The same with structured content beside the text.
    pub async fn post_parts(&self, content: &str, parts: Option<&RawValue>) -> Result<ChannelRow> {
        let mut body = json!({ "content": content });
        if let Some(parts) = parts {
            body["parts"] = json!(parts);
        }
        let call = ApiCall::post(format!("{}/messages", self.path), body.to_string());
        self.client.fetch_data_with_retry(call).await
    }

    /// One page of the channel's history, oldest first: the first rows after `since`, or the latest without it.
    pub async fn fetch_history(
        &self,
        since: Option<Cursor>,
        limit: usize,
    ) -> Result<Vec<ChannelRow>> {
        let position = since.map_or_else(
            || format!("before={}", chorus_wire::limits::SAFE_INTEGER_MAX),
            |since| format!("since={since}"),
        );
        let path = format!("{}/messages?limit={limit}&{position}", self.path);
        Ok(self
            .client
            .send_with_retry(ApiCall::get(path))
            .await?
            .into_data()?
            .0)
    }

    /// The channel's artifacts and files, without their texts.
    pub async fn list_artifacts(&self) -> Result<ChannelContents> {
        Ok(self
            .client
            .send_with_retry(ApiCall::get(format!("{}/artifacts", self.path)))
            .await?
            .into_data()?
            .0)
    }

    /// One artifact's text: the given version, or the newest.
    pub async fn fetch_artifact(&self, slug: &str, version: Option<u64>) -> Result<ArtifactText> {
        let version = version
            .map(|version| format!("?version={version}"))
            .unwrap_or_default();
        let path = format!("{}/artifacts/{}{version}", self.path, encode_segment(slug));
        Ok(self
            .client
            .send_with_retry(ApiCall::get(path))
            .await?
            .into_data()?
            .0)
    }

    /// Creates an artifact. A slug that is taken is refused.
    pub async fn create_artifact(
        &self,
        slug: &str,
        title: Option<&str>,
        content: &str,
    ) -> Result<Artifact> {
        let body = print_fields(&[
            ("slug", Some(slug)),
            ("title", title),
            ("content", Some(content)),
        ]);
        self.client
            .fetch_data(ApiCall::post(format!("{}/artifacts", self.path), body))
            .await
    }

    /// Replaces the text of an artifact, if `version` is still the newest.
    pub async fn edit_artifact(
        &self,
        slug: &str,
        version: u64,
        title: Option<&str>,
        content: &str,
    ) -> Result<Artifact> {
        let mut body = json!({"version": version, "content": content});
        if let Some(title) = title {
            body["title"] = json!(title);
        }
        let path = format!("{}/artifacts/{}", self.path, encode_segment(slug));
        self.client
            .fetch_data(ApiCall::patch(path, body.to_string()))
            .await
    }

    /// The bytes of a file.
    pub async fn fetch_file(&self, name: &str) -> Result<Vec<u8>> {
        let path = format!("{}/files/{}", self.path, encode_segment(name));
        self.client.fetch_bytes(ApiCall::get(path)).await
    }

    /// Streams the history after `since`, or from now on without it; it resumes by itself.
    pub fn open_stream(&self, since: Option<Cursor>) -> EventStream {
        self.client
            .open_stream(format!("{}/stream", self.path), since)
    }
}

/// A JSON object of the fields that have a value.
fn print_fields(fields: &[(&str, Option<&str>)]) -> String {
    let present_fields = fields
        .iter()
        .filter_map(|(key, value)| Some(((*key).to_owned(), json!((*value)?))));
    Value::Object(present_fields.collect()).to_string()
}
