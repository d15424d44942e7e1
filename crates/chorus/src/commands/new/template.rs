//! The files of a project. They are kept as a project that runs, in `templates/`, under the name `my-agent`.

use super::project_name::ProjectName;
use super::sdk_source::SdkSource;

/// The name that the templates have.
const TEMPLATE_NAME: &str = "my-agent";

const PYTHON_FILES: [TemplateFile; 5] = [
    (
        "agent.py",
        include_str!("../../../templates/python/agent.py"),
    ),
    (
        "test_agent.py",
        include_str!("../../../templates/python/test_agent.py"),
    ),
    (
        "pyproject.toml",
        include_str!("../../../templates/python/pyproject.toml"),
    ),
    (
        "README.md",
        include_str!("../../../templates/python/README.md"),
    ),
    (
        ".gitignore",
        include_str!("../../../templates/python/gitignore"),
    ),
];
const TYPESCRIPT_FILES: [TemplateFile; 7] = [
    (
        "agent.ts",
        include_str!("../../../templates/typescript/agent.ts"),
    ),
    (
        "answer.ts",
        include_str!("../../../templates/typescript/answer.ts"),
    ),
    (
        "agent.test.ts",
        include_str!("../../../templates/typescript/agent.test.ts"),
    ),
    (
        "package.json",
        include_str!("../../../templates/typescript/package.json"),
    ),
    (
        "tsconfig.json",
        include_str!("../../../templates/typescript/tsconfig.json"),
    ),
    (
        "README.md",
        include_str!("../../../templates/typescript/README.md"),
    ),
    (
        ".gitignore",
        include_str!("../../../templates/typescript/gitignore"),
    ),
];

/// The path in the project, and the text.
type TemplateFile = (&'static str, &'static str);

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ProjectLanguage {
    Python,
    #[value(name = "typescript")]
    TypeScript,
}

impl ProjectLanguage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }

    /// The file that names the package and what it depends on.
    pub fn manifest_file(self) -> &'static str {
        match self {
            Self::Python => "pyproject.toml",
            Self::TypeScript => "package.json",
        }
    }

    pub fn first_steps(self) -> &'static [&'static str] {
        match self {
            Self::Python => &[
                "python3 -m venv .venv && . .venv/bin/activate",
                "pip install -e '.[test]'",
                "pytest",
            ],
            Self::TypeScript => &["npm install", "npm test"],
        }
    }

    /// The project's files under its own name.
    pub fn render_files(
        self,
        name: &ProjectName,
        source: &SdkSource,
    ) -> Vec<(&'static str, String)> {
        let (files, dependency, replacement) = match self {
            Self::Python => (
                PYTHON_FILES.as_slice(),
                "\"chorus-sdk\"",
                quote_text(&source.python_requirement()),
            ),
            Self::TypeScript => (
                TYPESCRIPT_FILES.as_slice(),
                "\"chorus-sdk\": \"*\"",
                format!("\"chorus-sdk\": {}", quote_text(&source.npm_version())),
            ),
        };
        let render = |(file, text): &TemplateFile| {
            let text = text.replace(TEMPLATE_NAME, name.as_str());
            match *file == self.manifest_file() {
                true => (*file, text.replace(dependency, &replacement)),
                false => (*file, text),
            }
        };
        files.iter().map(render).collect()
    }
}

/// A string of JSON, which is also one of TOML.
fn quote_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
