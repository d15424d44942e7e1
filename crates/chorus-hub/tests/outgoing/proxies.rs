//! Proxy settings in the environment have no effect on webhooks.

use std::process::Command;

// A proxy would resolve the name itself, without the SSRF guard (lesson 3).
#[test]
fn a_proxy_in_the_environment_is_not_used() {
    let test_binary = std::env::current_exe().unwrap();
    let mut command = Command::new(test_binary);
    command.args([
        "--exact",
        "answers::a_webhook_gets_one_post_with_the_body_and_the_headers_it_was_given",
    ]);
    // Port 1 refuses connections: through such a proxy nothing would arrive.
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    let output = command
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
}
