//! Submits frames and reads the roster.

use super::FrameSender;
use crate::http::ApiCall;
use crate::{HubClient, Result};
use chorus_wire::frame::{Frame, FrameScope, FrameSubmission, SessionRoster, SubmissionReply};
use chorus_wire::identity::Handle;

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

    pub async fn fetch_roster(&self, handle: &Handle) -> Result<SessionRoster> {
        let path = format!("{}/{handle}/roster", self.fetch_paths().await?.handles);
        self.send_call(ApiCall::get(path)).await?.into_bare()
    }
}
