//! A headless Chromium, told what to do over its debugging pipe.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for something that a page is to show.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Longest wait for an answer of the browser.
const ANSWER: Duration = Duration::from_secs(120);

/// Chromium as the environment names it, or by one of its names.
///
/// # Panics
/// If the environment names a program that does not start.
fn program() -> Option<String> {
    let known = ["chromium", "chromium-browser", "google-chrome"].map(String::from);
    let there = |name: &String| {
        let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    };
    if let Ok(named) = std::env::var("GNARL_CHROMIUM") {
        assert!(there(&named), "GNARL_CHROMIUM = '{named}' does not start");
        return Some(named);
    }
    known.into_iter().find(there)
}

/// A browser with one page.
pub struct Browser {
    child: Child,
    stdin: ChildStdin,
    /// Messages of the browser, without the zero byte at their ends.
    messages: Receiver<Vec<u8>>,
    number: u64,
    session: Option<String>,
    /// Addresses that pages asked for.
    pub requests: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser; none, with a word about it, if there is no Chromium.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: no Chromium is installed, or named by GNARL_CHROMIUM");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The pipe is descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1", &program]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        command.arg("--remote-debugging-pipe");
        // Whatever a page asks of other hosts is not found.
        command.arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let stdin = child.stdin.take().unwrap();
        let messages = messages(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            stdin,
            messages,
            number: 0,
            session: None,
            requests: Vec::new(),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().into());
        browser.ask("Page.enable", json!({}));
        browser.ask("Network.enable", json!({}));
        Some(browser)
    }

    /// The result of a method.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.stdin.write_all(message.to_string().as_bytes()).unwrap();
        self.stdin.write_all(&[0]).unwrap();
        let until = Instant::now() + ANSWER;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = self.messages.recv_timeout(left);
            let answer =
                answer.unwrap_or_else(|e| panic!("{method}: no answer of the browser: {e}"));
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["method"] == "Network.requestWillBeSent" {
                let address = answer["params"]["request"]["url"].as_str().unwrap();
                self.requests.push(address.into());
            }
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Opens a page, so many pixels wide.
    pub fn open(&mut self, address: &str, width: u32) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        self.ask("Page.navigate", json!({ "url": address }));
        self.wait("document.readyState === 'complete'");
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            assert!(Instant::now() < until, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Messages of a browser, read by a thread until it ends.
fn messages(stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (messages, received) = channel();
    std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut message = Vec::new();
        while stdout.read_until(0, &mut message).is_ok() && message.pop() == Some(0) {
            if messages.send(std::mem::take(&mut message)).is_err() {
                break;
            }
        }
    });
    received
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
