//! Published tools read the contract at `/openapi.json`: linters find no fault in it, and clients whose types are generated
//! from it compile and talk to the hub.

use crate::actors::{CommandOutput, Scene};
use crate::http::call;
use crate::kit::{HostKit, PythonKit, isolate, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs and settings of these tests.
pub fn contract_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hosts/contract")
}

/// Writes the contract of a hub that runs into its folder, and returns the name of the file.
fn save_contract(scene: &Scene) -> &'static str {
    let text = call(&scene.hub.url, "", "GET", "/openapi.json", &Value::Null);
    std::fs::write(scene.folder.path().join("openapi.json"), text).unwrap();
    "openapi.json"
}

/// Copies a program of these tests into the folder of the hub, where generated files are put beside it.
fn copy_program(scene: &Scene, name: &str) {
    std::fs::copy(contract_folder().join(name), scene.folder.path().join(name)).unwrap();
}

/// Runs a tool in the folder of the hub, and shows what it says if it fails.
#[track_caller]
fn run_tool(scene: &Scene, tool: Command, args: &[&str]) -> CommandOutput {
    let ended = try_tool(scene, tool, args);
    assert_eq!(ended.code, 0, "{}\n{}", ended.out, ended.err);
    ended
}

fn try_tool(scene: &Scene, mut tool: Command, args: &[&str]) -> CommandOutput {
    isolate(&mut tool, scene.folder.path());
    tool.env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(args);
    run(tool)
}

#[test]
fn spectral_finds_no_error_and_no_warning_in_the_contract() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let contract = save_contract(&scene);
    std::fs::write(
        scene.folder.path().join("ruleset.json"),
        r#"{"extends": "spectral:oas"}"#,
    )
    .unwrap();
    let spectral = kit.script("@stoplight/spectral-cli/dist/index.js");
    let args = [
        "lint",
        "--ruleset",
        "ruleset.json",
        "--fail-severity",
        "warn",
        contract,
    ];
    run_tool(&scene, spectral, &args);
}

#[test]
fn redocly_finds_no_error_and_no_warning_in_the_contract() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let contract = save_contract(&scene);
    let redocly = kit.script("@redocly/cli/bin/cli.js");
    let args = ["lint", "--extends", "recommended", "--format", "json"];
    let ended = try_tool(&scene, redocly, &[&args[..], &[contract]].concat());
    // Not by the exit code: it is 0 with warnings.
    let found: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let problems: Vec<String> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let place = &problem["location"][0]["pointer"];
            format!(
                "{} {} at {place}\n",
                problem["severity"], problem["message"]
            )
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.concat());
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn the_contract_is_a_valid_openapi_document() {
    let Some(kit) = PythonKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let contract = save_contract(&scene);
    run_tool(&scene, kit.program("openapi-spec-validator"), &[contract]);
}

/// What the clients print. Both do the same: register alice and bob, send from alice to bob, hear it on bob's inbox and
/// read it in bob's history.
fn assert_client_output(ended: &CommandOutput) {
    let printed = ended.json();
    let text = "Shall we meet on Thursday?";
    let expected = json!({
        "registered": ["alice@chorus", "bob@chorus"],
        "delivery": "delivered_sse",
        "heard": text,
        "history": [["alice@chorus", "bob@chorus", text]],
        "delivered_via": "sse",
        "same_trace": true,
    });
    assert_eq!(printed, [expected], "{ended:?}");
}

#[test]
fn a_client_generated_for_typescript_compiles_and_talks_to_the_hub() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let contract = save_contract(&scene);
    let folder = scene.folder.path();
    copy_program(&scene, "client.ts");
    copy_program(&scene, "tsconfig.json");
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    std::os::unix::fs::symlink(kit.modules(), folder.join("node_modules")).unwrap();
    // Not into a .d.ts: skipLibCheck, which the types of libraries need, would skip it too.
    let generator = kit.script("openapi-typescript/bin/cli.js");
    run_tool(&scene, generator, &[contract, "--output", "schema.ts"]);
    run_tool(
        &scene,
        kit.script("typescript/bin/tsc"),
        &["--project", "."],
    );
    let ended = run_tool(&scene, kit.node(), &["client.js", &scene.hub.url]);
    assert_client_output(&ended);
}

#[test]
fn a_client_generated_for_python_passes_a_strict_type_check_and_talks_to_the_hub() {
    let Some(kit) = PythonKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let contract = save_contract(&scene);
    copy_program(&scene, "client.py");
    let generate = [
        "--input",
        contract,
        "--input-file-type",
        "openapi",
        "--output",
        "models.py",
        "--output-model-type",
        "pydantic_v2.BaseModel",
        "--target-python-version",
        "3.11",
        // Constraints as annotations: mypy does not read a call such as conint(ge=1) as a type.
        "--use-annotated",
        "--formatters",
        "builtin",
        "--disable-timestamp",
    ];
    run_tool(&scene, kit.program("datamodel-codegen"), &generate);
    let check = ["--strict", "--cache-dir", ".mypy", "client.py", "models.py"];
    run_tool(&scene, kit.program("mypy"), &check);
    let ended = run_tool(
        &scene,
        kit.program("python"),
        &["client.py", &scene.hub.url],
    );
    assert_client_output(&ended);
}
