//! The last minutes of frames as all hubs have them: in the memory of the bus, in one order, read by each hub (D-82).

use super::Mesh;
use super::nats::{Nats, Reel, Silence};
use bytes::Bytes;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How soon it is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// How far a hub has read, in which life of the memory.
#[derive(Clone, Copy, Debug)]
struct Read {
    epoch: u64,
    place: u64,
}

impl Mesh {
    /// Puts something where every hub will read it: its place.
    pub async fn tape_put(&self, what: Bytes) -> Result<u64, Silence> {
        self.nats().ok_or(Silence::Late)?.tape_put(what).await
    }

    /// Opens the memory, so that a bus without one is known at start.
    pub(super) async fn tape_begin(&self, nats: &Arc<Nats>) -> Result<(), String> {
        let first =
            self.wind(nats, None).await.map_err(|cause| format!("it needs JetStream (nats-server -js): {cause}"))?;
        self.run(Self::follow, first);
        Ok(())
    }

    /// What is to be read next. A memory that is another one, or that has lost what was not read yet, begins anew.
    async fn wind(&self, nats: &Nats, read: Option<Read>) -> Result<(Reel, Read), String> {
        let tape = nats.tape_open(crate::clock::new_epoch()).await?;
        let same =
            read.filter(|read| read.epoch == tape.epoch && read.place >= tape.floor && read.place <= tape.newest);
        let read = same.unwrap_or(Read { epoch: tape.epoch, place: tape.floor });
        if let (None, Some(behind)) = (same, self.behind()) {
            behind.begin(read.epoch, read.place);
        }
        Ok((tape.after(read.place).await?, read))
    }

    async fn follow(me: Weak<Mesh>, (mut reel, mut read): (Reel, Read)) {
        loop {
            let Some(nats) = me.upgrade().and_then(|mesh| mesh.nats().cloned()) else { return };
            let mut made = nats.made();
            made.mark_unchanged();
            drop(nats);
            loop {
                let next = tokio::select! {
                    next = reel.next() => next,
                    _ = made.changed() => Err("the connection was made anew".into()),
                };
                let Ok((place, payload)) = next else { break };
                let Some(mesh) = me.upgrade() else { return };
                if let Some(behind) = mesh.behind() {
                    behind.frame(place, &payload);
                }
                read.place = place;
            }
            loop {
                tokio::time::sleep(AGAIN).await;
                let Some(mesh) = me.upgrade() else { return };
                let Some(nats) = mesh.nats().cloned() else { return };
                match mesh.wind(&nats, Some(read)).await {
                    Ok(wound) => {
                        (reel, read) = wound;
                        break;
                    }
                    Err(cause) => tracing::debug!(cause, "the frames of other hubs cannot be read yet"),
                }
            }
        }
    }
}
