//! Why an order for a certificate failed, in words that say what to do next.

use instant_acme::{Error, Problem};
use std::error::Error as StdError;

/// The prefix of the errors that RFC 8555 defines.
const ERROR_PREFIX: &str = "urn:ietf:params:acme:error:";
/// Longest text of an authority that is repeated; it is written for people and may be anything.
const MAX_DETAIL_CHARS: usize = 400;

/// How a failure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The authority did not answer, or not as one.
    Unreachable,
    /// It refused the order, or its check of a name failed.
    Refused,
    /// It refuses further orders for a while.
    RateLimited,
    /// Something on this machine, such as a file that cannot be written.
    Local,
}

/// A failed order: the reason and the next step.
#[derive(Debug)]
pub struct OrderFailure {
    pub kind: FailureKind,
    pub message: String,
    /// The account is unknown to the authority and must be made again.
    pub is_account_gone: bool,
}

impl OrderFailure {
    pub fn local(message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Local,
            message: message.into(),
            is_account_gone: false,
        }
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Refused,
            message: message.into(),
            is_account_gone: false,
        }
    }

    /// An error of the library, in the order for `domains` at `directory`.
    pub fn from_error(error: &Error, domains: &str, directory: &str) -> Self {
        if let Error::Api(problem) = error {
            return Self::from_problem(problem, domains);
        }
        if let Error::Timeout(_) = error {
            return Self::refused(format!(
                "the authority did not finish its checks of {domains} in time; nothing needs to be done"
            ));
        }
        Self {
            kind: FailureKind::Unreachable,
            message: format!(
                "the authority cannot be used at {directory}: {}; check that URL, and that this machine reaches it",
                describe_chain(error)
            ),
            is_account_gone: false,
        }
    }

    /// What the authority said about the order, or about its check of one name.
    pub fn from_problem(problem: &Problem, domain: &str) -> Self {
        let code = problem.r#type.as_deref().unwrap_or_default();
        let code = code.strip_prefix(ERROR_PREFIX).unwrap_or(code);
        let kind = match code {
            "rateLimited" => FailureKind::RateLimited,
            "serverInternal" => FailureKind::Unreachable,
            _ => FailureKind::Refused,
        };
        Self {
            kind,
            message: format!(
                "{}; {} (the authority says: {})",
                describe_problem(code, domain),
                describe_next_step(code, domain),
                describe_detail(problem, code)
            ),
            is_account_gone: code == "accountDoesNotExist",
        }
    }
}

fn describe_problem(code: &str, domain: &str) -> String {
    match code {
        "dns" => format!("the authority cannot look up {domain}"),
        "connection" => format!("the authority cannot connect to port 443 of {domain}"),
        "tls" | "unauthorized" | "incorrectResponse" => {
            format!("port 443 of {domain} does not lead to this hub")
        }
        "caa" => format!("a CAA record forbids this authority to issue for {domain}"),
        "rejectedIdentifier" | "unsupportedIdentifier" => {
            format!("the authority does not issue for {domain}")
        }
        "rateLimited" => "the authority takes no further orders for a while".to_owned(),
        "serverInternal" => "the authority has a fault of its own".to_owned(),
        "externalAccountRequired" => "the authority wants an account made beforehand".to_owned(),
        "userActionRequired" => "the authority wants new terms to be agreed to".to_owned(),
        "accountDoesNotExist" => "the authority does not know this hub's account".to_owned(),
        "invalidContact" | "unsupportedContact" => {
            "the authority does not take the address of --tls-acme-email".to_owned()
        }
        _ => format!("the authority refused the order for {domain}"),
    }
}

fn describe_next_step(code: &str, domain: &str) -> String {
    match code {
        "dns" => {
            format!("set the A or AAAA record of {domain} to the public address of this machine")
        }
        "connection" => format!(
            "let port 443 of {domain} through the firewall, and forward it to the address that this hub listens on"
        ),
        "tls" | "unauthorized" | "incorrectResponse" => format!(
            "check that the A and AAAA records of {domain} are this machine's, and that nothing in front of the hub ends TLS"
        ),
        "caa" => format!(
            "allow the authority in the CAA records of {domain}, or choose another with --tls-acme-directory"
        ),
        "rejectedIdentifier" | "unsupportedIdentifier" => {
            "use a public name in --tls-acme".to_owned()
        }
        "rateLimited" => {
            "until then try with the staging directory of --tls-acme-directory".to_owned()
        }
        "externalAccountRequired" => "choose another one with --tls-acme-directory".to_owned(),
        "userActionRequired" => "read them at the authority".to_owned(),
        "invalidContact" | "unsupportedContact" => "correct it, or leave it out".to_owned(),
        "accountDoesNotExist" => "the next attempt makes a new one".to_owned(),
        _ => "the hub tries again".to_owned(),
    }
}

/// The authority's own words, with those about single names, bounded and on one line.
fn describe_detail(problem: &Problem, code: &str) -> String {
    let details = std::iter::once(problem.detail.as_deref())
        .chain(problem.subproblems.iter().map(|sub| sub.detail.as_deref()))
        .flatten();
    let text = details.collect::<Vec<_>>().join("; ");
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_DETAIL_CHARS)
        .collect();
    match text.is_empty() {
        true => code.to_owned(),
        false => text,
    }
}

/// An error with its causes, the innermost of which is the one that helps.
fn describe_chain(error: &(dyn StdError + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // A transparent error repeats its cause.
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        cause = error.source();
    }
    texts.join(": ")
}
