//! Pages as a browser shows them, on a screen and on a phone.

mod browser;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Bench, path, succeed};
use crate::metrics::{Running, free, listen};
use browser::{Browser, PATIENCE};

/// Widths of windows, in pixels.
const WIDTHS: [u32; 2] = [1280, 400];
const LAYOUT: &str = include_str!("layout.js");

/// The address of a file.
fn address(page: &Path) -> String {
    format!("file://{}", path(page))
}

/// Makes sure that a page can be read at any width, and that none asks another host for anything.
fn check(browser: &mut Browser, address: &str) {
    browser.requests.clear();
    for width in WIDTHS {
        browser.open(address, width);
        assert_eq!(browser.value("innerWidth"), width);
        assert_eq!(browser.value(LAYOUT), json!([]), "{address}, {width} px wide");
    }
    let asked = std::mem::take(&mut browser.requests);
    assert!(asked.iter().all(|asked| asked == address), "{address}: {asked:?}");
}

#[test]
fn reports_and_comparisons_can_be_read_at_any_width() {
    let Some(mut browser) = Browser::start() else { return };
    let bench = Bench::new("[train]\nepochs = 12\n");
    let run = |name: &str, sets: &[&str]| {
        let dir = bench.dir.path().join(name);
        bench.train(&[&[&*format!("output.dir={}", path(&dir))], sets].concat());
        dir
    };
    let plain = run("plain", &["train.score_training=true"]);
    let parts = run("parts", &["train.workers=2", "train.strategy=average", "partition.parts=4"]);
    let other = run("a-run-with-a-name-that-is-longer-than-others", &["train.lr=0.003"]);
    for run in [&plain, &parts] {
        check(&mut browser, &address(&run.join("report.html")));
    }
    browser.open(&address(&plain.join("report.html")), 1280);
    let titles =
        browser.value("[...document.querySelectorAll('h2')].map((title) => title.textContent)");
    let shown = [
        "Learning",
        "Classes",
        "Dataset",
        "Where the time went",
        "Figures",
        "Configuration",
        "Provenance",
    ];
    assert_eq!(titles, json!(shown));
    let legend = "document.querySelectorAll('figure')[1].querySelectorAll('.legend span').length";
    assert_eq!(browser.value(legend), 3, "training, validation and test scores");
    assert_eq!(browser.value("document.querySelector('details').open"), false);
    let page = bench.dir.path().join("compared.html");
    succeed(&["compare", path(&plain), path(&parts), path(&other), "--html", path(&page)]);
    check(&mut browser, &address(&page));
}

#[test]
fn the_live_page_grows_with_the_run() {
    let Some(mut browser) = Browser::start() else { return };
    let bench = Bench::new("[train]\nepochs = 100000\n");
    let [at, _] = free();
    let mut run = crate::common::gnarl();
    run.args(bench.args(&[&listen(at)])).args(["--stream", "--attended"]);
    let pipes = run.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = Running(pipes.spawn().unwrap());
    let mut answers = run.0.stdin.take().unwrap();
    // The run asks after each epoch. At this pace it lasts for an hour, on any machine.
    std::thread::spawn(move || {
        while answers.write_all(b"\n").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    run.page(at, |_| true);
    let live = format!("http://{at}/");
    let newest = "epochs[epochs.length - 1].epoch";
    for width in WIDTHS {
        browser.open(&live, width);
        browser.wait("epochs.length > 2 && document.querySelectorAll('polyline').length > 4");
        let seen = browser.value(newest);
        browser.wait(&format!("{newest} > {seen}"));
        // As drawn, some time after the event.
        browser.wait(&format!("Number(/epoch (\\d+)/.exec(document.title)[1]) > {seen}"));
        assert_eq!(browser.value(LAYOUT), json!([]), "{width} px wide");
    }
    let asked = std::mem::take(&mut browser.requests);
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.starts_with(&live)), "{asked:?}");
    let report = bench.run.join("report.html");
    let until = Instant::now() + PATIENCE;
    while !report.exists() {
        assert!(Instant::now() < until, "no report of a run that lasts");
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = address(&report);
    browser.open(&report, 400);
    browser.wait("document.body.textContent.includes('Not finished')");
    assert_eq!(browser.value(LAYOUT), json!([]));
    let asked = std::mem::take(&mut browser.requests);
    assert!(asked.iter().all(|asked| *asked == report), "{asked:?}");
    browser.open(&live, 400);
    browser.wait("epochs.length > 2");
    drop(run);
    browser.wait("document.getElementById('state').textContent.startsWith('connection lost')");
}
