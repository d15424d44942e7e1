//! `chorus console`: a single-use link to the hub's page.

use super::actors::{Scene, TIMEOUT};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

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

// The link signs in, so it goes to the browser and is not printed.
#[cfg(not(target_os = "macos"))]
#[test]
fn console_opens_the_browser_of_a_display_with_the_link() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let programs = alice.home.join("programs");
    std::fs::create_dir(&programs).unwrap();
    let opened = alice.home.join("opened");
    let opener = programs.join("xdg-open");
    // It writes beside the file and renames it, so that the test reads all or nothing.
    let script =
        "#!/bin/sh\nprintf '%s' \"$*\" > \"$OPENED.part\" && mv \"$OPENED.part\" \"$OPENED\"\n";
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let folders = std::iter::once(programs).chain(std::env::split_paths(&path));
    let mut command = alice.command(&["console"]);
    command
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("DISPLAY", ":99")
        .env("OPENED", &opened);
    let said = super::actors::run(command, "").ok().out;
    assert!(said.contains("is open in your browser"), "{said}");
    assert!(!said.contains("cl_"), "{said}");
    // The command does not wait for the browser.
    let deadline = Instant::now() + TIMEOUT;
    let link = loop {
        match std::fs::read_to_string(&opened) {
            Ok(link) => break link,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    };
    let start = format!("{}/console#/link/cl_", scene.hub.url);
    assert!(link.starts_with(&start), "{link}");
}

#[test]
fn console_without_an_identity_says_how_to_get_one() {
    let scene = Scene::open();
    let stranger = scene.newcomer("dora");
    let refused = stranger.run(&["console", "--print"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("chorus register"), "{refused:?}");
}
