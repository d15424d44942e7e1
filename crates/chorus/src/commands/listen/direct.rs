//! `chorus listen --direct`: the receive endpoint of an agent that has no hub (TRN-44).

use super::{Args, exec, show::Message};
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, out, session};
use chorus_client::desk::{Desk, Verdict};
use chorus_client::direct::{Posted, receive};
use chorus_client::limits;
use chorus_hub::Clock;
use serde_json::{json, value::RawValue};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

pub async fn run(
    common: &Common,
    args: &Args,
    address: SocketAddr,
    mut stop: Stop,
) -> Result<(), Fail> {
    let wrong = |e| Fail::usage(format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let url = format!("http://{}/receive", listener.local_addr().map_err(wrong)?);
    let mut desk = Desk::direct(session::place(common)?);
    let (to, mut posted) = mpsc::channel(limits::DIRECT_QUEUE);
    let (tell, stopping) = watch::channel(false);
    let receiving = tokio::spawn(receive(listener, to, stopping));
    let said = json!({ "event": "receiving", "url": url });
    out::say(common.json, &said, || format!("receiving on {url}"));
    let mut left = args.count();
    while left > 0 {
        let envelope = tokio::select! {
            Some(envelope) = posted.recv() => envelope,
            () = stop.asked() => break,
        };
        left -= u64::from(take(common, args, &mut desk, envelope).await?);
    }
    // Who is still in the queue hears that this receiver is stopping, who was answered hears the answer.
    drop(posted);
    tell.send_replace(true);
    let _ = receiving.await;
    Ok(())
}

/// Files, shows and answers one envelope; whether it was a new one.
async fn take(common: &Common, args: &Args, desk: &mut Desk, posted: Posted) -> Result<bool, Fail> {
    let Posted { envelope, answer } = posted;
    let wrong = |e: serde_json::Error| Fail::usage(e.to_string());
    let raw = RawValue::from_string(envelope.to_json()).map_err(wrong)?;
    let at = Clock::system().now().to_string();
    let peer = envelope.sender_id().as_str();
    let (reply, fresh) = match desk.file(&at, peer, raw.clone(), None)? {
        Verdict::Repeat(reply) => (reply, false),
        Verdict::Fresh => {
            let message = Message::direct(peer, raw.clone(), at);
            message.show(common, &envelope);
            let reply = exec::handle(args, &message, &envelope).await;
            desk.answered(peer, &raw, &reply);
            (reply, true)
        }
    };
    // A peer that no longer waits will ask again and get the same answer.
    let _ = answer.send(reply);
    Ok(fresh)
}
