//! Examples of the commands, which their help shows. A test parses each.

/// What the help of one command shows.
pub struct CommandExamples {
    /// The words after `chorus`.
    pub command: &'static str,
    pub lines: &'static [&'static str],
}

const fn examples(command: &'static str, lines: &'static [&'static str]) -> CommandExamples {
    CommandExamples { command, lines }
}

pub const COMMAND_EXAMPLES: &[CommandExamples] = &[
    examples(
        "serve",
        &[
            "chorus serve",
            "chorus serve --listen 3001 --data-dir /var/lib/chorus",
            "CHORUS_OPERATOR_KEYS=… chorus serve --public-url https://hub.example",
            "chorus serve --tls-acme hub.example",
        ],
    ),
    examples("demo", &["chorus demo"]),
    examples(
        "register",
        &[
            "chorus register                                  # asks for what it needs to know",
            "chorus register alice --hub http://127.0.0.1:3000 --culture en",
        ],
    ),
    examples(
        "whoami",
        &[
            "chorus whoami",
            "chorus whoami --show-key                         # for the console",
        ],
    ),
    examples("doctor", &["chorus doctor", "chorus doctor --json"]),
    examples(
        "console",
        &[
            "chorus console                                   # signed in as you",
            "chorus console --print                           # for a browser on another machine",
            "chorus console --operator-key KEY                # as the hub's operator",
        ],
    ),
    examples(
        "new",
        &["chorus new python weather", "chorus new typescript weather"],
    ),
    examples("discover", &["chorus discover --online"]),
    examples(
        "send",
        &[
            "chorus send bob \"Shall we meet on Thursday?\"",
            "chorus send bob --wait answer --timeout 10m \"Shall we?\"",
            "git diff | chorus send bob -",
        ],
    ),
    examples(
        "listen",
        &[
            "chorus listen",
            "chorus listen --once --messages",
            "chorus listen --exec './answer.sh'",
        ],
    ),
    examples(
        "history",
        &[
            "chorus history bob",
            "chorus history --remote --since 2026-03-22T04:30:00Z",
        ],
    ),
    examples(
        "reply",
        &["chorus reply 01a1df4b-a2e7-7f7c-8a70-620000000003 ok"],
    ),
    examples(
        "status",
        &[
            "chorus status bob                                # your last message to bob",
            "chorus status 01a1df4b-a2e7-7f7c-8a70-620000000003",
        ],
    ),
    examples("usage", &["chorus usage"]),
    examples("invite", &["chorus invite"]),
    examples(
        "block",
        &[
            "chorus block mallory",
            "chorus block @spam.example                       # every agent under a host",
        ],
    ),
    examples("unblock", &["chorus unblock mallory"]),
    examples(
        "contacts",
        &["chorus contacts --add bob --accept-from contacts"],
    ),
    examples(
        "keys",
        &[
            "chorus keys list",
            "chorus keys create ci --scope send --expires 30d",
        ],
    ),
    examples("keys list", &["chorus keys list"]),
    examples(
        "keys create",
        &["chorus keys create ci --scope read --scope send --expires 30d"],
    ),
    examples("keys revoke", &["chorus keys revoke k_12"]),
    examples("keys rotate", &["chorus keys rotate --overlap 1h"]),
    examples("unregister", &["chorus unregister --yes"]),
    examples(
        "watch",
        &[
            "chorus watch",
            "chorus watch --kind agent_broadcast --since 0",
        ],
    ),
    examples(
        "advise",
        &["chorus advise \"moving the token check\" --file src/auth.rs"],
    ),
    examples(
        "broadcast",
        &["chorus broadcast \"auth is merged\" --event merged --ref main"],
    ),
    examples(
        "handover",
        &[
            "chorus handover notes.md --ref src/auth.rs",
            "chorus handover --list",
            "chorus handover --take",
        ],
    ),
    examples(
        "lock",
        &[
            "chorus lock src/auth.rs --ttl 1h --intent \"moving the token check\"",
            "chorus lock migrations --wait -- make migrate",
            "chorus lock src/auth.rs --release",
        ],
    ),
    examples(
        "locks",
        &["chorus locks", "chorus locks --check src/auth.rs"],
    ),
    examples(
        "ask",
        &["chorus ask \"does any session use the old format?\" --window 30s"],
    ),
    examples(
        "answer",
        &["chorus answer 6f9619ff-8b86-4011-b42d-00c04fc964ff \"yes, the importer\""],
    ),
    examples("decide", &["chorus decide", "chorus decide --choose 1"]),
    examples(
        "diagnose",
        &["chorus diagnose \"the tests hang\" --severity blocked --window 1m"],
    ),
    examples(
        "intent",
        &["chorus intent declare build:docs docs-change-1"],
    ),
    examples(
        "intent declare",
        &["chorus intent declare build:docs docs-change-1 --ttl 10m"],
    ),
    examples(
        "intent withdraw",
        &["chorus intent withdraw build:docs 6f9619ff-8b86-4011-b42d-00c04fc964ff"],
    ),
    examples(
        "intent flush",
        &["chorus intent flush build:docs build-17 --ref docs-change-1"],
    ),
    examples(
        "frame",
        &["chorus frame agent_binding_moment moment.json --wait 30m"],
    ),
    examples("roster", &["chorus roster", "chorus roster bob"]),
    examples(
        "org",
        &[
            "chorus org create acme",
            "chorus org invite acme bob --role reviewer",
            "chorus org list",
        ],
    ),
    examples("org create", &["chorus org create acme"]),
    examples("org list", &["chorus org list"]),
    examples("org list-members", &["chorus org list-members acme"]),
    examples(
        "org invite",
        &["chorus org invite acme bob --role reviewer"],
    ),
    examples("org accept", &["chorus org accept acme"]),
    examples("org leave", &["chorus org leave acme"]),
    examples("org remove", &["chorus org remove acme bob"]),
    examples("grant", &["chorus grant add bob", "chorus grant list"]),
    examples("grant add", &["chorus grant add bob"]),
    examples("grant remove", &["chorus grant remove bob"]),
    examples("grant list", &["chorus grant list"]),
    examples(
        "accord",
        &["chorus accord propose acme initech review --reaches reviewer"],
    ),
    examples(
        "accord propose",
        &["chorus accord propose acme initech review --reaches reviewer"],
    ),
    examples("accord accept", &["chorus accord accept initech ac_1"]),
    examples("accord revoke", &["chorus accord revoke acme ac_1"]),
    examples("accord list", &["chorus accord list acme"]),
    examples(
        "channel",
        &[
            "chorus channel create ops --context \"Where the team coordinates.\"",
            "chorus channel add ops bob",
            "chorus channel post ops \"@bob please look\"",
            "chorus channel tail ops",
        ],
    ),
    examples(
        "channel create",
        &["chorus channel create ops --context \"Where the team coordinates.\""],
    ),
    examples("channel list", &["chorus channel list"]),
    examples("channel accept", &["chorus channel accept ops"]),
    examples("channel decline", &["chorus channel decline ops"]),
    examples("channel show", &["chorus channel show ops"]),
    examples("channel rename", &["chorus channel rename ops operations"]),
    examples("channel delete", &["chorus channel delete ops --yes"]),
    examples(
        "channel add",
        &[
            "chorus channel add ops bob",
            "pbpaste | chorus channel add ops - --name timber --mentions",
        ],
    ),
    examples("channel remove", &["chorus channel remove ops bob"]),
    examples(
        "channel deliver",
        &["chorus channel deliver ops bob mentions"],
    ),
    examples("channel callback", &["chorus channel callback ops bob"]),
    examples(
        "channel post",
        &[
            "chorus channel post ops \"@bob please look\"",
            "make 2>&1 | chorus channel post ops -",
        ],
    ),
    examples("channel tail", &["chorus channel tail ops --since 0"]),
    examples(
        "channel history",
        &["chorus channel history ops --limit 20"],
    ),
    examples(
        "channel artifacts",
        &[
            "chorus channel artifacts ops",
            "chorus channel artifacts ops plan --at 2",
        ],
    ),
    examples(
        "channel write",
        &[
            "chorus channel write ops plan plan.md --title Plan",
            "chorus channel write ops plan plan.md --from 1",
        ],
    ),
    examples(
        "channel file",
        &["chorus channel file ops chart.png --output chart.png"],
    ),
    examples(
        "connection",
        &["chorus connection", "chorus connection --rotate"],
    ),
    examples("endpoint-secret", &["chorus endpoint-secret"]),
    examples(
        "say",
        &[
            "chorus say \"3°C and cloudy.\"",
            "chorus say --channel ops --status \"reading the log\"",
        ],
    ),
    examples("pipeline", &["chorus pipeline steps.json"]),
    examples("balance", &["chorus balance"]),
    examples("transfer", &["chorus transfer bob 1.50"]),
    examples("ledger", &["chorus ledger --limit 10"]),
    examples(
        "init",
        &[
            "chorus init --target claude-user",
            "chorus init --target codex --wake",
        ],
    ),
    examples("uninstall", &["chorus uninstall --target claude-user"]),
    examples("confirm", &["chorus confirm", "chorus confirm --remove"]),
    examples(
        "verify",
        &[
            "chorus verify --target claude-user",
            "chorus verify --envelope envelope.json",
        ],
    ),
    examples("mcp", &["chorus mcp"]),
    examples("hook", &["chorus hook SessionStart --instrument cc-claude"]),
    examples("wake", &["chorus wake --exec './wake-my-agent.sh'"]),
    examples(
        "admin",
        &[
            "chorus admin backup --data-dir chorus-data /backups/monday",
            "CHORUS_OPERATOR_KEY=… chorus admin invites create --label friends --max-uses 5",
        ],
    ),
    examples(
        "admin backup",
        &[
            "chorus admin backup --data-dir chorus-data /backups/monday",
            "chorus admin backup --every 1h --keep 48 /backups",
        ],
    ),
    examples(
        "admin copy",
        &["chorus admin copy --data-dir chorus-data --database postgres://hub@db.example/chorus"],
    ),
    examples(
        "admin restored",
        &["chorus admin restored --data-dir chorus-data"],
    ),
    examples(
        "admin forget-seal-key",
        &["chorus admin forget-seal-key --data-dir chorus-data"],
    ),
    examples(
        "admin ready",
        &["chorus admin ready --hub http://127.0.0.1:3000"],
    ),
    examples(
        "admin invites",
        &[
            "chorus admin invites create --label friends --max-uses 5",
            "chorus admin invites list",
        ],
    ),
    examples(
        "admin invites create",
        &["chorus admin invites create --label friends --max-uses 5"],
    ),
    examples("admin invites list", &["chorus admin invites list"]),
    examples(
        "admin invites revoke",
        &["chorus admin invites revoke inv_1"],
    ),
    examples("admin invites open", &["chorus admin invites open"]),
    examples(
        "admin credit",
        &["chorus admin credit bob@chorus 50 --reason \"for the workshop\""],
    ),
    examples("admin jobs", &["chorus admin jobs --status pending"]),
    examples("admin activity", &["chorus admin activity --follow"]),
    examples(
        "completions",
        &[
            "chorus completions zsh > ~/.zfunc/_chorus",
            "chorus completions bash > /etc/bash_completion.d/chorus",
        ],
    ),
    examples(
        "man",
        &[
            "chorus man > chorus.1",
            "chorus man /usr/local/share/man/man1",
        ],
    ),
    examples("openapi", &["chorus openapi > openapi.json"]),
    examples("schema", &["chorus schema envelope"]),
];
