//! A server of parts goes away, with or without coming back, or does not know the run.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Divided, Run, numbers};
use crate::common::{fail, path, succeed};
use crate::metrics::free;
use crate::serve::Serving;

/// Serves part 1 there.
fn serve(divided: &Divided, address: SocketAddr, more: &[&str]) -> Serving {
    let listen = address.to_string();
    let args = [path(&divided.parts), "--part", "1", "--listen", &listen];
    Serving::start(&[&args[..], more].concat()).0
}

#[test]
fn a_server_killed_and_restarted_changes_no_number() {
    killed_and_restarted(&Divided::new("epochs = 50\nworkers = 2\ndeadline_seconds = 60"));
}

#[test]
fn a_server_of_typed_parts_killed_and_restarted_changes_no_number() {
    killed_and_restarted(&Divided::typed("epochs = 50\nworkers = 2\ndeadline_seconds = 60"));
}

#[test]
fn a_server_of_target_edges_killed_and_restarted_changes_no_number() {
    let train = "epochs = 40\nworkers = 2\ndeadline_seconds = 60";
    killed_and_restarted(&Divided::links(
        train,
        &["--layout", "vertex-cut", "--algorithm", "adadne"],
    ));
}

fn killed_and_restarted(divided: &Divided) {
    let [address, _] = free();
    let mut server = serve(divided, address, &[]);
    let servers = format!("[\"http://{address}\"]");
    let args = divided.args(&divided.only(0), &servers, &["sample.method=exact"]);
    let undisturbed = numbers(&Run::start(divided, &args).result());

    let restart = [&args[..], &["--restart".into()]].concat();
    std::fs::remove_dir_all(&divided.bench.run).unwrap();
    let mut run = Run::start(divided, &restart);
    for away in [0, 30, 300, 1500] {
        run.trains(3);
        // Dropped, it is killed as by `kill -9`.
        drop(server);
        std::thread::sleep(Duration::from_millis(away));
        server = serve(divided, address, &[]);
    }
    run.trains(3);
    assert_eq!(numbers(&run.result()), undisturbed);
}

#[test]
fn a_server_that_stays_away_is_named_by_the_deadline_and_the_run_goes_on_later() {
    let divided = Divided::new("epochs = 30\nworkers = 2\ndeadline_seconds = 2");
    let [address, _] = free();
    let server = serve(&divided, address, &[]);
    let servers = format!("[\"http://{address}\"]");
    let args = divided.args(&divided.only(0), &servers, &[]);
    let with = |how: &str| [&args[..], &[how.to_string()]].concat();
    let undisturbed = numbers(&Run::start(&divided, &args).result());

    std::fs::remove_dir_all(&divided.bench.run).unwrap();
    let mut run = Run::start(&divided, &with("--restart"));
    run.trains(3);
    drop(server);
    let start = Instant::now();
    let output = run.end();
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains(&format!("no reply from http://{address} within 2 s")), "{err}");

    let _server = serve(&divided, address, &[]);
    assert_eq!(numbers(&Run::start(&divided, &with("--resume")).result()), undisturbed);
}

#[test]
fn a_wrong_token_is_told_before_anything_is_written() {
    told_of_wrong_tokens(&Divided::new("epochs = 2"));
}

#[test]
fn a_wrong_token_for_typed_parts_is_told() {
    told_of_wrong_tokens(&Divided::typed("epochs = 2"));
}

#[test]
fn a_wrong_token_for_target_edges_is_told() {
    told_of_wrong_tokens(&Divided::links("epochs = 2", &["--algorithm", "spring"]));
}

fn told_of_wrong_tokens(divided: &Divided) {
    let token = |name: &str, text: &str| {
        let file = divided.bench.dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let (right, wrong) = (token("right", "0123abcd"), token("wrong", "0123abce"));
    let [address, _] = free();
    let _server = serve(divided, address, &["--token-file", path(&right)]);
    let (mine, servers) = (divided.only(0), format!("[\"http://{address}\"]"));
    let args = |file: Option<&Path>| {
        let set = file.map(|file| format!("partition.token_file={}", path(file)));
        let sets: Vec<&str> = set.iter().map(String::as_str).collect();
        divided.args(&mine, &servers, &sets)
    };
    for (file, said) in [(Some(&*wrong), "the token is wrong"), (None, "no token was given")] {
        let args = args(file);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let err = fail(&args, 2);
        assert!(err.contains(said) && err.contains(&address.to_string()), "{err}");
        assert!(err.contains("hint: ") && err.contains("partition.token_file"), "{err}");
        assert!(!divided.bench.run.exists(), "nothing is written");
    }
    let args = args(Some(&right));
    succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
}
