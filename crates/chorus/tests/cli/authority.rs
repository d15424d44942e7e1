//! A temporary certificate authority, made with openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Authority {
    folder: PathBuf,
    name: String,
}

/// A certificate and its key, PEM.
pub struct SignedCertificate {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// `None` with a message if openssl is not installed; under CI that is a failure.
    pub fn new(folder: &Path, name: &str) -> Option<Self> {
        let authority = Self {
            folder: folder.into(),
            name: name.into(),
        };
        let is_created = authority.request(name, &["-addext", "basicConstraints=critical,CA:TRUE"]);
        if !is_created {
            assert!(
                std::env::var_os("CI").is_none(),
                "openssl is needed to make certificates"
            );
            eprintln!("skipped: there is no openssl");
        }
        is_created.then_some(authority)
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn request(&self, name: &str, extra_args: &[&str]) -> bool {
        let is_created = Command::new("openssl")
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
            .args(extra_args)
            .arg("-keyout")
            .arg(self.file(name, "key"))
            .arg("-out")
            .arg(self.file(name, "pem"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        is_created.is_ok_and(|status| status.success())
    }

    pub fn root(&self) -> String {
        self.file(&self.name, "pem").display().to_string()
    }

    /// A certificate of `name` for the subject alternative name `alternative`, such as `IP:127.0.0.1`.
    pub fn sign_certificate(&self, name: &str, alternative: &str) -> SignedCertificate {
        let ca = self.root();
        let key = self.file(&self.name, "key").display().to_string();
        let alternative = format!("subjectAltName={alternative}");
        let extra_args = [
            "-CA",
            &ca,
            "-CAkey",
            &key,
            "-addext",
            &alternative,
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        assert!(self.request(name, &extra_args), "no certificate for {name}");
        SignedCertificate {
            cert: self.file(name, "pem"),
            key: self.file(name, "key"),
        }
    }
}
