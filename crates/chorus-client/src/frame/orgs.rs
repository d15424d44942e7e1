//! Calls for grants, organisations and accords. Answers are returned as JSON.

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result};
use chorus_wire::frame::RoleName;
use chorus_wire::{identity::Handle, time::UnixMicros};
use serde_json::{Value, json};

const ORGS: &str = "/orgs";

/// An accord that one organisation offers to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccordProposal {
    pub grantee: Handle,
    pub grant: RoleName,
    /// Default: all members of the grantor.
    pub reaches: Option<RoleName>,
    pub expires_at: Option<UnixMicros>,
}

impl HubClient {
    /// Allows the handle `other` to address `mine`.
    pub async fn create_grant(&self, mine: &Handle, other: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::put(grants_path(mine, Some(other)), "{}".into()))
            .await
    }

    pub async fn revoke_grant(&self, mine: &Handle, other: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::delete(grants_path(mine, Some(other))))
            .await
    }

    pub async fn list_grants(&self, mine: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::get(grants_path(mine, None)))
            .await
    }

    pub async fn create_org(&self, org: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::post(ORGS, json!({ "handle": org }).to_string()))
            .await
    }

    /// The organisations that this agent belongs to, and those that have invited it.
    pub async fn list_own_orgs(&self) -> Result<Value> {
        self.call_for_value(ApiCall::get(ORGS)).await
    }

    pub async fn list_org_members(&self, org: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::get(org_path(org, "members")))
            .await
    }

    /// Invites a handle, or changes the roles of a member.
    pub async fn invite_member(
        &self,
        org: &Handle,
        member: &Handle,
        roles: &[RoleName],
    ) -> Result<Value> {
        let path = org_path(org, &format!("members/{member}"));
        self.call_for_value(ApiCall::put(path, json!({ "roles": roles }).to_string()))
            .await
    }

    pub async fn accept_membership(&self, org: &Handle, member: &Handle) -> Result<Value> {
        let path = org_path(org, &format!("members/{member}/accept"));
        self.call_for_value(ApiCall::post(path, "{}".into())).await
    }

    /// Removes a member; a member may remove itself.
    pub async fn remove_org_member(&self, org: &Handle, member: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::delete(org_path(org, &format!("members/{member}"))))
            .await
    }

    pub async fn propose_accord(
        &self,
        grantor: &Handle,
        proposal: &AccordProposal,
    ) -> Result<Value> {
        let reaches = proposal.reaches.as_ref().map_or("*", RoleName::as_str);
        let mut body =
            json!({ "grantee": proposal.grantee, "grant": proposal.grant, "reaches": reaches });
        if let Some(at) = proposal.expires_at {
            body["expires_at"] = json!(at);
        }
        self.call_for_value(ApiCall::post(
            org_path(grantor, "accords"),
            body.to_string(),
        ))
        .await
    }

    pub async fn accept_accord(&self, grantee: &Handle, id: &str) -> Result<Value> {
        let path = org_path(grantee, &format!("accords/{}/accept", encode_segment(id)));
        self.call_for_value(ApiCall::post(path, "{}".into())).await
    }

    pub async fn revoke_accord(&self, either: &Handle, id: &str) -> Result<Value> {
        self.call_for_value(ApiCall::delete(org_path(
            either,
            &format!("accords/{}", encode_segment(id)),
        )))
        .await
    }

    pub async fn list_accords(&self, org: &Handle) -> Result<Value> {
        self.call_for_value(ApiCall::get(org_path(org, "accords")))
            .await
    }

    /// The answer's body; `{}` when it is empty. Retried like every other call, a POST with one `Idempotency-Key`.
    async fn call_for_value(&self, call: ApiCall) -> Result<Value> {
        let answer = self.send_with_retry(call).await?;
        if answer.body.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&answer.body).map_err(|e| Error::Answer(e.to_string()))
    }
}

fn grants_path(mine: &Handle, other: Option<&Handle>) -> String {
    match other {
        Some(other) => format!("/handles/{mine}/grants/{other}"),
        None => format!("/handles/{mine}/grants"),
    }
}

fn org_path(org: &Handle, subpath: &str) -> String {
    format!("{ORGS}/{org}/{subpath}")
}
