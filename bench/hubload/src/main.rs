//! hubload: load generator for messaging hubs (HTTP POST in, Server-Sent Events out). See README.md.
mod bare_server;
mod command_options;
mod load_loop;
mod measurements;
mod replay;
mod syscalls;
mod template;
mod wire_format;

use command_options::CommandOptions;
use load_loop::{DRAIN, LoadLoop, LoadState, PubPlan, QUIT, RUN, SubPlan};
use measurements::{
    monotonic_nanos, read_available_kb, read_machine_cpu, read_own_cpu, read_usage,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;
use template::{BenchAgent, MessageParties};
use wire_format::{LoadTarget, find_json_text, read_keys};

pub fn exit_with_error(why: &str) -> ! {
    eprintln!("hubload: {why}");
    std::process::exit(2);
}

fn main() {
    let mut words = std::env::args().skip(1);
    let cmd = words.next().unwrap_or_default();
    let a = CommandOptions::parse(words);
    syscalls::raise_file_limit();
    match cmd.as_str() {
        "fanout" | "p2p" | "post" | "idle" => run_scenario(&cmd, &a),
        "replay" => replay::run_replay(&a),
        "setup" => register_agents(&a),
        "serve" => bare_server::run_bare_server(parse_server_options(&a)),
        "ceiling" => run_ceiling(&a),
        _ => exit_with_error(
            "usage: hubload fanout|p2p|post|idle|replay|setup|serve|ceiling [--option value]... [@file] (see README.md)",
        ),
    }
}

struct ScenarioPlan {
    subs: Vec<SubPlan>,
    pubs: Vec<PubPlan>,
    broadcast: bool,
    publishers: usize,
}

/// The URL of a stream. The last one given wins, but streams of a fan-out take turns: one URL for each hub.
fn subscribe_url<'a>(cmd: &str, a: &'a CommandOptions, stream: usize) -> &'a str {
    let urls = a.all("sub-url");
    match cmd {
        "fanout" if !urls.is_empty() => urls[stream % urls.len()],
        _ => a.need("sub-url"),
    }
}

fn plan_scenario(cmd: &str, a: &CommandOptions) -> ScenarioPlan {
    let keys = a.get("keys").map(read_keys).unwrap_or_default();
    let sub_headers = a.all("sub-header");
    let pub_headers = a.all("pub-header");
    let broadcast = cmd == "fanout" || a.get("broadcast").is_some();
    // streams, senders, connections per sender
    let (streams, publishers, depth) = match cmd {
        "fanout" => (a.num("subs", 100), a.num("pubs", 1), 1),
        "p2p" => (a.num("pairs", 50), a.num("pairs", 50), a.num("pipeline", 1)),
        "post" => (0, a.num("conns", 50), 1),
        _ => (
            a.num("subs", 1000),
            if broadcast { 1 } else { a.num("subs", 1000) },
            1,
        ),
    };
    // with a key file: pairs are agents 2i and 2i+1; otherwise stream i is agent i. Without: s0.., r0..
    let pick = |i: usize, prefix: &str| match keys.len() {
        0 => BenchAgent {
            id: format!("{prefix}{i}"),
            key: String::new(),
        },
        n => keys[i % n].clone(),
    };
    let receiver = |i: usize| {
        pick(
            if cmd == "p2p" || cmd == "post" {
                2 * i + 1
            } else {
                i
            },
            "r",
        )
    };
    let sender = |i: usize| match cmd {
        "p2p" | "post" => pick(2 * i, "s"),
        "fanout" if a.get("one-sender").is_some() => pick(streams, "s"),
        "fanout" => pick(streams + i, "s"),
        _ => pick(i + 1, "s"),
    };
    let mut s = ScenarioPlan {
        subs: vec![],
        pubs: vec![],
        broadcast,
        publishers,
    };
    for i in 0..streams {
        let t = LoadTarget::parse(subscribe_url(cmd, a, i));
        let from = sender(if broadcast { 0 } else { i });
        let to = receiver(i);
        let hello = t.subscriber_greeting(
            &sub_headers,
            &MessageParties {
                sender: &from,
                receiver: &to,
                index: i,
            },
        );
        s.subs.push(SubPlan {
            scheme: t.scheme,
            addr: t.addr,
            hello,
        });
    }
    let Some(url) = a.get("pub-url") else {
        return s;
    };
    let t = LoadTarget::parse(url);
    let body = a.get("body").unwrap_or("{{TS}}{{PAD}}");
    let request = |i: usize| {
        let from = sender(i);
        let to = receiver(i);
        (
            i as u32,
            t.request(
                &pub_headers,
                body,
                a.num("size", 512),
                &MessageParties {
                    sender: &from,
                    receiver: &to,
                    index: i,
                },
            ),
        )
    };
    // idle sends each of its messages once, over a few connections; the others repeat theirs
    let once = cmd == "idle";
    let conns = if once {
        publishers.min(32)
    } else {
        publishers * depth
    };
    for c in 0..conns {
        let requests = if once {
            (c..publishers).step_by(conns).map(request).collect()
        } else {
            vec![request(c % publishers)]
        };
        s.pubs.push(PubPlan {
            scheme: t.scheme,
            addr: t.addr,
            hello: t.publisher_greeting(c),
            requests,
            once,
        });
    }
    s
}

/// Counters and resource use at one moment.
struct UsageSnapshot {
    t: u64,
    sent: u64,
    acked: u64,
    received: u64,
    server: f64,
    own: f64,
    machine: [f64; 3],
}

fn take_snapshot(sh: &LoadState, pid: Option<i32>) -> UsageSnapshot {
    let server = read_usage(pid).cpu;
    let own = read_own_cpu();
    let machine = read_machine_cpu();
    let [sent, acked, received] = [&sh.sent, &sh.acked, &sh.received].map(|c| c.load(Relaxed));
    UsageSnapshot {
        t: monotonic_nanos(),
        sent,
        acked,
        received,
        server,
        own,
        machine,
    }
}

fn run_scenario(cmd: &str, a: &CommandOptions) {
    if a.get("cpu").is_some() {
        syscalls::pin_to_cpu(a.num("cpu", 0));
    }
    let pid = a.get("pid").map(|_| a.num("pid", 0));
    let ScenarioPlan {
        subs,
        pubs,
        broadcast,
        publishers,
    } = plan_scenario(cmd, a);
    let streams = subs.len() as u64;
    let fan = if broadcast { streams } else { streams.min(1) };
    let window = a.num("window", 0);
    let rate = a.num("rate", 0.0);
    let sh = &LoadState {
        fan,
        window,
        rate,
        paired: !broadcast,
        publishers,
        born: monotonic_nanos(),
        ..LoadState::default()
    };
    let wait = |secs: f64| sleep(Duration::from_secs_f64(secs));
    let mut out = ResultLine::new(cmd, a);
    let before = read_usage(pid);
    let mem_before = read_available_kb();
    let once = pubs
        .iter()
        .filter(|p| p.once)
        .map(|p| p.requests.len() as u64)
        .sum();
    let worker = std::thread::scope(|s| {
        let worker = s.spawn(move || LoadLoop::run(sh, subs, pubs));
        while sh.ready.load(Relaxed) < streams {
            wait(0.002);
            if monotonic_nanos() - sh.born > 120_000_000_000 {
                exit_with_error("not every stream opened within 120 s");
            }
        }
        let open_ms = (monotonic_nanos() - sh.born) as f64 / 1e6;
        wait(a.num("settle", 1.0));
        let opened = read_usage(pid);
        if streams > 0 {
            let per_stream =
                |from: u64, to: u64| (to as f64 - from as f64) * 1024.0 / streams as f64;
            out.num("open_ms", open_ms)
                .num("rss_kb_before", before.rss_kb as f64)
                .num("rss_kb_open", opened.rss_kb as f64);
            out.num(
                "rss_bytes_per_stream",
                per_stream(before.rss_kb, opened.rss_kb),
            );
            out.num(
                "pss_bytes_per_stream",
                per_stream(before.pss_kb, opened.pss_kb),
            );
            out.num(
                "machine_bytes_per_stream",
                per_stream(read_available_kb(), mem_before),
            );
        }
        if cmd == "idle" {
            let hold = a.num("hold", 5.0);
            wait(hold);
            out.num("hold_s", hold).num(
                "server_cpu_pct_idle",
                (read_usage(pid).cpu - opened.cpu) / hold * 100.0,
            );
            sh.measuring.store(true, Relaxed);
            sh.phase.store(RUN, Relaxed);
        } else {
            sh.phase.store(RUN, Relaxed);
            wait(a.num("warmup", 2.0));
            let x = take_snapshot(sh, pid);
            sh.measuring.store(true, Relaxed);
            wait(a.num("duration", 10.0));
            sh.measuring.store(false, Relaxed);
            write_rates(&mut out, &x, &take_snapshot(sh, pid), streams > 0);
        }
        await_deliveries(sh, once);
        out.num("rss_kb_after", read_usage(pid).rss_kb as f64);
        sh.phase.store(QUIT, Relaxed);
        worker.join()
    });
    let r = worker.unwrap_or_else(|_| exit_with_error("the event loop failed"));
    let [acked, received, failed, closed] =
        [&sh.acked, &sh.received, &sh.failed, &sh.closed].map(|c| c.load(Relaxed) as f64);
    out.raw("delivery_us", &r.delivery.json())
        .raw("ack_us", &r.ack.json())
        .num("acked", acked)
        .num("refused", failed);
    out.num("received", received)
        .num("lost", acked * fan as f64 - received)
        .num("reached", r.reached as f64);
    out.num("out_of_order", r.out_of_order as f64)
        .num("misrouted", r.misrouted as f64)
        .num("stale", r.stale as f64);
    println!("{}}}", out.num("streams_closed", closed).0);
}

fn write_rates(out: &mut ResultLine, x: &UsageSnapshot, y: &UsageSnapshot, streams: bool) {
    let secs = (y.t - x.t) as f64 / 1e9;
    let acked = (y.acked - x.acked) as f64;
    let received = (y.received - x.received) as f64;
    let per_million = |cpu: f64| {
        cpu * 1e6
            / if streams {
                received.max(1.0)
            } else {
                acked.max(1.0)
            }
    };
    let server = y.server - x.server;
    let own = y.own - x.own;
    let [busy, softirq, steal] = [0, 1, 2].map(|i| y.machine[i] - x.machine[i]);
    out.num("secs", secs)
        .num("sent_per_s", (y.sent - x.sent) as f64 / secs);
    out.num("acked_per_s", acked / secs)
        .num("events_per_s", received / secs);
    out.num("server_cpu_s", server)
        .num("server_cpu_s_per_million", per_million(server));
    out.num("generator_cpu_s_per_million", per_million(own))
        .num("softirq_cpu_s_per_million", per_million(softirq));
    // noise: what other processes and the host took, in percent of one processor
    out.num("other_cpu_pct", (busy - server - own) / secs * 100.0)
        .num("steal_pct", steal / secs * 100.0);
}

/// Lets what was sent arrive: until it all has, or nothing has moved for two seconds.
fn await_deliveries(sh: &LoadState, at_least: u64) {
    let mut last = (0, monotonic_nanos());
    loop {
        let [sent, acked, failed, received] =
            [&sh.sent, &sh.acked, &sh.failed, &sh.received].map(|c| c.load(Relaxed));
        if sent >= at_least {
            sh.phase.store(DRAIN, Relaxed);
            if sent == acked + failed && received >= acked * sh.fan {
                return;
            }
        }
        if acked + failed + received != last.0 {
            last = (acked + failed + received, monotonic_nanos());
        } else if monotonic_nanos() - last.1 > 2_000_000_000 {
            return;
        }
        sleep(Duration::from_millis(20));
    }
}

/// One line of JSON, built field by field.
struct ResultLine(String);

impl ResultLine {
    fn new(cmd: &str, a: &CommandOptions) -> ResultLine {
        let mut j = ResultLine(format!("{{\"scenario\":\"{cmd}\""));
        for k in [
            "label",
            "subs",
            "pubs",
            "pairs",
            "conns",
            "pipeline",
            "size",
            "window",
            "rate",
            "server-threads",
        ] {
            if let Some(v) = a.get(k) {
                let v = if v.parse::<f64>().is_ok() {
                    v.into()
                } else {
                    format!("\"{v}\"")
                };
                j.raw(k, &v);
            }
        }
        j
    }

    fn raw(&mut self, k: &str, v: &str) -> &mut ResultLine {
        self.0 += &format!(",\"{k}\":{v}");
        self
    }

    fn num(&mut self, k: &str, v: f64) -> &mut ResultLine {
        let digits = if v.abs() >= 100.0 || v == v.trunc() {
            0
        } else {
            3
        };
        self.raw(k, &format!("{v:.digits$}"))
    }
}

/// Registers agents on a Chorus-style hub and writes the key file.
fn register_agents(a: &CommandOptions) {
    let t = LoadTarget::parse(a.need("url"));
    let template = a
        .get("body")
        .unwrap_or(r#"{"agent_id":"{{SENDER}}","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}}"#);
    let headers = [vec!["Content-Type: application/json"], a.all("header")].concat();
    let mut conn =
        TcpStream::connect(t.addr).unwrap_or_else(|e| exit_with_error(&format!("{}: {e}", t.addr)));
    let _ = conn.set_nodelay(true);
    let mut out = Vec::new();
    let mut scratch = Vec::new();
    let mut keys = Vec::new();
    for i in 0..a.num("count", 100) {
        let id = a
            .get("id")
            .unwrap_or("a{{I}}@bench")
            .replace("{{I}}", &i.to_string());
        let me = BenchAgent {
            id: id.clone(),
            key: String::new(),
        };
        let mut m = template::MessageStamp {
            ts: 0,
            publisher: 0,
            seq: i,
            rng: monotonic_nanos() | 1,
        };
        let who = MessageParties {
            sender: &me,
            receiver: &me,
            index: i as usize,
        };
        t.request(&headers, template, 0, &who)
            .render(&mut out, &mut scratch, &mut m);
        conn.write_all(&out)
            .unwrap_or_else(|e| exit_with_error(&e.to_string()));
        let mut got = Vec::new();
        let mut buf = [0u8; 4096];
        while wire_format::parse_ack(t.scheme, &got).is_none() {
            match conn.read(&mut buf) {
                Ok(n) if n > 0 => got.extend_from_slice(&buf[..n]),
                other => exit_with_error(&format!("register {id}: {other:?}")),
            }
        }
        let text = String::from_utf8_lossy(&got);
        let key = find_json_text(&text, a.get("key-field").unwrap_or("api_key"))
            .unwrap_or_else(|| exit_with_error(&format!("register {id}: {text}")));
        keys.push(format!("{{\"id\":\"{id}\",\"key\":\"{key}\"}}"));
    }
    std::fs::write(a.need("keys"), format!("[{}]\n", keys.join(",\n")))
        .unwrap_or_else(|e| exit_with_error(&e.to_string()));
    println!("{{\"scenario\":\"setup\",\"registered\":{}}}", keys.len());
}

fn parse_server_options(a: &CommandOptions) -> bare_server::BareServerOptions {
    bare_server::BareServerOptions {
        listen: a
            .get("listen")
            .unwrap_or("127.0.0.1:9099")
            .parse()
            .unwrap_or_else(|_| exit_with_error("--listen IP:PORT")),
        threads: a.num("server-threads", 1),
        log: a.get("log").map(String::from),
        fsync: a.get("fsync").is_some(),
        coalesce: a.get("coalesce").is_some(),
    }
}

/// Forks the raw server and runs a scenario (--as, fanout unless told) against it.
fn run_ceiling(a: &CommandOptions) {
    let o = parse_server_options(a);
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if a.get("server-cpu").is_some() {
            syscalls::pin_to_cpu(a.num("server-cpu", 0));
        }
        bare_server::run_bare_server(o);
        std::process::exit(0);
    }
    sleep(Duration::from_millis(200));
    let cmd = a.get("as").unwrap_or("fanout");
    let base = format!("http://{}", o.listen);
    let to = if cmd == "fanout" || a.get("broadcast").is_some() {
        "all"
    } else {
        "{{RECEIVER}}"
    };
    let mut a = a.clone();
    for (k, v) in [
        ("sub-url", format!("{base}/sub/{{{{RECEIVER}}}}")),
        ("pub-url", format!("{base}/pub/{to}")),
        ("pid", child.to_string()),
    ] {
        a.0.push((k.into(), v));
    }
    run_scenario(cmd, &a);
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}
