//! Routes that the client calls by their specified paths, and the paths that a hub announces for them instead (TRN-51).

use serde_json::Value;
use std::collections::HashMap;

/// The names of routes in the discovery document, and their specified paths. The routes of documents 001 and 002 are fields
/// of [`crate::hub_paths::HubPaths`]. `/ready` is in neither: a hub whose places are all taken still answers it, but no
/// request for the document.
const ROUTES: [(&str, &str); 52] = [
    ("blocks", "/agent/blocks"),
    ("block", "/agent/blocks/{name}"),
    ("contacts", "/agent/contacts"),
    ("contact", "/agent/contacts/{name}"),
    ("settings", "/agent/settings"),
    ("connection", "/agent/connection"),
    ("console_links", "/console/links"),
    ("frame_stream", "/handles/{handle}/stream"),
    ("roster", "/handles/{handle}/roster"),
    ("open_items", "/handles/{handle}/open"),
    ("open_item", "/handles/{handle}/open/{frame_id}"),
    ("take_handover", "/handles/{handle}/open/{frame_id}/take"),
    ("grants", "/handles/{handle}/grants"),
    ("grant", "/handles/{handle}/grants/{grantee}"),
    ("orgs", "/orgs"),
    ("members", "/orgs/{org}/members"),
    ("member", "/orgs/{org}/members/{handle}"),
    ("accept_membership", "/orgs/{org}/members/{handle}/accept"),
    ("accords", "/orgs/{org}/accords"),
    ("accord", "/orgs/{org}/accords/{id}"),
    ("accept_accord", "/orgs/{org}/accords/{id}/accept"),
    ("channels", "/channels"),
    ("channel", "/channels/{id}"),
    ("channel_members", "/channels/{id}/members"),
    ("channel_member", "/channels/{id}/members/{name}"),
    ("accept_channel", "/channels/{id}/members/{name}/accept"),
    (
        "standing_callback",
        "/channels/{id}/members/{name}/callback",
    ),
    ("channel_messages", "/channels/{id}/messages"),
    ("channel_stream", "/channels/{id}/stream"),
    ("channel_artifacts", "/channels/{id}/artifacts"),
    ("channel_artifact", "/channels/{id}/artifacts/{slug}"),
    ("channel_file", "/channels/{id}/files/{name}"),
    ("skills", "/skills"),
    ("skill_offer", "/skills/{name}"),
    ("heartbeat", "/heartbeat"),
    ("reputation", "/reputation/{agent}"),
    ("jobs", "/jobs"),
    ("job", "/jobs/{id}"),
    ("job_result", "/jobs/{id}/result"),
    ("job_cancel", "/jobs/{id}/cancel"),
    ("job_answer", "/jobs/{id}/answer"),
    ("job_claim", "/jobs/{id}/claim"),
    ("job_approve", "/jobs/{id}/approve"),
    ("job_reject", "/jobs/{id}/reject"),
    ("board", "/board"),
    ("transfer", "/transfer"),
    ("account", "/accounts/{owner}"),
    ("credit", "/accounts/{owner}/credit"),
    ("audit", "/audit"),
    ("economy", "/economy"),
    ("schemas", "/schemas"),
    ("schema", "/schemas/{file}"),
];

/// The announced paths of routes, where they differ from the specified ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnouncedRoutes(Vec<(&'static str, String)>);

impl AnnouncedRoutes {
    /// Reads the `endpoints` of a discovery document.
    pub fn parse_endpoints(endpoints: &HashMap<String, Value>) -> Self {
        let announced = ROUTES.iter().filter_map(|(name, specified)| {
            let path = find_announced(endpoints, name, specified)?;
            (path != *specified).then(|| (*specified, path.to_owned()))
        });
        Self(announced.collect())
    }

    /// The announced path of a call, with its parameters and query; `None` when it is the specified one.
    pub fn translate_path(&self, path: &str) -> Option<String> {
        let (route, query) = split_query(path);
        let (specified, announced) = self
            .0
            .iter()
            .find(|(specified, _)| matches_template(route, specified))?;
        let values = route
            .split('/')
            .zip(specified.split('/'))
            .filter(|(_, part)| part.starts_with('{'))
            .map(|(value, _)| value);
        Some(format!("{}{query}", fill_template(announced, values)))
    }
}

/// The path that a document announces for a route. One with other parameters than the specified path is ignored.
pub fn find_announced<'d>(
    endpoints: &'d HashMap<String, Value>,
    name: &str,
    specified: &str,
) -> Option<&'d str> {
    let path = endpoints.get(name)?.as_str()?;
    let is_usable = is_plain_template(path) && parameters(path).eq(parameters(specified));
    is_usable.then_some(path)
}

/// The template with this encoded value in place of its one parameter.
pub fn fill_parameter(template: &str, value: &str) -> String {
    fill_template(template, [value])
}

/// The template with these values in place of its parameters, in their order.
fn fill_template<'v>(template: &'v str, values: impl IntoIterator<Item = &'v str>) -> String {
    let mut values = values.into_iter();
    let filled: Vec<&str> = template
        .split('/')
        .map(|part| match part.starts_with('{') {
            true => values.next().unwrap_or_default(),
            false => part,
        })
        .collect();
    filled.join("/")
}

/// Whether a hub may announce another path for this one.
pub fn is_known_route(path: &str) -> bool {
    let (route, _) = split_query(path);
    ROUTES
        .iter()
        .any(|(_, specified)| matches_template(route, specified))
}

fn split_query(path: &str) -> (&str, &str) {
    path.split_at(path.find('?').unwrap_or(path.len()))
}

fn matches_template(route: &str, template: &str) -> bool {
    let parts = || route.split('/').zip(template.split('/'));
    route.split('/').count() == template.split('/').count()
        && parts().all(|(part, expected)| {
            part == expected || (expected.starts_with('{') && !part.is_empty())
        })
}

/// The names of the parameters, in their order.
fn parameters(template: &str) -> impl Iterator<Item = &str> {
    template.split('/').filter(|part| part.starts_with('{'))
}

/// Whether it is an absolute path below the hub: no other host, no query, no `..`.
fn is_plain_template(path: &str) -> bool {
    let is_plain = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'~' | b'{' | b'}')
    };
    path.starts_with('/')
        && path.len() <= 256
        && path.bytes().all(is_plain)
        && !path.contains("//")
        && !path.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn announced(endpoints: Value) -> AnnouncedRoutes {
        AnnouncedRoutes::parse_endpoints(&serde_json::from_value(endpoints).unwrap())
    }

    // TRN-51
    #[test]
    fn calls_go_where_the_hub_announces_their_routes() {
        let routes = announced(json!({
            "channels": "/v2/rooms", "channel_member": "/v2/rooms/{id}/of/{name}", "jobs": "/jobs",
            "frame_stream": "/v2/{handle}/frames"}));
        let translated = |path: &str| routes.translate_path(path).unwrap_or_default();
        assert_eq!(translated("/channels?limit=5"), "/v2/rooms?limit=5");
        assert_eq!(
            translated("/channels/ch_1/members/a%2Fb"),
            "/v2/rooms/ch_1/of/a%2Fb"
        );
        assert_eq!(
            translated("/handles/~alice/stream?session=s1"),
            "/v2/~alice/frames?session=s1"
        );
        for same in ["/jobs", "/channels/ch_1", "/messages", ""] {
            assert_eq!(routes.translate_path(same), None, "{same}");
        }
    }

    #[test]
    fn a_path_that_could_leave_the_hub_or_lose_a_parameter_is_ignored() {
        for bad in [
            "https://elsewhere.example/{id}",
            "//elsewhere.example/{id}",
            "/x",
            "/x/{name}",
            "/../{id}",
            "/x/{id}?a=b",
        ] {
            assert_eq!(
                announced(json!({ "channel": bad })),
                AnnouncedRoutes::default(),
                "{bad}"
            );
        }
    }
}
