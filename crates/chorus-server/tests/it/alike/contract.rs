//! Whether the script has been everywhere: each route of the contract, once with success and once with an error.

use super::tale::Tale;
use std::collections::BTreeSet;

/// A route as `/openapi.json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub method: String,
    pub path: String,
}

pub async fn routes(tale: &mut Tale) -> Vec<Route> {
    let contract = tale.get("", "/openapi.json").await.is(200).json();
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

/// The route that a request goes to: what is written out wins over what is a name.
fn taken<'a>(routes: &'a [Route], method: &str, path: &str) -> Option<&'a Route> {
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

/// What was left out: `METHOD path success` or `METHOD path error`.
pub fn left_out(routes: &[Route], asked: &[(String, String, u16)]) -> Vec<String> {
    let mut went: BTreeSet<(&Route, bool)> = BTreeSet::new();
    for (method, path, status) in asked {
        if let Some(route) = taken(routes, method, path) {
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
