//! The receiver's answer to a message that came by stream: it stands once given, and its sender hears of it (R-34).

use super::standing;
use crate::store::{Kind, Mark, NewEntry, messages};
use crate::{Hub, Principal, Result};
use chorus_wire::Code;
use chorus_wire::message::{ReceiverReply, Standing};

/// `POST /agent/messages/{trace_id}/response`; the message as it stands after it.
pub async fn respond(
    who: &Principal,
    hub: &Hub,
    trace_id: &str,
    reply: ReceiverReply,
) -> Result<Standing> {
    let me = who.agent()?.clone();
    let message = standing::find(hub, trace_id)
        .await?
        .filter(|message| message.entry.subject == me.id);
    let message = message.ok_or(Code::NotFound)?;
    let (seq, trace) = (message.entry.seq, hub.trace_id(&message.entry));
    let message = hub
        .store()
        .write(async move |txn| {
            let message = messages::get(&txn.tx, seq).await?.ok_or(Code::NotFound)?;
            if let Some((given, _)) = &message.response {
                // The same again is no news; another one does not replace the first (R-38).
                let same =
                    serde_json::from_str::<ReceiverReply>(given).is_ok_and(|given| given == reply);
                return if same {
                    Ok(message)
                } else {
                    Err(Code::ResponseConflict.into())
                };
            }
            let response = serde_json::to_string(&reply).map_err(chorus_wire::Error::internal)?;
            messages::respond(&txn.tx, seq, &response, txn.now()).await?;
            if message.entry.via == Some(Mark::Queued) {
                messages::caught_up(txn, &[seq]).await?;
            }
            txn.append(NewEntry {
                subject: message.entry.actor,
                subject_name: message.entry.actor_name.clone(),
                kind: Kind::Receipt,
                actor: me.id,
                actor_name: me.agent_id.clone(),
                body: format!(
                    r#"{{"trace_id":"{trace}","receiver_id":"{}","response":{response}}}"#,
                    me.agent_id
                )
                .into(),
                otherwise: None,
            });
            messages::get(&txn.tx, seq)
                .await?
                .ok_or_else(|| Code::NotFound.into())
        })
        .await?;
    Ok(standing::of(hub, message))
}
