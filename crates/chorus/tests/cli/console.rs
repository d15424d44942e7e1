//! `chorus console`: a single-use link to the hub's page.

use super::actors::Scene;

#[test]
fn console_prints_a_new_link_each_time_with_the_token_in_the_fragment() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let print = || {
        alice
            .run(&["console", "--print"])
            .ok()
            .out
            .trim()
            .to_owned()
    };
    let (first, second) = (print(), print());
    for link in [&first, &second] {
        let start = format!("{}/console#/link/cl_", scene.hub.url);
        assert!(link.starts_with(&start), "{link}");
        assert_eq!(link.lines().count(), 1, "only the link: {link}");
    }
    assert_ne!(first, second);
    let answer = &alice.json(&["console"])[0];
    assert_eq!(answer["expires_in_seconds"], 300);
    assert!(
        answer["url"]
            .as_str()
            .unwrap()
            .contains("/console#/link/cl_"),
        "{answer}"
    );
    // Without a display nothing can be opened, and the link is printed.
    let mut command = alice.command(&["console"]);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let printed = super::actors::run(command, "").ok().out;
    assert!(printed.contains("/console#/link/cl_"), "{printed}");
}

#[test]
fn console_without_an_identity_says_how_to_get_one() {
    let scene = Scene::open();
    let stranger = scene.newcomer("dora");
    let refused = stranger.run(&["console", "--print"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("chorus register"), "{refused:?}");
}
