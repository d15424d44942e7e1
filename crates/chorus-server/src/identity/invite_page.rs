//! `GET /invite/{id}`: how to reach an agent, as a page for people and as JSON (TRN-61, TRN-62, lesson 5).

use crate::console;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, negotiate, path_params::PathParam};
use crate::pages::html;
use axum::{extract::State, response::Response};
use chorus_hub::{Principal, lifecycle};
use chorus_wire::reply::{InviteCard, SuccessReply};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_invite_page))
}

/// Show how to reach an agent
///
/// A page for people, or JSON when `Accept` prefers it. An agent that is not registered has `exists: false`.
#[utoipa::path(get, path = "/invite/{id}", tag = "identity",
    params(("id" = String, Path, description = "The agent: its address, short name, UUID or handle")),
    responses((status = 200, description = "How to reach the agent.", content(
        (SuccessReply<InviteCard> = "application/json"), (String = "text/html"))),
        (status = 404, description = "The path is not a name that an agent could have.")))]
async fn get_invite_page(
    State(state): State<AppState>,
    headers: HeaderMap,
    PathParam(id): PathParam,
) -> ApiResult {
    // A shared link shows the same to every reader, so the caller's key is ignored.
    let card =
        lifecycle::get_invite_card(&Principal::Anonymous, &state.hub, &id, &state.public_url)
            .await?;
    if negotiate::prefers_media(&headers, "application/json", "text/html") {
        let mut response = reply::wrapped_json(&state, StatusCode::OK, card)?;
        response
            .headers_mut()
            .insert(header::VARY, HeaderValue::from_static("Accept"));
        return Ok(response);
    }
    Ok(render_invite(&card, &state.hub.options().host_name))
}

/// The page's script translates elements with `data-t` into the reader's language; without script they stay in English.
fn render_invite(card: &InviteCard, host: &str) -> Response {
    let id = html::escape_html(&card.agent_id);
    let hub = html::escape_html(&card.hub);
    let instructions = card
        .connect_instructions
        .trim_start_matches("Tell your agent: ");
    let instructions = html::escape_html(instructions);
    let (text_key, status) = match (card.exists, card.online) {
        (true, true) => ("invite.online", "is online now"),
        (true, false) => (
            "invite.offline",
            "is registered here and offline at the moment",
        ),
        (false, _) => ("invite.unknown", "is not registered here yet"),
    };
    let culture = card.culture.as_deref().map(html::escape_html);
    let culture =
        culture.map(|tag| format!(" <span class=\"chip\" data-culture=\"{tag}\">{tag}</span>"));
    // a reader must not take the name for that of a person at the other host.
    let unverified = match card.host_verified {
        Some(false) => {
            " <span class=\"chip bad\" title=\"The name is under another host than that of this hub.\" \
             data-t=\"agents.unverified\">unverified</span>"
        }
        Some(true) | None => "",
    };
    let mut body = format!(
        "<main class=\"plain invite\">\n<h1><span data-t=\"invite.title\">Talk to</span> <bdi>{id}</bdi></h1>\n\
         <p><bdi><code>{id}</code></bdi> <span data-t=\"{text_key}\">{status}</span>{unverified}{}</p>\n\
         <h2 data-t=\"invite.tell\">Tell your agent</h2>\n<div class=\"snippet\"><pre>{instructions}</pre></div>\n\
         <h2 data-t=\"invite.host\">Or connect it yourself</h2>\n",
        culture.unwrap_or_default()
    );
    for (text_key, name, text) in connect_snippets(card, host) {
        let name = html::escape_html(name);
        let text = html::escape_html(&text);
        body += &format!(
            "<details><summary data-t=\"{text_key}\">{name}</summary>\n<div class=\"snippet\"><pre>{text}</pre></div></details>\n"
        );
    }
    body += &format!(
        "<p class=\"quiet\"><span data-t=\"invite.hub\">The hub is</span> <code>{hub}</code> · \
         <a href=\"/skill\" data-t=\"signin.skill\">What an agent reads to take part</a></p>\n</main>\n"
    );
    let mut response =
        console::render_console_page(&format!("Talk to {}", card.agent_id), "invite.js", &body);
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Text key, name and snippet for each kind of host. Names are quoted where a shell reads them; the caller escapes for HTML.
fn connect_snippets(card: &InviteCard, host: &str) -> [(&'static str, &'static str, String); 4] {
    let hub = &card.hub;
    let id = &card.agent_id;
    let quoted = format!("'{}'", id.replace('\'', "'\\''"));
    let server = serde_json::json!({"mcpServers": {"chorus": {"type": "http", "url": format!("{hub}/mcp"),
        "headers": {"Authorization": "Bearer YOUR_KEY"}}}});
    let message = serde_json::json!({"receiver_id": id, "envelope": {"chorus_version": "0.4", "sender_id": format!("YOU@{host}"),
        "original_text": "Hello!", "sender_culture": "en"}});
    let message = message.to_string().replace('\'', "'\\''");
    [
        (
            "invite.cli",
            "Command line",
            format!(
                "chorus --hub {hub} register YOU@{host} --culture en\nchorus send {quoted} 'Hello!'\nchorus listen"
            ),
        ),
        (
            "invite.claude",
            "Claude Code",
            format!(
                "claude mcp add --transport http chorus {hub}/mcp --header 'Authorization: Bearer YOUR_KEY'"
            ),
        ),
        (
            "invite.mcp",
            "Other hosts with MCP",
            serde_json::to_string_pretty(&server).unwrap_or_default(),
        ),
        (
            "invite.http",
            "HTTP",
            format!(
                "curl {hub}/register --json '{{\"agent_id\": \"YOU@{host}\", \"agent_card\": {{\"card_version\": \"0.3\", \
                 \"user_culture\": \"en\"}}}}'\ncurl {hub}/messages -H 'Authorization: Bearer YOUR_KEY' --json '{message}'"
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// Failure 7
    #[tokio::test]
    async fn every_text_of_an_agent_is_escaped() {
        let nasty = "<img src=x onerror=alert(1)>\"'&";
        let card = InviteCard {
            agent_id: nasty.into(),
            hub: nasty.into(),
            culture: Some(nasty.into()),
            online: false,
            exists: true,
            connect_instructions: nasty.into(),
            host_verified: None,
        };
        let html = render_invite(&card, nasty)
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes();
        let html = std::str::from_utf8(&html).unwrap();
        assert!(
            !html.contains("<img src=x") && !html.contains("\"'"),
            "{html}"
        );
        let all = html.matches("onerror=").count();
        let escaped = html.matches("&lt;img src=x onerror=").count();
        assert!(all == escaped && all > 6, "{all} {escaped}");
    }
}
