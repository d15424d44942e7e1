//! An ACME server (RFC 8555) in this process, as strict as Pebble where a client can be wrong: nonces are used once, every
//! request is signed by its account, and names are checked by really connecting to the hub.

use crate::acme_authority::TestAuthority;
use crate::acme_check::check_domain;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What the tests change and count.
pub struct AcmeState {
    /// Where names are checked; the port 443 of this world.
    pub hub_at: SocketAddr,
    pub lifetime_seconds: i64,
    /// A problem with which orders are refused, and its `Retry-After`.
    pub order_problem: Option<(&'static str, &'static str)>,
    pub orders: usize,
    pub accounts: Vec<TestAccount>,
    open_orders: Vec<TestOrder>,
    nonces: HashSet<String>,
    nonce_count: usize,
    /// The first signed request is told that its nonce is bad, as any authority may.
    has_refused_nonce: bool,
}

pub struct TestAccount {
    key: Vec<u8>,
    thumbprint: String,
    pub contact: Value,
}

struct TestOrder {
    domains: Vec<String>,
    checks: Vec<DomainCheck>,
    certificate: Option<String>,
}

struct DomainCheck {
    status: &'static str,
    error: Option<Value>,
}

pub struct AcmeServer {
    pub directory: String,
    pub authority: Arc<TestAuthority>,
    pub state: Arc<Mutex<AcmeState>>,
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "application/json".into())],
            body: body.to_string().into_bytes(),
        }
    }

    fn problem(status: u16, kind: &str, detail: &str) -> Self {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        Self::json(
            status,
            &json!({ "type": kind, "detail": detail, "status": status }),
        )
    }

    fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// A request whose signature was verified.
struct SignedRequest {
    payload: Vec<u8>,
    /// The account that signed it; none for a new one.
    account: Option<usize>,
    jwk: Value,
}

impl AcmeServer {
    pub fn start(hub_at: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::start_on(listener, hub_at, false)
    }

    /// With a directory in TLS, whose certificate the authority has issued itself.
    pub fn start_secure(hub_at: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::start_on(listener, hub_at, true)
    }

    pub fn start_on(listener: TcpListener, hub_at: SocketAddr, is_secure: bool) -> Self {
        let authority = Arc::new(TestAuthority::new());
        let scheme = if is_secure { "https" } else { "http" };
        let base = format!("{scheme}://{}", listener.local_addr().unwrap());
        let tls = is_secure.then(|| authority.directory_tls("127.0.0.1"));
        let state = Arc::new(Mutex::new(AcmeState {
            hub_at,
            lifetime_seconds: 90 * 24 * 3600,
            order_problem: None,
            orders: 0,
            accounts: Vec::new(),
            open_orders: Vec::new(),
            nonces: HashSet::new(),
            nonce_count: 0,
            has_refused_nonce: false,
        }));
        let handler = Handler {
            base: base.clone(),
            authority: authority.clone(),
            state: state.clone(),
        };
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let handler = handler.clone();
                let tls = tls.clone();
                std::thread::spawn(move || serve_socket(&handler, socket, tls));
            }
        });
        Self {
            directory: format!("{base}/dir"),
            authority,
            state,
        }
    }

    pub fn orders(&self) -> usize {
        self.state.lock().unwrap().orders
    }
}

fn serve_socket(handler: &Handler, socket: TcpStream, tls: Option<Arc<ServerConfig>>) {
    match tls {
        None => serve_request(handler, socket),
        Some(tls) => {
            let connection = ServerConnection::new(tls).unwrap();
            serve_request(handler, StreamOwned::new(connection, socket));
        }
    }
}

/// One request, then the connection is closed.
fn serve_request(handler: &Handler, stream: impl Read + Write) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if !stream.read_line(&mut line).is_ok_and(|read| read > 0) {
        return;
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap().to_owned();
    let path = words.next().unwrap().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).unwrap();
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let reply = handler.answer(&method, &path, &body);
    let nonce = handler.make_nonce();
    let mut text = format!("HTTP/1.1 {} x\r\nReplay-Nonce: {nonce}\r\n", reply.status);
    for (name, value) in &reply.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        reply.body.len()
    );
    let stream = stream.get_mut();
    let _ = stream.write_all(text.as_bytes());
    if method != "HEAD" {
        let _ = stream.write_all(&reply.body);
    }
    let _ = stream.flush();
}

#[derive(Clone)]
struct Handler {
    base: String,
    authority: Arc<TestAuthority>,
    state: Arc<Mutex<AcmeState>>,
}

impl Handler {
    fn make_nonce(&self) -> String {
        let mut state = self.state.lock().unwrap();
        state.nonce_count += 1;
        let nonce = format!("nonce-{}", state.nonce_count);
        state.nonces.insert(nonce.clone());
        nonce
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        match (method, path) {
            ("GET", "/dir") => Reply::json(
                200,
                &json!({ "newNonce": self.url("/nonce"), "newAccount": self.url("/account"),
                    "newOrder": self.url("/order"), "revokeCert": self.url("/revoke"),
                    "keyChange": self.url("/key"), "meta": { "termsOfService": self.url("/terms") } }),
            ),
            ("HEAD", "/nonce") => Reply::json(200, &Value::Null),
            ("POST", path) => match self.verify(path, body) {
                Ok(request) => self.answer_signed(path, &request),
                Err(refusal) => refusal,
            },
            _ => Reply::problem(404, "malformed", "no such resource"),
        }
    }

    /// Checks the nonce, the URL and the signature of a request.
    fn verify(&self, path: &str, body: &[u8]) -> Result<SignedRequest, Reply> {
        let refuse = |detail: &str| Reply::problem(400, "malformed", detail);
        let jws: Value = serde_json::from_slice(body).map_err(|_| refuse("no JWS"))?;
        let part = |name: &str| jws[name].as_str().unwrap().to_owned();
        let header = BASE64.decode(part("protected")).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        let mut state = self.state.lock().unwrap();
        let is_fresh = state.nonces.remove(header["nonce"].as_str().unwrap());
        if !is_fresh || !std::mem::replace(&mut state.has_refused_nonce, true) {
            return Err(Reply::problem(400, "badNonce", "use another"));
        }
        if header["url"] != self.url(path) || header["alg"] != "ES256" {
            return Err(refuse("the request is signed for another URL"));
        }
        let jwk = header["jwk"].clone();
        let account = match (path, header["kid"].as_str()) {
            ("/account", None) => None,
            (_, Some(kid)) => {
                let known = (0..state.accounts.len())
                    .find(|index| kid == self.url(&format!("/account/{index}")));
                let unknown = Reply::problem(400, "accountDoesNotExist", "unknown");
                Some(known.ok_or(unknown)?)
            }
            (_, None) => return Err(refuse("no account")),
        };
        let key = match account {
            Some(index) => state.accounts[index].key.clone(),
            None => point_of(&jwk),
        };
        let signed = format!("{}.{}", part("protected"), part("payload"));
        let signature = BASE64.decode(part("signature")).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| refuse("the signature is wrong"))?;
        let payload = BASE64.decode(part("payload")).unwrap();
        Ok(SignedRequest {
            payload,
            account,
            jwk,
        })
    }

    fn answer_signed(&self, path: &str, request: &SignedRequest) -> Reply {
        let payload: Value = serde_json::from_slice(&request.payload).unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let number = |index: usize| parts[index].parse::<usize>().unwrap();
        match parts[0] {
            "account" if parts.len() == 1 => self.create_account(&request.jwk, &payload),
            "order" if parts.len() == 1 => self.create_order(&payload),
            "order" => self.show_order(200, number(1)),
            "check" => self.show_check(number(1), number(2)),
            "challenge" => self.start_check(request.account.unwrap(), number(1), number(2)),
            "finalize" => self.finalize(number(1), payload["csr"].as_str().unwrap()),
            "certificate" => {
                let state = self.state.lock().unwrap();
                let chain = state.open_orders[number(1)].certificate.clone().unwrap();
                let headers = vec![("Content-Type", "application/pem-certificate-chain".into())];
                Reply {
                    status: 200,
                    headers,
                    body: chain.into_bytes(),
                }
            }
            _ => Reply::problem(404, "malformed", "no such resource"),
        }
    }

    fn create_account(&self, jwk: &Value, payload: &Value) -> Reply {
        if payload["termsOfServiceAgreed"] != true {
            return Reply::problem(403, "userActionRequired", "the terms are not agreed to");
        }
        let thumb = json!({ "crv": jwk["crv"], "kty": jwk["kty"], "x": jwk["x"], "y": jwk["y"] });
        let mut state = self.state.lock().unwrap();
        state.accounts.push(TestAccount {
            key: point_of(jwk),
            thumbprint: BASE64.encode(Sha256::digest(thumb.to_string())),
            contact: payload["contact"].clone(),
        });
        let url = self.url(&format!("/account/{}", state.accounts.len() - 1));
        Reply::json(201, &json!({ "status": "valid" })).with_header("Location", url)
    }

    fn create_order(&self, payload: &Value) -> Reply {
        let mut state = self.state.lock().unwrap();
        state.orders += 1;
        if let Some((kind, retry_after)) = state.order_problem {
            return Reply::problem(429, kind, "too many certificates for these names")
                .with_header("Retry-After", retry_after.to_owned());
        }
        let identifiers = payload["identifiers"].as_array().unwrap();
        let domains: Vec<String> = identifiers
            .iter()
            .map(|identifier| identifier["value"].as_str().unwrap().to_owned())
            .collect();
        let pending = || DomainCheck {
            status: "pending",
            error: None,
        };
        state.open_orders.push(TestOrder {
            checks: domains.iter().map(|_| pending()).collect(),
            domains,
            certificate: None,
        });
        let number = state.open_orders.len() - 1;
        drop(state);
        let url = self.url(&format!("/order/{number}"));
        self.show_order(201, number).with_header("Location", url)
    }

    fn show_order(&self, status: u16, number: usize) -> Reply {
        let state = self.state.lock().unwrap();
        let order = &state.open_orders[number];
        let mut statuses = order.checks.iter().map(|check| check.status);
        let order_status = match () {
            () if order.certificate.is_some() => "valid",
            () if statuses.clone().any(|status| status == "invalid") => "invalid",
            () if statuses.all(|status| status == "valid") => "ready",
            () => "pending",
        };
        let checks: Vec<String> = (0..order.checks.len())
            .map(|index| self.url(&format!("/check/{number}/{index}")))
            .collect();
        let mut body = json!({ "status": order_status, "authorizations": checks,
            "finalize": self.url(&format!("/finalize/{number}")) });
        if order.certificate.is_some() {
            body["certificate"] = json!(self.url(&format!("/certificate/{number}")));
        }
        Reply::json(status, &body)
    }

    fn show_check(&self, number: usize, index: usize) -> Reply {
        let state = self.state.lock().unwrap();
        let order = &state.open_orders[number];
        let check = &order.checks[index];
        let mut challenge = json!({ "type": "tls-alpn-01", "status": check.status, "token": token_of(number, index),
            "url": self.url(&format!("/challenge/{number}/{index}")) });
        if let Some(error) = &check.error {
            challenge["error"] = error.clone();
        }
        let other = json!({ "type": "http-01", "status": "pending", "token": token_of(number, index),
            "url": self.url("/other") });
        Reply::json(
            200,
            &json!({ "status": check.status, "challenges": [other, challenge],
                "identifier": { "type": "dns", "value": order.domains[index] } }),
        )
    }

    /// Answers first and connects to the hub then, as authorities do.
    fn start_check(&self, account: usize, number: usize, index: usize) -> Reply {
        let token = token_of(number, index);
        let handler = self.clone();
        std::thread::spawn(move || {
            let state = handler.state.lock().unwrap();
            let thumbprint = state.accounts[account].thumbprint.clone();
            let domain = state.open_orders[number].domains[index].clone();
            let hub_at = state.hub_at;
            drop(state);
            let digest = Sha256::digest(format!("{}.{thumbprint}", token_of(number, index)));
            let outcome = check_domain(hub_at, &domain, &digest);
            let mut state = handler.state.lock().unwrap();
            let check = &mut state.open_orders[number].checks[index];
            match outcome {
                Ok(()) => check.status = "valid",
                Err((kind, detail)) => {
                    check.status = "invalid";
                    let kind = format!("urn:ietf:params:acme:error:{kind}");
                    check.error = Some(json!({ "type": kind, "detail": detail }));
                }
            }
        });
        Reply::json(
            200,
            &json!({ "type": "tls-alpn-01", "status": "processing", "token": token,
                "url": self.url(&format!("/challenge/{number}/{index}")) }),
        )
    }

    fn finalize(&self, number: usize, csr: &str) -> Reply {
        let csr = BASE64.decode(csr).unwrap();
        let mut state = self.state.lock().unwrap();
        let lifetime = state.lifetime_seconds;
        let order = &mut state.open_orders[number];
        if !order.checks.iter().all(|check| check.status == "valid") {
            return Reply::problem(403, "orderNotReady", "not all names are checked");
        }
        match self.authority.issue(&csr, &order.domains, lifetime) {
            Ok(chain) => order.certificate = Some(chain),
            Err(cause) => return Reply::problem(400, "badCSR", &cause),
        }
        drop(state);
        self.show_order(200, number)
    }
}

fn token_of(order: usize, index: usize) -> String {
    format!("token-{order}-{index}-of-the-order")
}

/// The public key in a JWK, as an uncompressed point.
fn point_of(jwk: &Value) -> Vec<u8> {
    let coordinate = |name: &str| BASE64.decode(jwk[name].as_str().unwrap()).unwrap();
    [vec![4], coordinate("x"), coordinate("y")].concat()
}
