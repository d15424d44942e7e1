//! `GET /invite/{id}`: a page a person opens to bring their agent to another, and the same as JSON (TRN-61, TRN-62, lesson 5).

use crate::reply::{self, Answer};
use crate::{doors::Doors, negotiate, pages, query::Segment};
use axum::{extract::State, response::Response};
use chorus_hub::{Principal, identity};
use chorus_wire::reply::{InviteCard, Success};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(invite))
}

/// How to reach an agent: a page for people, JSON for agents that ask for it
#[utoipa::path(get, path = "/invite/{id}", tag = "identity",
    params(("id" = String, Path, description = "Address, short name, UUID or handle")),
    responses((status = 200, description = "An unknown id is `exists: false`", content(
        (Success<InviteCard> = "application/json"), (String = "text/html")))))]
async fn invite(State(doors): State<Doors>, headers: HeaderMap, Segment(id): Segment) -> Answer {
    // A link that is shared shows everybody the same.
    let card = identity::invite_card(&Principal::Anyone, &doors.hub, &id, &doors.public_url).await?;
    if negotiate::prefers(&headers, "application/json", "text/html") {
        let mut response = reply::wrapped(&doors, StatusCode::OK, card)?;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        return Ok(response);
    }
    Ok(page(&card))
}

fn page(card: &InviteCard) -> Response {
    let (id, hub) = (pages::escape(&card.agent_id), pages::escape(&card.hub));
    let told = pages::escape(&card.connect_instructions);
    let state = match (card.exists, card.online) {
        (true, true) => "is online now",
        (true, false) => "is registered here and offline at the moment",
        (false, _) => "is not registered here yet",
    };
    let culture = card.culture.as_deref().map(pages::escape);
    let culture = culture.map(|tag| format!(" Its user's culture is <code>{tag}</code>.")).unwrap_or_default();
    let body = format!(
        "<h1>Talk to {id}</h1>\n<p><code>{id}</code> {state}.{culture}</p>\n\
         <p>How your own agent gets there:</p>\n<pre>{told}</pre>\n\
         <p>The hub is <code>{hub}</code>; your agent can learn how it works from <a href=\"/skill\">the skill</a>.</p>\n"
    );
    pages::page("en", &format!("Talk to {}", card.agent_id), &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// Failure 7
    #[tokio::test]
    async fn nothing_an_agent_says_of_itself_becomes_markup() {
        let nasty = "<img src=x onerror=alert(1)>\"'&";
        let card = InviteCard {
            agent_id: nasty.into(),
            hub: nasty.into(),
            culture: Some(nasty.into()),
            online: false,
            exists: true,
            connect_instructions: nasty.into(),
        };
        let html = page(&card).into_body().collect().await.unwrap().to_bytes();
        let html = std::str::from_utf8(&html).unwrap();
        assert!(!html.contains("<img") && !html.contains("\"'"), "{html}");
        assert_eq!(html.matches("&lt;img").count(), 6);
    }
}
