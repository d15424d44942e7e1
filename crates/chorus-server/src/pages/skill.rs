//! `GET /skill`: the text that teaches an agent to use the hub, in each language we have (SKL-01…38, lesson 11).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, negotiate, path_params::PathParam};
use crate::pages::{html, markdown};
use axum::{extract::State, response::Response};
use chorus_wire::ErrorCode;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Language tag and text; the first is what `/skill` serves.
pub const SKILL_TEXTS: [(&str, &str); 2] = [
    ("en", include_str!("../../assets/skill.en.md")),
    ("zh-CN", include_str!("../../assets/skill.zh-CN.md")),
];

/// The wire format, which the texts of all languages refer to.
pub const TRANSPORT_TEXT: &str = include_str!("../../assets/transport.md");

/// The names of the files of the skill's package, as 002 has them. They are served below `/skill`, so that a link from one
/// to another resolves (SKL-34).
const PACKAGE_FILES: [(&str, &str, &str); 3] = [
    ("SKILL.md", "en", SKILL_TEXTS[0].1),
    ("SKILL.zh-CN.md", "zh-CN", SKILL_TEXTS[1].1),
    ("TRANSPORT.md", "en", TRANSPORT_TEXT),
];

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_skill))
        .routes(routes!(get_skill_in_language))
}

/// Get the skill text
///
/// What an agent reads to take part, in English. As Markdown, or as a page when `Accept` prefers HTML.
#[utoipa::path(get, path = "/skill", tag = "envelope",
    responses((status = 200, description = "The text.", content((String = "text/markdown"), (String = "text/html")))))]
async fn get_skill(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let (lang, text) = SKILL_TEXTS[0];
    skill_response(&state, &headers, lang, text)
}

/// Get the skill text in a language, or a file of its package
///
/// As Markdown, or as a page when `Accept` prefers HTML. The files are `SKILL.md`, `SKILL.zh-CN.md` and `TRANSPORT.md`.
#[utoipa::path(get, path = "/skill/{lang}", tag = "envelope",
    params(("lang" = String, Path, description = "A language tag, `en` or `zh-CN`, or the name of a file", example = "en")),
    responses((status = 200, description = "The text.", content((String = "text/markdown"), (String = "text/html"))),
        (status = 404, description = "There is no text in that language, and no such file.")))]
async fn get_skill_in_language(
    State(state): State<AppState>,
    headers: HeaderMap,
    PathParam(requested): PathParam,
) -> ApiResult {
    let in_language = SKILL_TEXTS
        .iter()
        .find(|(lang, _)| lang.eq_ignore_ascii_case(&requested))
        .map(|(lang, text)| (*lang, *text));
    let file = PACKAGE_FILES
        .iter()
        .find(|(name, ..)| *name == requested)
        .map(|(_, lang, text)| (*lang, *text));
    let (lang, text) = in_language.or(file).ok_or(ErrorCode::NotFound)?;
    Ok(skill_response(&state, &headers, lang, text))
}

/// The text in a language, with the hub's URL and host name filled in.
pub fn skill_text(state: &AppState, lang: &str) -> Option<String> {
    let (_, text) = SKILL_TEXTS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(lang))?;
    Some(fill_placeholders(state, text))
}

fn fill_placeholders(state: &AppState, text: &str) -> String {
    text.replace("{{HUB_URL}}", &state.public_url)
        .replace("{{HOST}}", &state.hub.options().host_name)
}

fn skill_response(state: &AppState, headers: &HeaderMap, lang: &str, text: &str) -> Response {
    let text = fill_placeholders(state, text);
    let mut response = if negotiate::prefers_media(headers, "text/html", "text/markdown") {
        html::render_page(lang, "Chorus", &markdown::render_html(&text))
    } else {
        reply::text_response(StatusCode::OK, "text/markdown; charset=utf-8", text)
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What every language of the text must contain (SKL-01…38).
    const TAUGHT: [&str; 26] = [
        "[[reply_to_current]]", // SKL-09
        "[chorus_reply]",       // SKL-10
        "/reset",               // SKL-17
        "chorus-credentials.json",
        "~/.chorus/config.json",
        "\"hub_url\"",
        "card_version",
        "invite_code",
        "Authorization: Bearer",
        "Last-Event-ID",
        "session_token",
        "original_text",
        "sender_culture",
        "cultural_context",
        "conversation_id",
        "turn_number",
        "{\"status\": \"ok\"}", // SKL-16
        "INVALID_ENVELOPE",
        "Idempotency-Key",
        "X-Chorus-Retry: failed",
        "metadata.next",
        "ERR_AGENT_UNREACHABLE",
        "chorus-history",
        "\"dir\":\"sent\"", // SKL-27
        "delivered_sse",
        "chorus listen",
    ];

    #[test]
    fn each_language_teaches_all_of_it() {
        for (lang, text) in SKILL_TEXTS {
            for taught in TAUGHT {
                assert!(text.contains(taught), "{lang} does not say {taught}");
            }
            let headings = |text: &str| text.lines().filter(|line| line.starts_with("## ")).count();
            assert_eq!(
                headings(text),
                headings(SKILL_TEXTS[0].1),
                "{lang} has other parts than the first"
            );
        }
    }

    /// What each language says of the key: a chat and a log are read by others.
    const KEY_STAYS_SECRET: [(&str, &str); 2] = [
        (
            "en",
            "The key stays in the file: do not print it, and do not\nrepeat it",
        ),
        (
            "zh-CN",
            "密钥只留在文件里：不要打印，也不要写进对话、日志或消息",
        ),
    ];
    /// What has told agents to show it, and what would.
    const SHOWS_KEY: [&str; 7] = [
        "your agent id, your key",
        "print your key",
        "show your key",
        "tell your user your key",
        "智能体地址、密钥",
        "告诉用户你的密钥",
        "打印密钥",
    ];

    #[test]
    fn no_language_tells_an_agent_to_show_its_key() {
        for (lang, text) in SKILL_TEXTS {
            let warning = KEY_STAYS_SECRET
                .iter()
                .find(|(known, _)| *known == lang)
                .map(|(_, warning)| *warning)
                .unwrap_or_else(|| panic!("{lang} has no sentence here"));
            assert!(text.contains(warning), "{lang} does not say: {warning}");
            for shows in SHOWS_KEY {
                assert!(!text.contains(shows), "{lang} says: {shows}");
            }
        }
    }

    /// Every URL of the hub in the text is a route, so a removed route breaks this test.
    #[test]
    fn every_path_that_is_taught_is_mounted() {
        let (_, api) = crate::router::all_routes().split_for_parts();
        let fits = |taught: &str, route: &str| {
            let parts = || taught.split('/').zip(route.split('/'));
            taught.split('/').count() == route.split('/').count()
                && parts().all(|(taught, route)| taught == route || route.starts_with('{'))
        };
        for (lang, text) in SKILL_TEXTS {
            let mut taught = BTreeSet::new();
            for rest in text.split("{{HUB_URL}}/").skip(1) {
                let end = rest
                    .find(|c: char| {
                        c.is_whitespace() || matches!(c, '`' | '?' | '"' | ',' | '，' | '。')
                    })
                    .unwrap();
                taught.insert(format!("/{}", rest[..end].trim_end_matches('.')));
            }
            assert!(taught.len() >= 9, "{lang}: {taught:?}");
            for path in taught {
                assert!(
                    api.paths.paths.keys().any(|route| fits(&path, route)),
                    "{lang}: {path}"
                );
            }
        }
    }
}
