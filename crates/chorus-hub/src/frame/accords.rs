//! Accords: what one organisation lets the members of another address, agreed by both and ended by either (R-47, FRM-60).

use super::circles::{Touched, change};
use super::orgs::{org_named, org_of, owned_by};
use crate::identity::Principal;
use crate::store::accords as table;
use crate::{Hub, clock};
use chorus_wire::frame::FrameError;
use chorus_wire::frame::org::{Accord, AccordStatus, Accords, NewAccord};
use chorus_wire::{Code, Error, limits};

type Answer<T> = std::result::Result<T, FrameError>;

/// Accords of one list: those that an organisation granted, and as many that it was granted.
const LISTED: usize = 2 * limits::ACCORDS;

fn unknown(id: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!("this organisation has no accord {id}"),
    )
}

/// `POST /orgs/{grantor}/accords`: an owner of the granting side proposes.
pub async fn propose(who: &Principal, hub: &Hub, grantor: &str, new: NewAccord) -> Answer<Accord> {
    let asking = who.agent()?.id;
    let grantor = org_named(grantor)?;
    if grantor == new.grantee {
        return Err(FrameError::invalid(
            "grantee",
            "another organisation than the one that grants",
        ));
    }
    change(hub, async move |txn| {
        let now = txn.now();
        let grantor = owned_by(&txn.tx, &grantor, asking).await?;
        let grantee = org_of(&txn.tx, &new.grantee).await?;
        table::trim(&txn.tx, grantor.id, now).await?;
        if table::count(&txn.tx, grantor.id).await? >= limits::ACCORDS {
            let message = format!(
                "an organisation grants at most {} accords; revoke one first",
                limits::ACCORDS
            );
            return Err(Error::new(Code::Conflict, message));
        }
        let accord = Accord {
            id: clock::new_id().to_string(),
            status: AccordStatus::Proposed,
            grantor: grantor.handle,
            grantee: grantee.handle,
            grant: new.grant.clone(),
            reaches: new.reaches.clone(),
            expires_at: new.expires_at,
            proposed_at: now,
            accepted_at: None,
        };
        table::insert(&txn.tx, grantor.id, grantee.id, &accord).await?;
        // Nothing is in force yet, so nobody has to forget anything.
        Ok((accord, Vec::new()))
    })
    .await
}

/// `POST /orgs/{grantee}/accords/{id}/accept`: an owner of the other side agrees; agreeing again changes nothing.
pub async fn accept(who: &Principal, hub: &Hub, grantee: &str, id: &str) -> Answer<Accord> {
    let asking = who.agent()?.id;
    let (grantee, id) = (org_named(grantee)?, id.to_owned());
    change(hub, async move |txn| {
        let now = txn.now();
        let org = owned_by(&txn.tx, &grantee, asking).await?;
        let mut accord = table::of(&txn.tx, org.id, &id, now)
            .await?
            .ok_or_else(|| unknown(&id))?;
        if accord.grantee != org.handle {
            return Err(Error::new(
                Code::Forbidden,
                "an accord is accepted by the organisation it was offered to",
            ));
        }
        match accord.status {
            AccordStatus::Accepted => {}
            AccordStatus::Proposed => {
                table::accept(&txn.tx, &id, now).await?;
                (accord.status, accord.accepted_at) = (AccordStatus::Accepted, Some(now));
            }
            AccordStatus::Expired | AccordStatus::Revoked => {
                return Err(Error::new(Code::Conflict, "the accord's time is over"));
            }
        }
        let touched = vec![Touched::Org(accord.grantor.clone())];
        Ok((accord, touched))
    })
    .await
}

/// `DELETE /orgs/{either}/accords/{id}`: either side ends it, proposed or accepted, and it is dead with this answer.
pub async fn revoke(who: &Principal, hub: &Hub, org: &str, id: &str) -> Answer<Accord> {
    let asking = who.agent()?.id;
    let (org, id) = (org_named(org)?, id.to_owned());
    change(hub, async move |txn| {
        let org = owned_by(&txn.tx, &org, asking).await?;
        let accord = table::of(&txn.tx, org.id, &id, txn.now())
            .await?
            .ok_or_else(|| unknown(&id))?;
        table::delete(&txn.tx, &id).await?;
        let touched = vec![Touched::Org(accord.grantor.clone())];
        Ok((
            Accord {
                status: AccordStatus::Revoked,
                ..accord
            },
            touched,
        ))
    })
    .await
}

/// `GET /orgs/{org}/accords`: for its owners, in both directions, oldest first.
pub async fn list(who: &Principal, hub: &Hub, org: &str) -> Answer<Accords> {
    let (asking, now) = (who.agent()?.id, hub.clock().now());
    let org = org_named(org)?;
    let (org, accords) = hub
        .store()
        .read(async move |tx| {
            let org = owned_by(tx, &org, asking).await?;
            let accords = table::list(tx, org.id, now, LISTED).await?;
            Ok((org.handle, accords))
        })
        .await?;
    Ok(Accords { org, accords })
}
