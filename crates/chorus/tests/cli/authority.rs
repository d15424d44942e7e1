//! A certificate authority that lives as long as a test, made by openssl and trusted by nobody else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Authority {
    folder: PathBuf,
    name: String,
}

/// A certificate and its key, PEM.
pub struct Signed {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// `None`, said aloud, where there is no openssl; under CI that is a failure.
    pub fn new(folder: &Path, name: &str) -> Option<Self> {
        let authority = Self {
            folder: folder.into(),
            name: name.into(),
        };
        let made = authority.request(name, &["-addext", "basicConstraints=critical,CA:TRUE"]);
        if !made {
            assert!(
                std::env::var_os("CI").is_none(),
                "openssl is needed to make certificates"
            );
            eprintln!("skipped: there is no openssl");
        }
        made.then_some(authority)
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn request(&self, name: &str, more: &[&str]) -> bool {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", &format!("/CN={name}")])
            .args(more)
            .arg("-keyout")
            .arg(self.file(name, "key"))
            .arg("-out")
            .arg(self.file(name, "pem"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        made.is_ok_and(|status| status.success())
    }

    pub fn root(&self) -> String {
        self.file(&self.name, "pem").display().to_string()
    }

    /// A certificate of `name` for whatever `alternative` says, such as `IP:127.0.0.1`.
    pub fn signs(&self, name: &str, alternative: &str) -> Signed {
        let (ca, key) = (
            self.root(),
            self.file(&self.name, "key").display().to_string(),
        );
        let alternative = format!("subjectAltName={alternative}");
        let more = [
            "-CA",
            &ca,
            "-CAkey",
            &key,
            "-addext",
            &alternative,
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        assert!(self.request(name, &more), "no certificate for {name}");
        Signed {
            cert: self.file(name, "pem"),
            key: self.file(name, "key"),
        }
    }
}
