//! Accords: which members of one organisation those of another may address. Both agree to it, either ends it (R-47, FRM-60).

use super::Frames;
use super::addressing_cache::{AddressingChange, write_and_invalidate};
use super::organisations::{find_org, find_owned_org, parse_org_handle};
use crate::identity::Principal;
use crate::random;
use crate::store::accords as table;
use chorus_wire::frame::FrameError;
use chorus_wire::frame::organisation::{Accord, AccordList, AccordStatus, NewAccord};
use chorus_wire::{Error, ErrorCode, limits};

type AccordResult<T> = std::result::Result<T, FrameError>;

/// Max accords in one list: those that an organisation granted, and as many that it was granted.
const MAX_LISTED_ACCORDS: usize = 2 * limits::ACCORDS_PER_ORG;

fn unknown_accord(id: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("this organisation has no accord {id}"),
    )
}

/// `POST /orgs/{grantor}/accords`: an owner of the granting side proposes.
pub async fn propose_accord(
    principal: &Principal,
    frames: &Frames,
    grantor: &str,
    new: NewAccord,
) -> AccordResult<Accord> {
    let agent_id = principal.require_agent()?.id;
    let grantor = parse_org_handle(grantor)?;
    if grantor == new.grantee.0 {
        return Err(FrameError::invalid_field(
            "grantee",
            "another organisation than the one that grants",
        ));
    }
    write_and_invalidate(frames, async move |txn| {
        let now = txn.now();
        let grantor = find_owned_org(&txn.tx, &grantor, agent_id).await?;
        let grantee = find_org(&txn.tx, &new.grantee.0).await?;
        table::delete_expired_accords(&txn.tx, grantor.id, txn.expiry_clock()).await?;
        let granted = table::count_accords_by_grantor(&txn.tx, grantor.id, now).await?;
        if granted >= limits::ACCORDS_PER_ORG {
            let message = format!(
                "an organisation grants at most {} accords; revoke one first",
                limits::ACCORDS_PER_ORG
            );
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let accord = Accord {
            id: random::new_id().to_string(),
            status: AccordStatus::Proposed,
            grantor: grantor.handle,
            grantee: grantee.handle,
            grant: new.grant.clone(),
            reaches: new.reaches.clone(),
            expires_at: new.expires_at,
            proposed_at: now,
            accepted_at: None,
        };
        table::insert_accord(&txn.tx, grantor.id, grantee.id, &accord).await?;
        // Nothing is in force yet, so no cache entry is invalid.
        Ok((accord, Vec::new()))
    })
    .await
}

/// `POST /orgs/{grantee}/accords/{id}/accept`: an owner of the other side agrees; agreeing again changes nothing.
pub async fn accept_accord(
    principal: &Principal,
    frames: &Frames,
    grantee: &str,
    id: &str,
) -> AccordResult<Accord> {
    let agent_id = principal.require_agent()?.id;
    let grantee = parse_org_handle(grantee)?;
    let id = id.to_owned();
    write_and_invalidate(frames, async move |txn| {
        let now = txn.now();
        let org = find_owned_org(&txn.tx, &grantee, agent_id).await?;
        let mut accord = table::find_accord(&txn.tx, org.id, &id, now)
            .await?
            .ok_or_else(|| unknown_accord(&id))?;
        if accord.grantee != org.handle {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "an accord is accepted by the organisation it was offered to",
            ));
        }
        match accord.status {
            AccordStatus::Accepted => {}
            AccordStatus::Proposed => {
                table::accept_accord(&txn.tx, &id, now).await?;
                accord.status = AccordStatus::Accepted;
                accord.accepted_at = Some(now);
            }
            AccordStatus::Expired | AccordStatus::Revoked => {
                return Err(Error::new(ErrorCode::Conflict, "the accord's time is over"));
            }
        }
        let changes = vec![AddressingChange::Org(accord.grantor.clone())];
        Ok((accord, changes))
    })
    .await
}

/// `DELETE /orgs/{either}/accords/{id}`: either side ends it, proposed or accepted; it is void when this returns.
pub async fn revoke_accord(
    principal: &Principal,
    frames: &Frames,
    org: &str,
    id: &str,
) -> AccordResult<Accord> {
    let agent_id = principal.require_agent()?.id;
    let org = parse_org_handle(org)?;
    let id = id.to_owned();
    write_and_invalidate(frames, async move |txn| {
        let org = find_owned_org(&txn.tx, &org, agent_id).await?;
        let accord = table::find_accord(&txn.tx, org.id, &id, txn.now())
            .await?
            .ok_or_else(|| unknown_accord(&id))?;
        table::delete_accord(&txn.tx, &id).await?;
        let changes = vec![AddressingChange::Org(accord.grantor.clone())];
        Ok((
            Accord {
                status: AccordStatus::Revoked,
                ..accord
            },
            changes,
        ))
    })
    .await
}

/// `GET /orgs/{org}/accords`: for its owners, in both directions, oldest first.
pub async fn list_accords(
    principal: &Principal,
    frames: &Frames,
    org: &str,
) -> AccordResult<AccordList> {
    let agent_id = principal.require_agent()?.id;
    let now = frames.context().clock().now();
    let org = parse_org_handle(org)?;
    let (org, accords) = frames
        .context()
        .store()
        .read(async move |tx| {
            let org = find_owned_org(tx, &org, agent_id).await?;
            let accords = table::list_accords(tx, org.id, now, MAX_LISTED_ACCORDS).await?;
            Ok((org.handle, accords))
        })
        .await?;
    Ok(AccordList { org, accords })
}
