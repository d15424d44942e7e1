//! The scope that each route asks of an agent's key, as its annotation names it.

use chorus_hub::Principal;
use chorus_wire::Result;
use chorus_wire::agent_key::KeyScope;
use http::Method;
use serde_json::Value;
use std::collections::HashMap;

/// The word in an annotation for a route that takes every key of an agent.
const ANY_SCOPE: &str = "any";

/// What a route or a tool asks of an agent's key. Operators and anonymous clients have no scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredScope {
    /// Every key of an agent will do.
    Any,
    Needs(KeyScope),
}

impl RequiredScope {
    pub fn check(self, principal: &Principal) -> Result<()> {
        match (self, principal) {
            (Self::Needs(scope), Principal::Agent(caller)) => caller.require_scope(scope),
            (Self::Any, Principal::Agent(_))
            | (Self::Any | Self::Needs(_), Principal::Anonymous | Principal::Operator(_)) => Ok(()),
        }
    }

    /// The scope that the security of an operation names; `None` if it takes agents' keys and names none.
    fn of_operation(operation: &Value) -> Option<Self> {
        let alternatives = operation["security"].as_array().into_iter().flatten();
        let mut agent_scopes = alternatives.filter_map(|keys| keys.get("agent_key"));
        let Some(scopes) = agent_scopes.next() else {
            return Some(Self::Any);
        };
        match scopes.get(0)?.as_str()? {
            ANY_SCOPE => Some(Self::Any),
            name => KeyScope::parse(name).map(Self::Needs),
        }
    }
}

/// The scopes of all routes.
#[derive(Debug, Default)]
pub struct RouteScopes(HashMap<String, Vec<(Method, RequiredScope)>>);

impl RouteScopes {
    /// Reads the annotations. A route whose annotation names no scope needs `admin`; a test finds it.
    pub fn from_document(api: &utoipa::openapi::OpenApi) -> Self {
        let mut routes = HashMap::<String, Vec<_>>::new();
        for ((method, path), scope) in list_named_scopes(api) {
            let scope = scope.unwrap_or(RequiredScope::Needs(KeyScope::Admin));
            routes.entry(path).or_default().push((method, scope));
        }
        Self(routes)
    }

    pub fn find(&self, method: &Method, route: &str) -> RequiredScope {
        // A HEAD request is answered by the handler of GET.
        let method = match *method {
            Method::HEAD => &Method::GET,
            ref method => method,
        };
        self.0
            .get(route)
            .and_then(|methods| methods.iter().find(|(known, _)| known == method))
            .map_or(RequiredScope::Any, |(_, scope)| *scope)
    }
}

fn list_named_scopes(
    api: &utoipa::openapi::OpenApi,
) -> Vec<((Method, String), Option<RequiredScope>)> {
    let paths = serde_json::to_value(&api.paths).unwrap_or_default();
    let items = paths.as_object().into_iter().flatten();
    items
        .flat_map(|(path, item)| {
            let operations = item.as_object().into_iter().flatten();
            operations.filter_map(move |(method, operation)| {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).ok()?;
                let scope = RequiredScope::of_operation(operation);
                Some(((method, path.clone()), scope))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a route that takes agents' keys says which.
    #[test]
    fn every_route_with_an_agents_key_names_its_scope() {
        let (_, api) = crate::router::all_routes().split_for_parts();
        let named = list_named_scopes(&api);
        assert!(named.len() > 60);
        let forgotten: Vec<_> = named.iter().filter(|(_, scope)| scope.is_none()).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
        let scopes = RouteScopes::from_document(&api);
        for (method, route, scope) in [
            (
                Method::GET,
                "/agent/inbox",
                RequiredScope::Needs(KeyScope::Read),
            ),
            (
                Method::HEAD,
                "/agent/inbox",
                RequiredScope::Needs(KeyScope::Read),
            ),
            (
                Method::POST,
                "/messages",
                RequiredScope::Needs(KeyScope::Send),
            ),
            (
                Method::POST,
                "/register",
                RequiredScope::Needs(KeyScope::Admin),
            ),
            (Method::GET, "/agents", RequiredScope::Any),
            (Method::GET, "/health", RequiredScope::Any),
        ] {
            assert_eq!(scopes.find(&method, route), scope, "{method} {route}");
        }
    }
}
