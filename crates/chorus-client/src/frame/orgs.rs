//! Grants, organisations and accords: who may address whom. Bodies are the hub's own.

use crate::http::{Call, segment};
use crate::{Client, Error, Result};
use chorus_wire::frame::Role;
use chorus_wire::{identity::Handle, time::Micros};
use serde_json::{Value, json};

/// What one organisation offers another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub grantee: Handle,
    pub grant: Role,
    /// Absent, all members of the grantor are reached.
    pub reaches: Option<Role>,
    pub expires_at: Option<Micros>,
}

impl Client {
    /// `other` may address `mine` from now on.
    pub async fn grant(&self, mine: &Handle, other: &Handle) -> Result<Value> {
        self.told(Call::put(
            self.grants_of(mine, Some(other)).await?,
            "{}".into(),
        ))
        .await
    }

    pub async fn ungrant(&self, mine: &Handle, other: &Handle) -> Result<Value> {
        self.told(Call::delete(self.grants_of(mine, Some(other)).await?))
            .await
    }

    pub async fn grants(&self, mine: &Handle) -> Result<Value> {
        self.told(Call::get(self.grants_of(mine, None).await?))
            .await
    }

    async fn grants_of(&self, mine: &Handle, other: Option<&Handle>) -> Result<String> {
        let grants = format!("{}/{mine}/grants", self.paths().await?.handles);
        Ok(other.map_or(grants.clone(), |other| format!("{grants}/{other}")))
    }

    pub async fn create_org(&self, org: &Handle) -> Result<Value> {
        let path = self.paths().await?.orgs.clone();
        self.told(Call::post(path, json!({ "handle": org }).to_string()))
            .await
    }

    pub async fn members(&self, org: &Handle) -> Result<Value> {
        self.told(Call::get(self.of_org(org, "members").await?))
            .await
    }

    /// An invitation, or other roles for somebody who is a member.
    pub async fn invite(&self, org: &Handle, who: &Handle, roles: &[Role]) -> Result<Value> {
        let path = self.of_org(org, &format!("members/{who}")).await?;
        self.told(Call::put(path, json!({ "roles": roles }).to_string()))
            .await
    }

    pub async fn join(&self, org: &Handle, who: &Handle) -> Result<Value> {
        let path = self.of_org(org, &format!("members/{who}/accept")).await?;
        self.told(Call::post(path, "{}".into())).await
    }

    /// Leaving, or being removed.
    pub async fn part(&self, org: &Handle, who: &Handle) -> Result<Value> {
        self.told(Call::delete(
            self.of_org(org, &format!("members/{who}")).await?,
        ))
        .await
    }

    pub async fn propose(&self, grantor: &Handle, proposal: &Proposal) -> Result<Value> {
        let reaches = proposal.reaches.as_ref().map_or("*", Role::as_str);
        let mut body =
            json!({ "grantee": proposal.grantee, "grant": proposal.grant, "reaches": reaches });
        if let Some(at) = proposal.expires_at {
            body["expires_at"] = json!(at);
        }
        self.told(Call::post(
            self.of_org(grantor, "accords").await?,
            body.to_string(),
        ))
        .await
    }

    pub async fn accept_accord(&self, grantee: &Handle, id: &str) -> Result<Value> {
        let path = self
            .of_org(grantee, &format!("accords/{}/accept", segment(id)))
            .await?;
        self.told(Call::post(path, "{}".into())).await
    }

    pub async fn revoke_accord(&self, either: &Handle, id: &str) -> Result<Value> {
        self.told(Call::delete(
            self.of_org(either, &format!("accords/{}", segment(id)))
                .await?,
        ))
        .await
    }

    pub async fn accords(&self, org: &Handle) -> Result<Value> {
        self.told(Call::get(self.of_org(org, "accords").await?))
            .await
    }

    async fn of_org(&self, org: &Handle, what: &str) -> Result<String> {
        Ok(format!("{}/{org}/{what}", self.paths().await?.orgs))
    }

    /// The bare body; an answer without one says nothing but yes.
    async fn told(&self, call: Call) -> Result<Value> {
        let answer = self.ask(call).await?.accepted()?;
        if answer.body.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&answer.body).map_err(|e| Error::Answer(e.to_string()))
    }
}
