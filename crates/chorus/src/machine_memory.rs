//! How much memory a hub may use: as configured, or what its control group or the machine has.

use chorus_hub::MemoryBounds;
use chorus_wire::limits;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const MIB: u64 = 1024 * 1024;
/// Used when the machine says nothing about its memory.
const UNKNOWN_TOTAL: u64 = 1024 * MIB;
/// Version 1 of control groups writes a number near 2^63 for "no limit".
const UNLIMITED_FROM: u64 = 1 << 60;
/// The part of the memory that the heads of requests may take: a quarter.
const CONNECTIONS_PART: u64 = 4;
/// Fewest connections with which a hub is of use. With fewer, a few idle clients would lock out all others.
pub const MIN_CONNECTIONS: usize = 64;

/// `256M`, `2G`: at least [`MemoryBounds::MIN_TOTAL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize(u64);

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse_error = || "a memory size looks like 256M or 2G".to_owned();
        let digits = text.trim_end_matches("iB").trim_end_matches('B');
        let (number, unit) = match digits.strip_suffix(['M', 'm']) {
            Some(number) => (number, MIB),
            None => (
                digits.strip_suffix(['G', 'g']).ok_or_else(parse_error)?,
                1024 * MIB,
            ),
        };
        let number: u64 = number.parse().map_err(|_| parse_error())?;
        let bytes = number.checked_mul(unit).ok_or_else(parse_error)?;
        if bytes < MemoryBounds::MIN_TOTAL {
            let least = MemoryBounds::MIN_TOTAL / MIB;
            return Err(format!("a hub needs at least {least}M of memory"));
        }
        Ok(Self(bytes))
    }
}

impl<'de> Deserialize<'de> for MemorySize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Where the figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemorySource {
    Setting,
    ControlGroup,
    Machine,
    Unknown,
}

impl fmt::Display for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setting => "--memory",
            Self::ControlGroup => "the control group",
            Self::Machine => "the machine",
            Self::Unknown => "a guess: the machine does not say",
        })
    }
}

/// The memory that a hub may use, and why.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTotal {
    bytes: u64,
    source: MemorySource,
}

impl MemoryTotal {
    /// As configured, or what the process may use here.
    pub fn find(configured: Option<MemorySize>) -> Self {
        let (bytes, source) = match configured {
            Some(MemorySize(bytes)) => (bytes, MemorySource::Setting),
            None => detect_total(Path::new("/")),
        };
        Self { bytes, source }
    }

    /// Logs the figure, once the hub has started: an error at start is one line.
    pub fn log_figure(self) {
        tracing::info!(
            megabytes = self.bytes / MIB,
            source = %self.source,
            "memory that this hub may use; --memory changes it"
        );
        if self.bytes < MemoryBounds::MIN_TOTAL {
            tracing::warn!(
                "a hub needs at least {} MB of memory; this one may be killed for want of it",
                MemoryBounds::MIN_TOTAL / MIB
            );
        }
    }

    pub fn to_bounds(self) -> MemoryBounds {
        MemoryBounds::for_total(self.bytes)
    }

    /// Max connections by default. When every one of them holds a head that never ends, they take a quarter of the memory.
    pub fn default_connections(self) -> usize {
        let each = CONNECTIONS_PART * limits::CONNECTION_BUFFER_BYTES as u64;
        let fitting = usize::try_from(self.bytes / each).unwrap_or(usize::MAX);
        fitting.clamp(MIN_CONNECTIONS, limits::CONNECTIONS_DEFAULT)
    }
}

/// The least of the memory of the machine and the limits of the control groups that this process is in.
fn detect_total(root: &Path) -> (u64, MemorySource) {
    let group_limit = read_group_limit(root).map(|total| (total, MemorySource::ControlGroup));
    let machine = read_machine_total(root).map(|total| (total, MemorySource::Machine));
    group_limit
        .into_iter()
        .chain(machine)
        .min_by_key(|(total, _)| *total)
        .unwrap_or((UNKNOWN_TOTAL, MemorySource::Unknown))
}

/// `MemTotal` of `/proc/meminfo`.
fn read_machine_total(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The least limit of the process's own control group and of those around it, in version 2 or 1.
fn read_group_limit(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let group = fields.next()?.trim_start_matches('/');
        if controllers.is_empty() {
            let mount = root.join("sys/fs/cgroup");
            least_limit(&mount, group, "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            let mount = root.join("sys/fs/cgroup/memory");
            least_limit(&mount, group, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    limits.min()
}

/// The least number in the files of this name, from the group up to the mount. A container may not see its own group by the
/// path that the system gives it; then only the mount is read, which is the container's group.
fn least_limit(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let mut folder: PathBuf = mount.join(group);
    let mut least = None;
    loop {
        let limit = std::fs::read_to_string(folder.join(file))
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
            .filter(|limit| *limit < UNLIMITED_FROM);
        least = least.into_iter().chain(limit).min();
        if folder == mount || !folder.pop() {
            return least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file tree as a machine shows it.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:     8388608 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_least_limit_around_the_process_counts() {
        let two = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "268435456\n"),
            ("sys/fs/cgroup/memory.max", "1073741824\n"),
        ]);
        let group = MemorySource::ControlGroup;
        assert_eq!(detect_total(two.path()), (256 * MIB, group));
        let one = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "4:cpu,memory:/job\n1:cpuset:/\n0::/\n"),
            (
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "134217728\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        assert_eq!(detect_total(one.path()), (128 * MIB, group));
        // A container that is told the path of its group outside.
        let container = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/system.slice/docker-1.scope\n"),
            ("sys/fs/cgroup/memory.max", "536870912\n"),
        ]);
        assert_eq!(detect_total(container.path()), (512 * MIB, group));
    }

    #[test]
    fn a_process_without_a_limit_has_the_memory_of_the_machine() {
        let free = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ]);
        let whole = (8 * 1024 * MIB, MemorySource::Machine);
        assert_eq!(detect_total(free.path()), whole);
        let unknown = (UNKNOWN_TOTAL, MemorySource::Unknown);
        assert_eq!(detect_total(machine(&[]).path()), unknown);
    }

    //
    #[test]
    fn connections_follow_from_the_memory() {
        let default = |size: &str| MemoryTotal::find(size.parse().ok()).default_connections();
        assert_eq!(default("64M"), 512);
        assert_eq!(default("256M"), 2_048);
        assert_eq!(default("8G"), limits::CONNECTIONS_DEFAULT);
        assert_eq!(default("64G"), limits::CONNECTIONS_DEFAULT);
        let tiny = MemoryTotal {
            bytes: MIB,
            source: MemorySource::ControlGroup,
        };
        assert_eq!(tiny.default_connections(), MIN_CONNECTIONS);
    }

    #[test]
    fn a_memory_size_has_a_number_and_a_unit() {
        for (text, bytes) in [
            ("256M", 256 * MIB),
            ("256MiB", 256 * MIB),
            ("2G", 2048 * MIB),
            ("64m", 64 * MIB),
        ] {
            assert_eq!(text.parse(), Ok(MemorySize(bytes)), "{text}");
        }
        for bad in ["", "256", "M", "63M", "1.5G", "-1G", "99999999999999G"] {
            assert!(bad.parse::<MemorySize>().is_err(), "{bad}");
        }
    }
}
