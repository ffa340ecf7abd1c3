//! Screens against those of stock perftest 6.06, 6.20 and 6.29, each in its style,
//! for all recorded runs of the commands that can be repeated here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::screen::masked;
use crate::support::{Running, TOOLS, Turn, start_pair_at};

/// A recorded pair that ended well at both ends.
struct Recorded {
    name: String,
    tool: String,
    /// Arguments without device and host: server, client.
    lines: [String; 2],
    /// Standard output: server, client.
    screens: [String; 2],
    /// When the client was interrupted.
    interrupted: Option<Duration>,
}

fn golden(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join(folder);
    if !folder.is_dir() {
        eprintln!("skipped: no golden data in {}", folder.display());
        return None;
    }
    Some(folder)
}

/// What ours does otherwise than stock, on purpose: the end of a case's name,
/// and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "ib_atomic_bw/infinite",
        "stock's server shows a row of zeros, ours that the client closed the connection",
    ),
    ("/s4k", "stock takes 4k for 4, ours refuses it"),
];

/// Tool and arguments of a recorded command, fit for `lo`: with its device and
/// without host, with the GID index that has the address there. `None` when
/// stock's program isn't one of ours.
fn fit(command: &str) -> Option<(String, String)> {
    let mut words = command.split_whitespace();
    let tool = words.next()?.to_owned();
    if !TOOLS.contains(&tool.as_str()) {
        return None;
    }
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-d" => {
                words.next()?;
                kept.extend(["-d", "urxe_lo"]);
            }
            "-x" => {
                words.next()?;
                kept.extend(["-x", "0"]);
            }
            // 10.0.0.1, fd00::1: the host.
            host if host.contains('.') && !host.starts_with('-') && !host.starts_with("0.") => {}
            host if host.contains("::") => {}
            // Files have a test of their own.
            file if file.starts_with("--out_json") => {}
            word => kept.push(word),
        }
    }
    if !kept.contains(&"-d") {
        kept.extend(["-d", "urxe_lo"]);
    }
    Some((tool, kept.join(" ")))
}

/// Whether all options can be repeated here.
fn is_supported(line: &str) -> bool {
    const NOT_YET: &[&str] = &[
        "-R",
        "-z",
        "-O",
        "-W",
        "--payload_file_path=payload.txt",
        "--use_hugepages",
        "--mmap",
        "--odp",
        "--use-null-mr",
        // Two processes can't both have ::1.
        "--ipv6",
    ];
    !line.split(' ').any(|word| NOT_YET.contains(&word))
}

/// The runs of `output-6.29`: `TOOL.CASE.server.txt` and `.client.txt`.
fn lab_runs(folder: &Path) -> Vec<Recorded> {
    let index = fs::read_to_string(folder.join("index.tsv")).unwrap();
    let mut runs = Vec::new();
    for line in index.lines() {
        let Some(name) = line
            .split('\t')
            .next()
            .and_then(|file| file.strip_suffix(".server.txt"))
        else {
            continue;
        };
        let end = |side: &str| {
            let file = format!("{name}.{side}.txt");
            let row = index.lines().find(|row| row.starts_with(&file))?;
            let mut fields = row.split('\t').skip(1);
            let (command, code) = (fields.next()?, fields.next()?);
            let text = fs::read_to_string(folder.join(&file)).ok()?;
            let screen = text.split_once('\n')?.1;
            let screen = screen.split("[stderr]\n").next()?.to_owned();
            (code == "0").then_some((fit(command)?, screen))
        };
        if let (Some(server), Some(client)) = (end("server"), end("client")) {
            push(&mut runs, name, server, client, None);
        }
    }
    runs
}

/// The runs of `stock/6.29-6.29`: folders `TOOL/CASE`.
fn stock_runs(folder: &Path) -> Vec<Recorded> {
    let mut runs = Vec::new();
    for tool in TOOLS {
        let Ok(cases) = fs::read_dir(folder.join(tool)) else {
            continue;
        };
        let mut cases: Vec<PathBuf> = cases.map(|case| case.unwrap().path()).collect();
        cases.sort();
        for case in cases {
            let read = |file: &str| fs::read_to_string(case.join(file)).unwrap_or_default();
            let commands = read("cmd.txt");
            // Not the same device as ours: other defaults.
            if read("exit.txt").trim() != "0 0"
                || commands.contains("PART=")
                || commands.contains("IWARP=")
                || commands.contains("standin-server:")
            {
                continue;
            }
            let command = |side: &str| {
                let line = commands.lines().find_map(|line| line.strip_prefix(side))?;
                fit(line)
            };
            if let (Some(server), Some(client)) = (command("server: "), command("client: ")) {
                let name = case.strip_prefix(folder).unwrap().display().to_string();
                let screens = [read("server.out"), read("client.out")];
                let [server_screen, client_screen] = screens;
                let interrupted = commands.lines().find_map(|line| {
                    let seconds = line.strip_prefix("note: SIGINT to client after ")?;
                    let seconds = seconds.strip_suffix(" s")?.parse().ok()?;
                    Some(Duration::from_secs_f64(seconds))
                });
                push(
                    &mut runs,
                    &name,
                    (server, server_screen),
                    (client, client_screen),
                    interrupted,
                );
            }
        }
    }
    runs
}

type End = ((String, String), String);

fn push(
    runs: &mut Vec<Recorded>,
    name: &str,
    server: End,
    client: End,
    interrupted: Option<Duration>,
) {
    let ((tool, server_line), server_screen) = server;
    let ((client_tool, client_line), client_screen) = client;
    if tool != client_tool || !is_supported(&server_line) || !is_supported(&client_line) {
        eprintln!("skipped: {name} (not possible here yet)");
        return;
    }
    if let Some((_, why)) = DIFFERENT.iter().find(|(end, _)| name.ends_with(end)) {
        eprintln!("skipped: {name} ({why})");
        return;
    }
    runs.push(Recorded {
        name: name.to_owned(),
        tool,
        lines: [server_line, client_line],
        screens: [server_screen, client_screen],
        interrupted,
    });
}

/// What older versions took, and what the recorded device could.
fn otherwise_here(stderr: &str) -> Option<&'static str> {
    [
        (" Duplicated argument: ", "refused since 6.12"),
        ("Failed to negotiate parameters", "refused since 6.28"),
        (" Specified PKey Index, ", "that device has more keys"),
    ]
    .into_iter()
    .find_map(|(text, why)| stderr.contains(text).then_some(why))
}

/// Runs what was recorded and compares the screens of both ends.
fn repeat(run: &Recorded, style: &str) -> Result<(), String> {
    let tool = run.tool.as_str();
    let [server, client] = &run
        .lines
        .each_ref()
        .map(|line| format!("{line} --output_style={style}"));
    let host = match client.contains("--ipv6-addr") {
        true => "::1",
        false => "127.0.0.1",
    };
    let ended = {
        let _turn = Turn::take();
        let [server, client] = start_pair_at([tool; 2], [server, client], host);
        if let Some(after) = run.interrupted {
            std::thread::sleep(after);
            client.signal(Signal::SIGINT);
        }
        [server, client].map(Running::wait)
    };
    if let Some(why) = ended
        .iter()
        .filter(|_| style != "6.29")
        .find_map(|ended| otherwise_here(&ended.err))
    {
        eprintln!("skipped: {} ({why})", run.name);
        return Ok(());
    }
    for (ended, screen) in ended.iter().zip(&run.screens) {
        if ended.code != Some(0) {
            return Err(format!("{}: {ended:#?}", run.name));
        }
        let timed = client.split(' ').any(|word| word == "-D");
        let (ours, theirs) = (masked(&ended.out, timed), masked(screen, timed));
        if ours != theirs {
            return Err(format!(
                "{} ({client}):\nours {ours:#?}\nstock {theirs:#?}",
                run.name
            ));
        }
    }
    Ok(())
}

fn repeat_all(runs: &[Recorded], style: &str) {
    let failed: Vec<String> = runs
        .iter()
        .filter_map(|run| repeat(run, style).err())
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn lab(folder: &str, style: &str) {
    if let Some(folder) = golden(folder) {
        let runs = lab_runs(&folder);
        assert!(!runs.is_empty(), "nothing recorded in {}", folder.display());
        repeat_all(&runs, style);
    }
}

fn stock(version: &str) {
    if let Some(folder) = golden(&format!("stock/{version}-{version}")) {
        let runs = stock_runs(&folder);
        assert!(!runs.is_empty(), "nothing recorded in {}", folder.display());
        repeat_all(&runs, version);
    }
}

#[test]
fn golden_screens_of_the_lab() {
    lab("output-6.29", "6.29");
}

#[test]
fn golden_screens_of_the_lab_in_the_style_of_6_06() {
    lab("output", "6.06");
}

#[test]
fn golden_screens_of_stock_on_loopback() {
    stock("6.29");
}

#[test]
fn golden_screens_of_stock_on_loopback_in_the_style_of_6_20() {
    stock("6.20");
}

#[test]
fn golden_screens_of_stock_on_loopback_in_the_style_of_6_06() {
    stock("6.06");
}
