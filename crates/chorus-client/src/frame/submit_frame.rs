//! Submits frames, reads the roster, and reads and ends open items.

use super::FrameSender;
use crate::http::{ApiCall, encode_segment};
use crate::{HubClient, Result};
use chorus_wire::frame::{
    EndedItem, Frame, FrameScope, FrameSubmission, OpenItem, OpenItems, SessionRoster,
    SubmissionReply,
};
use chorus_wire::identity::Handle;
use chorus_wire::limits;
use uuid::Uuid;

/// Max pages of open items that are read: a page holds four large frames at least, and a handle a thousand.
const MAX_PAGES: usize = limits::OPEN_ITEMS_PER_HANDLE;

impl HubClient {
    /// Submits a frame. A retry after a broken connection repeats its id, so the hub emits it once.
    pub async fn submit_frame(
        &self,
        sender: &FrameSender,
        scope: &FrameScope,
        frame: &Frame,
        exclude_self: bool,
    ) -> Result<SubmissionReply> {
        let path = self.fetch_paths().await?.frames.clone();
        let path = if exclude_self {
            format!("{path}?exclude_self=1")
        } else {
            path
        };
        let mut call = ApiCall::post(path, FrameSubmission::format_json(Some(scope), frame));
        call.headers
            .push(("X-Chorus-Instrument", sender.instrument.to_string()));
        call.headers
            .push(("X-Chorus-Session", sender.session.to_string()));
        if let Some(tool) = &sender.tool {
            call.headers.push(("X-Chorus-Tool", tool.to_string()));
        }
        self.send_with_retry(call).await?.into_bare()
    }

    /// What is open under a handle, newest first. Under the own handle it includes what was said to the agent's organisations.
    pub async fn list_open_items(&self, handle: &Handle) -> Result<Vec<OpenItem>> {
        let path = format!("/handles/{handle}/open");
        let mut items = Vec::new();
        let mut query = String::new();
        for _ in 0..MAX_PAGES {
            let call = ApiCall::get(format!("{path}{query}"));
            let page: OpenItems = self.send_call(call).await?.into_bare()?;
            items.extend(page.items);
            match page.next {
                Some(next) => query = format!("?after={}", encode_segment(&next)),
                None => break,
            }
        }
        Ok(items)
    }

    /// Takes a handover up for the sender's session; of several sessions the first gets it.
    pub async fn take_handover(&self, sender: &FrameSender, item: &OpenItem) -> Result<EndedItem> {
        let handle = encode_segment(&item.handle);
        let path = format!("/handles/{handle}/open/{}/take", item.frame_id);
        let mut call = ApiCall::post(path, "{}".to_owned());
        call.headers
            .push(("X-Chorus-Instrument", sender.instrument.to_string()));
        call.headers
            .push(("X-Chorus-Session", sender.session.to_string()));
        self.send_with_retry(call).await?.into_bare()
    }

    /// Withdraws an item that this agent opened.
    pub async fn withdraw_item(&self, handle: &str, frame_id: Uuid) -> Result<EndedItem> {
        let handle = encode_segment(handle);
        let call = ApiCall::delete(format!("/handles/{handle}/open/{frame_id}"));
        self.send_with_retry(call).await?.into_bare()
    }

    pub async fn fetch_roster(&self, handle: &Handle) -> Result<SessionRoster> {
        let path = format!("/handles/{handle}/roster");
        self.send_call(ApiCall::get(path)).await?.into_bare()
    }
}
