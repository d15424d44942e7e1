//! `chorus new`: the files of a project, the names it may have, and what it never overwrites. The SDKs' own tests install
//! and run the projects.

use crate::actors::{CommandOutput, chorus, run};
use std::collections::BTreeMap;
use std::path::Path;

fn new_project(folder: &Path, args: &[&str]) -> CommandOutput {
    let mut command = chorus(folder);
    command.arg("new").args(args);
    run(command, "")
}

fn read_files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(read).collect()
}

/// The root of this repository.
fn checkout() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_python_project_has_an_agent_a_test_and_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let told = new_project(folder.path(), &["python", "weather-agent"]).ok();
    assert!(told.out.contains("cd weather-agent\n"), "{}", told.out);
    assert!(
        told.out.contains("pip install -e '.[test]'"),
        "{}",
        told.out
    );
    let files = read_files(&folder.path().join("weather-agent"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            ".gitignore",
            "README.md",
            "agent.py",
            "pyproject.toml",
            "test_agent.py"
        ]
    );
    let manifest: toml::Table = files["pyproject.toml"].parse().unwrap();
    assert_eq!(manifest["project"]["name"].as_str(), Some("weather-agent"));
    let sdk = manifest["project"]["dependencies"][0].as_str().unwrap();
    assert_eq!(sdk, sdk_requirement());
    assert!(files[".gitignore"].contains("credentials"));
    assert!(files["test_agent.py"].contains("testing.hub()"));
    for (name, text) in &files {
        assert!(!text.contains("my-agent"), "{name} has the template's name");
    }
    // A program gets the same list.
    let json = new_project(folder.path(), &["python", "second", "--json"])
        .ok()
        .json();
    assert_eq!(json[0]["folder"], "second");
    assert_eq!(json[0]["files"].as_array().unwrap().len(), files.len());
}

/// The SDK of this minor version, which is the hub's (SDK-21).
fn sdk_requirement() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("chorus-sdk~={}.0", version.rsplit_once('.').unwrap().0)
}

#[test]
fn a_typescript_project_has_an_agent_a_test_and_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    new_project(folder.path(), &["typescript", "weather-agent"]).ok();
    let files = read_files(&folder.path().join("weather-agent"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        ".gitignore",
        "README.md",
        "agent.test.ts",
        "agent.ts",
        "answer.ts",
        "package.json",
        "tsconfig.json",
    ];
    assert_eq!(names, expected);
    let manifest: serde_json::Value = serde_json::from_str(&files["package.json"]).unwrap();
    assert_eq!(manifest["name"], "weather-agent");
    let version = sdk_requirement().replace("chorus-sdk~=", "~");
    assert_eq!(manifest["dependencies"]["chorus-sdk"], version);
    for (name, text) in &files {
        assert!(!text.contains("my-agent"), "{name} has the template's name");
    }
}

#[test]
fn the_sdk_of_a_checkout_is_a_path_dependency() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = checkout().canonicalize().unwrap();
    let root = checkout.to_str().unwrap();
    // The checkout, or the folder of the package in it.
    for (name, sdk) in [
        ("first", root.to_owned()),
        ("second", format!("{root}/sdk/python")),
    ] {
        new_project(folder.path(), &["python", name, "--sdk", &sdk]).ok();
        let files = read_files(&folder.path().join(name));
        let manifest: toml::Table = files["pyproject.toml"].parse().unwrap();
        let requirement = manifest["project"]["dependencies"][0].as_str().unwrap();
        assert_eq!(
            requirement,
            format!("chorus-sdk @ file://{root}/sdk/python")
        );
    }
    new_project(folder.path(), &["typescript", "third", "--sdk", root]).ok();
    let files = read_files(&folder.path().join("third"));
    let manifest: serde_json::Value = serde_json::from_str(&files["package.json"]).unwrap();
    let place = &manifest["dependencies"]["chorus-sdk"];
    assert_eq!(*place, format!("file:{root}/sdk/typescript"));
    let other = format!("{root}/docs");
    let refused = new_project(folder.path(), &["python", "fourth", "--sdk", &other]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("is no checkout of Chorus"),
        "{}",
        refused.err
    );
    assert!(
        !folder.path().join("fourth").exists(),
        "nothing was written"
    );
}

#[test]
fn what_is_there_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("mine");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("README.md"), "my notes").unwrap();
    let refused = new_project(folder.path(), &["python", "mine"]);
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.err,
        "chorus: mine is there already, and is not empty\n"
    );
    assert_eq!(read_files(&project).len(), 1);
    assert_eq!(read_files(&project)["README.md"], "my notes");
    // Also a second time over its own project.
    new_project(folder.path(), &["python", "again"]).ok();
    assert_eq!(new_project(folder.path(), &["typescript", "again"]).code, 1);
    assert!(!folder.path().join("again/package.json").exists());
    std::fs::write(folder.path().join("file"), "text").unwrap();
    let refused = new_project(folder.path(), &["python", "file"]);
    assert!(refused.err.contains("is no folder"), "{}", refused.err);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("file")).unwrap(),
        "text"
    );
    // An empty folder is as good as none.
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    new_project(folder.path(), &["python", "empty"]).ok();
}

#[test]
fn names_that_npm_pypi_or_a_hub_refuses_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(33);
    let names = [
        "",
        ".",
        "..",
        "../up",
        "a/b",
        "/tmp/x",
        "Weather",
        "my_agent",
        "my agent",
        "-dash",
        "dash-",
        "two--dashes",
        "1st",
        "grüße",
        "a.b",
        "@scope/name",
        "org",
        "chorus-sdk",
        "pytest",
        "typescript",
        "http",
        &long,
    ];
    for name in names {
        for language in ["python", "typescript"] {
            let refused = new_project(folder.path(), &[language, "--", name]);
            assert_eq!(refused.code, 1, "{name:?}: {refused:?}");
        }
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "something was written"
    );
    let refused = new_project(folder.path(), &["python", "My_Agent"]);
    assert!(
        refused
            .err
            .contains("lower-case letters, digits and single dashes"),
        "{}",
        refused.err
    );
    for name in ["a", "x2", "weather-agent-2", &"a".repeat(32)] {
        new_project(folder.path(), &["python", name]).ok();
    }
}
