//! A server of S3 on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::gnarl;

/// The server moto, with an empty bucket `bucket`. Ended when dropped.
pub struct Moto {
    child: Child,
    port: u16,
}

impl Moto {
    /// Starts the program that `GNARL_MOTO` names.
    pub fn start() -> Option<Self> {
        let Ok(program) = std::env::var("GNARL_MOTO") else {
            eprintln!("skipped: GNARL_MOTO does not name the program moto_server");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { child, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "moto_server does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        moto.request("PUT", "bucket", b"");
        Some(moto)
    }

    /// The content of an object.
    pub fn get(&self, place: &str) -> Vec<u8> {
        self.request("GET", place, b"")
    }

    /// Puts the files of a folder below `place`.
    pub fn put_folder(&self, folder: &Path, place: &str) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let place = format!("{place}/{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => self.put_folder(&entry.path(), &place),
                false => drop(self.request("PUT", &place, &std::fs::read(entry.path()).unwrap())),
            }
        }
    }

    /// The body of the answer to a request, whose signature moto does not verify.
    fn request(&self, method: &str, place: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} /{place} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=anyone/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer[..answer.len().min(500)]);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{method} {place}: {text}");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command with this store, and a cache in `dir`.
    fn run(&self, args: &[&str], dir: &Path) -> Output {
        Self::run_by(self.port, args, dir)
    }

    fn run_by(port: u16, args: &[&str], dir: &Path) -> Output {
        gnarl()
            .args(args)
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
            .envs([("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")])
            .envs([("AWS_ACCESS_KEY_ID", "anyone"), ("AWS_SECRET_ACCESS_KEY", "any")])
            .env("GNARL_CACHE", dir.join("cache"))
            .env("TMPDIR", dir)
            .output()
            .unwrap()
    }

    /// The result of a command that succeeds.
    pub fn succeed(&self, args: &[&str], dir: &Path) -> Value {
        self.succeed_by(self.port, args, dir).0
    }

    /// The result of a command that succeeds where the way to this store has the port `port`, and its messages.
    pub fn succeed_by(&self, port: u16, args: &[&str], dir: &Path) -> (Value, String) {
        let output = Self::run_by(port, args, dir);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "gnarl {args:?}: {text}");
        let out = String::from_utf8_lossy(&output.stdout);
        (serde_json::from_str(out.lines().last().unwrap()).unwrap(), text)
    }

    /// The message of a command that fails.
    pub fn fail(&self, args: &[&str], code: i32, dir: &Path) -> String {
        let output = self.run(args, dir);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "gnarl {args:?}: {text}");
        text
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
