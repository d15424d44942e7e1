//! Checks that the script requests every route of the contract, once with success and once with an error.

use super::transcript::Transcript;
use std::collections::BTreeSet;

/// A route as `/openapi.json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub method: String,
    pub path: String,
}

pub async fn routes(transcript: &mut Transcript) -> Vec<Route> {
    let contract = transcript
        .get("", "/openapi.json")
        .await
        .expect_status(200)
        .json();
    let mut routes = Vec::new();
    for (path, methods) in contract["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let known = ["get", "put", "post", "patch", "delete"].contains(&method.as_str());
            assert!(known, "{path} has {method}: the script must learn it");
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
            });
        }
    }
    routes
}

/// The route of a request: literal segments win over parameters.
fn matching_route<'a>(routes: &'a [Route], method: &str, path: &str) -> Option<&'a Route> {
    let path = path.split('?').next().unwrap_or_default();
    let fits = |route: &&Route| {
        let (parts, asked) = (
            route.path.split('/').collect::<Vec<_>>(),
            path.split('/').collect::<Vec<_>>(),
        );
        let alike = |(part, asked): (&&str, &&str)| {
            part == asked || (part.starts_with('{') && !asked.is_empty())
        };
        route.method == method && parts.len() == asked.len() && parts.iter().zip(&asked).all(alike)
    };
    routes
        .iter()
        .filter(fits)
        .min_by_key(|route| route.path.matches('{').count())
}

/// Missing outcomes: `METHOD path success` or `METHOD path error`.
pub fn missing_outcomes(routes: &[Route], asked: &[(String, String, u16)]) -> Vec<String> {
    let mut went: BTreeSet<(&Route, bool)> = BTreeSet::new();
    for (method, path, status) in asked {
        if let Some(route) = matching_route(routes, method, path) {
            went.insert((route, *status < 400));
        }
    }
    let mut missing = Vec::new();
    for route in routes {
        for (well, said) in [(true, "success"), (false, "error")] {
            if !went.contains(&(route, well)) {
                missing.push(format!("{} {} {said}", route.method, route.path));
            }
        }
    }
    missing
}
