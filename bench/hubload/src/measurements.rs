//! Clock, latency histogram, and what /proc says about the server under test.
use std::fs;

pub fn read_clock(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

pub fn monotonic_nanos() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Log-linear histogram of nanoseconds: 32 steps per power of two (3 % resolution).
pub struct LatencyHistogram {
    buckets: Vec<u64>,
    n: u64,
    max: u64,
}

impl LatencyHistogram {
    pub fn new() -> LatencyHistogram {
        LatencyHistogram {
            buckets: vec![0; 1920],
            n: 0,
            max: 0,
        }
    }

    pub fn record(&mut self, v: u64) {
        let i = if v < 32 {
            v as usize
        } else {
            let e = 63 - v.leading_zeros() as usize;
            (e - 4) * 32 + ((v >> (e - 5)) & 31) as usize
        };
        self.buckets[i] += 1;
        self.n += 1;
        self.max = self.max.max(v);
    }

    /// The q-quantile in microseconds.
    pub fn quantile_micros(&self, q: f64) -> f64 {
        let want = (self.n as f64 * q).ceil() as u64;
        let mut seen = 0;
        for (i, c) in self.buckets.iter().enumerate() {
            seen += c;
            if *c > 0 && seen >= want {
                let e = i / 32 + 4;
                let sub = i % 32;
                let v = if i < 32 {
                    i as f64
                } else {
                    (32 + sub) as f64 * 2f64.powi(e as i32 - 5) + 2f64.powi(e as i32 - 6)
                };
                return v.min(self.max as f64) / 1e3;
            }
        }
        0.0
    }

    pub fn json(&self) -> String {
        format!(
            "{{\"p50\":{:.0},\"p99\":{:.0},\"p999\":{:.0},\"max\":{:.0}}}",
            self.quantile_micros(0.5),
            self.quantile_micros(0.99),
            self.quantile_micros(0.999),
            self.max as f64 / 1e3
        )
    }
}

/// CPU seconds and memory of a process and all its living descendants.
#[derive(Clone, Copy, Default)]
pub struct ProcessUsage {
    pub cpu: f64,
    pub rss_kb: u64,
    pub pss_kb: u64,
}

pub fn read_usage(pid: Option<i32>) -> ProcessUsage {
    let Some(root) = pid else {
        return ProcessUsage::default();
    };
    // (pid, ppid, utime + stime) of every process
    let mut all = Vec::new();
    for e in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(p) = e.file_name().to_str().and_then(|s| s.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{p}/stat")) else {
            continue;
        };
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let f: Vec<&str> = rest.split(' ').collect();
        let num = |i: usize| f[i].parse::<u64>().unwrap_or(0);
        all.push((p, num(1) as i32, num(11) + num(12)));
    }
    let mut tree = vec![root];
    let mut i = 0;
    while i < tree.len() {
        let parent = tree[i];
        tree.extend(all.iter().filter(|x| x.1 == parent).map(|x| x.0));
        i += 1;
    }
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let mut u = ProcessUsage::default();
    for &(p, _, ticks) in all.iter().filter(|x| tree.contains(&x.0)) {
        u.cpu += ticks as f64 / hz;
        u.rss_kb += read_kb_field(&format!("/proc/{p}/status"), "VmRSS:");
        u.pss_kb += read_kb_field(&format!("/proc/{p}/smaps_rollup"), "Pss:");
    }
    u
}

fn read_kb_field(path: &str, name: &str) -> u64 {
    let s = fs::read_to_string(path).unwrap_or_default();
    let v = s
        .lines()
        .find_map(|l| l.strip_prefix(name))
        .and_then(|v| v.split_whitespace().next());
    v.and_then(|v| v.parse().ok()).unwrap_or(0)
}

pub fn read_available_kb() -> u64 {
    read_kb_field("/proc/meminfo", "MemAvailable:")
}

/// CPU seconds (user + system) of the generator itself.
pub fn read_own_cpu() -> f64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID) as f64 / 1e9
}

/// CPU seconds of the whole machine: (busy, of which softirq, stolen by the host).
pub fn read_machine_cpu() -> [f64; 3] {
    let s = fs::read_to_string("/proc/stat").unwrap_or_default();
    let v: Vec<f64> = s
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(1)
        .filter_map(|x| x.parse().ok())
        .collect();
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let at = |i: usize| v.get(i).copied().unwrap_or(0.0) / hz;
    [at(0) + at(1) + at(2) + at(5) + at(6), at(6), at(7)]
}
