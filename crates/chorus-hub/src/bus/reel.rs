//! The last minutes of frames as all hubs have them: in the memory of the bus, in one order, read by each hub (D-82).

use super::Mesh;
use super::nats::{Nats, Reel, Silence};
use bytes::Bytes;
use chorus_wire::limits;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How soon it is tried again.
const AGAIN: Duration = Duration::from_millis(200);
/// How often it is asked whether the memory is still the same: it can be deleted, or be lost with one server of several, while
/// the connection holds; and whoever waits for the next frame of a memory that is no more waits for ever.
const LOOK: Duration = Duration::from_secs(1);

/// How far a hub has read, in which life of the memory.
#[derive(Clone, Copy, Debug)]
struct Read {
    epoch: u64,
    place: u64,
}

impl Mesh {
    /// Puts something where every hub will read it: its place.
    pub async fn tape_put(&self, what: Bytes) -> Result<u64, Silence> {
        let put = self.nats().ok_or(Silence::Late)?.tape_put(what).await;
        if put.is_err() {
            self.tape_doubt();
        }
        put
    }

    /// It may not be the memory that is read here any more: that is looked at now.
    pub fn tape_doubt(&self) {
        self.doubted.notify_one();
    }

    /// Opens the memory, so that a bus without one is known at start, and reads what is in it: a session that comes now hears
    /// what comes from now on, and nothing older.
    pub(super) async fn tape_begin(&self, nats: &Arc<Nats>) -> Result<(), String> {
        let (mut reel, mut read, newest) = self
            .wind(nats, None)
            .await
            .map_err(|cause| format!("it needs JetStream (nats-server -js): {cause}"))?;
        while read.place < newest {
            match tokio::time::timeout(limits::BUS_WAIT, reel.next()).await {
                Ok(next) => {
                    self.read_on(&mut read, next?);
                }
                // The last of it was let go meanwhile.
                Err(_) => break,
            }
        }
        self.run(Self::follow, (reel, read));
        Ok(())
    }

    /// The next frame. One that does not follow the last says that those between were let go before they were read here; and
    /// false that it is another memory, which begins again with smaller places.
    fn read_on(&self, read: &mut Read, (place, payload): (u64, Bytes)) -> bool {
        if place <= read.place {
            return false;
        }
        if let Some(behind) = self.behind() {
            if place != read.place + 1 {
                behind.begin(read.epoch, place - 1);
            }
            behind.frame(place, &payload);
        }
        read.place = place;
        true
    }

    /// What is to be read next. A memory that is another one, or that has lost what was not read yet, begins anew.
    async fn wind(&self, nats: &Nats, read: Option<Read>) -> Result<(Reel, Read, u64), String> {
        let tape = nats.tape_open(crate::clock::new_epoch()).await?;
        let same = read.filter(|read| {
            read.epoch == tape.epoch && read.place >= tape.floor && read.place <= tape.newest
        });
        let read = same.unwrap_or(Read {
            epoch: tape.epoch,
            place: tape.floor,
        });
        let reel = tape.after(read.place).await?;
        // Only now: whoever has to try again would tell another gap.
        if let (None, Some(behind)) = (same, self.behind()) {
            behind.begin(read.epoch, read.place);
        }
        Ok((reel, read, tape.newest))
    }

    /// Over when it is time to ask whether the memory is still the same, or somebody doubts it.
    async fn look(me: &Weak<Mesh>) {
        let doubted = async {
            match me.upgrade() {
                Some(mesh) => mesh.doubted.notified().await,
                None => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(LOOK, doubted).await;
    }

    /// Whether the memory is still the one that is read, and read on. `stuck` is where reading stood at the last look, when
    /// there was more: a server that is lost may take the place in it along.
    async fn tape_goes_on(&self, read: Read, stuck: &mut Option<u64>) -> bool {
        let Some(nats) = self.nats() else {
            return false;
        };
        let before = stuck.take();
        match nats.tape_now().await {
            Some((epoch, newest)) if epoch == read.epoch && newest > read.place => {
                *stuck = Some(read.place);
                before != *stuck
            }
            Some((epoch, _)) => epoch == read.epoch,
            None => false,
        }
    }

    async fn follow(me: Weak<Mesh>, (mut reel, mut read): (Reel, Read)) {
        loop {
            let Some(nats) = me.upgrade().and_then(|mesh| mesh.nats().cloned()) else {
                return;
            };
            let mut made = nats.made();
            made.mark_unchanged();
            drop(nats);
            let mut stuck = None;
            loop {
                let next = tokio::select! {
                    next = reel.next() => Some(next),
                    _ = made.changed() => Some(Err("the connection was made anew".into())),
                    () = Self::look(&me) => None,
                };
                let Some(mesh) = me.upgrade() else { return };
                match next {
                    Some(Ok(next)) if mesh.read_on(&mut read, next.clone()) => {}
                    None if mesh.tape_goes_on(read, &mut stuck).await => {}
                    None | Some(_) => break,
                }
            }
            loop {
                tokio::time::sleep(AGAIN).await;
                let Some(mesh) = me.upgrade() else { return };
                let Some(nats) = mesh.nats().cloned() else {
                    return;
                };
                match mesh.wind(&nats, Some(read)).await {
                    Ok(wound) => {
                        (reel, read, _) = wound;
                        break;
                    }
                    Err(cause) => {
                        tracing::debug!(cause, "the frames of other hubs cannot be read yet")
                    }
                }
            }
        }
    }
}
