//! Rooms of a hub: made, changed, entered, spoken in and followed.

use crate::http::{Call, segment};
use crate::stream::Stream;
use crate::{Client, Result, limits};
use chorus_wire::channel::artifact::{ArtifactText, Shelf};
use chorus_wire::channel::room::{Channel, Deleted, Member, Removed};
use chorus_wire::channel::row::Row;
use chorus_wire::channel::standing::Standing;
use chorus_wire::cursor::Cursor;
use chorus_wire::secret::Secret;
use serde_json::{Value, json};

const PATH: &str = "/channels";

/// Who is to come into a room.
#[derive(Clone, Debug)]
pub enum Guest {
    /// Any agent anywhere, by its connection string.
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

/// One room, as this caller sees it.
#[derive(Clone, Debug)]
pub struct Room {
    client: Client,
    path: String,
}

impl Client {
    /// Makes a room; the caller owns it.
    pub async fn create_room(
        &self,
        name: &str,
        service: Option<&str>,
        context: Option<&str>,
    ) -> Result<Channel> {
        let body = said(&[
            ("name", Some(name)),
            ("service", service),
            ("context", context),
        ]);
        self.data(Call::post(PATH, body)).await
    }

    /// Every room that this caller may enter.
    pub async fn rooms(&self) -> Result<Vec<Channel>> {
        let mut all: Vec<Channel> = Vec::new();
        for _ in 0..limits::DIRECTORY_PAGES {
            let after = all
                .last()
                .map(|last| format!("&after={}", segment(&last.id)))
                .unwrap_or_default();
            let path = format!("{PATH}?limit={}{after}", limits::PAGE);
            let page: Vec<Channel> = self.ask_patiently(Call::get(path)).await?.data()?.0;
            let last = page.len() < limits::PAGE;
            all.extend(page);
            if last {
                break;
            }
        }
        Ok(all)
    }

    pub fn room(&self, id: &str) -> Room {
        Room {
            client: self.clone(),
            path: format!("{PATH}/{}", segment(id)),
        }
    }
}

impl Room {
    pub async fn show(&self) -> Result<Channel> {
        Ok(self
            .client
            .ask_patiently(Call::get(&*self.path))
            .await?
            .data()?
            .0)
    }

    /// What is not given stays as it is.
    pub async fn change(&self, name: Option<&str>, context: Option<&str>) -> Result<Channel> {
        let body = said(&[("name", name), ("context", context)]);
        Ok(self
            .client
            .ask_patiently(Call::patch(&*self.path, body))
            .await?
            .data()?
            .0)
    }

    pub async fn delete(&self) -> Result<Deleted> {
        self.client.data(Call::delete(&*self.path)).await
    }

    pub async fn members(&self) -> Result<Vec<Member>> {
        Ok(self
            .client
            .ask_patiently(Call::get(format!("{}/members", self.path)))
            .await?
            .data()?
            .0)
    }

    /// `deliver` is `all` or `mentions`.
    pub async fn add(&self, guest: &Guest, deliver: &str) -> Result<Member> {
        let body = match guest {
            Guest::Connection {
                url,
                name,
                signing_secret,
            } => said(&[
                ("connection", Some(url.expose())),
                ("name", Some(name)),
                (
                    "signing_secret",
                    signing_secret.as_ref().map(Secret::expose),
                ),
                ("deliver", Some(deliver)),
            ]),
            Guest::Agent { agent_id, name } => said(&[
                ("agent_id", Some(agent_id)),
                ("name", name.as_deref()),
                ("deliver", Some(deliver)),
            ]),
        };
        self.client
            .data(Call::post(format!("{}/members", self.path), body))
            .await
    }

    pub async fn remove(&self, name: &str) -> Result<Removed> {
        self.client
            .data(Call::delete(format!(
                "{}/members/{}",
                self.path,
                segment(name)
            )))
            .await
    }

    /// A callback of this member's own; the one before stops working at once.
    pub async fn callback(&self, name: &str) -> Result<Standing> {
        let path = format!("{}/members/{}/callback", self.path, segment(name));
        self.client.data(Call::post(path, "{}".to_owned())).await
    }

    /// Says something in the room: once, also over a connection that breaks.
    pub async fn post(&self, content: &str) -> Result<Row> {
        let key = format!("{:032x}", rand::random::<u128>());
        let call = Call::post(
            format!("{}/messages", self.path),
            said(&[("content", Some(content))]),
        );
        Ok(self
            .client
            .ask_patiently(Call {
                idempotency_key: Some(key),
                ..call
            })
            .await?
            .data()?
            .0)
    }

    /// One page of what was said and done, oldest first: the first after `since`, or the last ones without it.
    pub async fn history(&self, since: Option<Cursor>, limit: usize) -> Result<Vec<Row>> {
        let place = since.map_or_else(
            || format!("before={}", chorus_wire::limits::WHOLE_NUMBER),
            |since| format!("since={since}"),
        );
        let path = format!("{}/messages?limit={limit}&{place}", self.path);
        Ok(self.client.ask_patiently(Call::get(path)).await?.data()?.0)
    }

    /// What the room has written down and put in, without the texts.
    pub async fn artifacts(&self) -> Result<Shelf> {
        Ok(self
            .client
            .ask_patiently(Call::get(format!("{}/artifacts", self.path)))
            .await?
            .data()?
            .0)
    }

    /// One of its texts, the newest unless a version is asked for.
    pub async fn artifact(&self, slug: &str, version: Option<u64>) -> Result<ArtifactText> {
        let version = version
            .map(|version| format!("?version={version}"))
            .unwrap_or_default();
        let path = format!("{}/artifacts/{}{version}", self.path, segment(slug));
        Ok(self.client.ask_patiently(Call::get(path)).await?.data()?.0)
    }

    /// The same live, from after `since`, or from now on without it; it resumes by itself.
    pub fn stream(&self, since: Option<Cursor>) -> Stream {
        self.client.stream(format!("{}/stream", self.path), since)
    }
}

/// A JSON object of what is there.
fn said(fields: &[(&str, Option<&str>)]) -> String {
    let there = fields
        .iter()
        .filter_map(|(key, value)| Some(((*key).to_owned(), json!((*value)?))));
    Value::Object(there.collect()).to_string()
}
