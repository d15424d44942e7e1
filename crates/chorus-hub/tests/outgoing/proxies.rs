//! The environment has no say in where a webhook goes.

use std::process::Command;

// A proxy would look the name up itself, behind the guard's back (lesson 3).
#[test]
fn a_proxy_in_the_environment_is_not_asked() {
    let this = std::env::current_exe().unwrap();
    let mut again = Command::new(this);
    again.args([
        "--exact",
        "answers::a_webhook_gets_one_post_with_the_body_and_the_headers_it_was_given",
    ]);
    // Port 1 refuses: through such a proxy nothing would arrive.
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, "http://127.0.0.1:1");
    }
    let ended = again
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
