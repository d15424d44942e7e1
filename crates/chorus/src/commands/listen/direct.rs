//! `chorus listen --direct`: the receive endpoint of an agent without a hub (TRN-44).

use super::{Args, handler_command, print::ReceivedMessage};
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, command_client, fail::Fail, output};
use chorus_client::allowed_peers::AllowedPeers;
use chorus_client::direct::{PostedEnvelope, serve_direct};
use chorus_client::inbox_store::{FilingOutcome, InboxStore};
use chorus_client::limits;
use chorus_hub::Clock;
use serde_json::{json, value::RawValue};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

pub async fn listen_direct(
    common: &CommonArgs,
    args: &Args,
    address: SocketAddr,
    mut stop: StopSignal,
) -> Result<(), Fail> {
    let listen_error = |e| Fail::usage_error(format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let local_address = listener.local_addr().map_err(listen_error)?;
    let url = format!("http://{local_address}/receive");
    let allowed_peers = AllowedPeers::new(local_address, args.public_url.clone());
    let mut store = InboxStore::for_direct(command_client::identity_files(common)?);
    let (envelope_sender, mut posted) = mpsc::channel(limits::DIRECT_QUEUE_LEN);
    let (stop_sender, stop_receiver) = watch::channel(false);
    let server = tokio::spawn(serve_direct(
        listener,
        allowed_peers,
        envelope_sender,
        stop_receiver,
    ));
    let output = json!({ "event": "receiving", "url": url });
    output::print_result(common.json, &output, || format!("receiving on {url}"));
    let mut remaining = args.message_limit();
    while remaining > 0 {
        let envelope = tokio::select! {
            Some(envelope) = posted.recv() => envelope,
            () = stop.wait_requested() => break,
        };
        remaining -= u64::from(handle_posted(common, args, &mut store, envelope).await?);
    }
    // Senders in the queue get a 503; answers in progress are still written.
    drop(posted);
    stop_sender.send_replace(true);
    let _ = server.await;
    Ok(())
}

/// Files, prints and answers one envelope; returns whether it was new.
async fn handle_posted(
    common: &CommonArgs,
    args: &Args,
    store: &mut InboxStore,
    posted: PostedEnvelope,
) -> Result<bool, Fail> {
    let PostedEnvelope { envelope, answer } = posted;
    let json_error = |e: serde_json::Error| Fail::usage_error(e.to_string());
    let raw = RawValue::from_string(envelope.to_json()).map_err(json_error)?;
    let at = Clock::system().now().to_string();
    let peer = envelope.sender_id().as_str();
    let (reply, is_new) = match store.file_message(&at, peer, raw.clone(), None)? {
        FilingOutcome::Repeated(reply) => (reply, false),
        FilingOutcome::NewMessage => {
            let message = ReceivedMessage::from_direct(peer, raw.clone(), at);
            message.print_message(common, &envelope);
            let reply = handler_command::run_handler(args, &message, &envelope).await;
            store.cache_reply(peer, &raw, &reply);
            (reply, true)
        }
    };
    // Fails when the peer has disconnected. It will retry and get the same answer.
    let _ = answer.send(reply);
    Ok(is_new)
}
