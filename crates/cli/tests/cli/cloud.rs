//! Predictions in object stores.

use crate::common::{Bench, fail, path, succeed};

const RUN: &str = "[train]\nepochs = 1\n";

#[cfg(not(feature = "cloud"))]
#[test]
fn builds_without_object_stores_say_so() {
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let text = fail(&["infer", path(&bench.run), "--out", "s3://bucket/nodes.parquet"], 2);
    assert!(text.contains("s3://bucket/nodes.parquet: this build lacks object stores"), "{text}");
    assert!(text.contains("--features cloud"), "{text}");
}

#[cfg(feature = "cloud")]
mod stores {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Output, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::*;
    use crate::common::gnarl;

    #[test]
    fn a_folder_stands_for_a_store() {
        let bench = Bench::new(RUN);
        bench.train(&[]);
        let run = path(&bench.run);
        let store = bench.dir.path().join("store");
        let infer = |name: &str, more: &[&str]| {
            let out = format!("file://{}/deep/{name}", store.display());
            let args = ["infer", run, "--out", &out].map(String::from);
            args.into_iter().chain(more.iter().map(ToString::to_string)).collect::<Vec<_>>()
        };
        let words =
            |args: &[String]| args.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let done = |args: Vec<String>| succeed(&words(&args).split('\n').collect::<Vec<_>>());
        let refused = |args: Vec<String>| fail(&words(&args).split('\n').collect::<Vec<_>>(), 2);

        let found = done(infer("nodes.npy", &["--what", "logits"]));
        let address = |name: &str| format!("file://{}/deep/{name}", store.display());
        assert_eq!(found["files"], json!([address("nodes.npy"), address("nodes.ids.npy")]));
        let local = bench.dir.path().join("nodes.npy");
        succeed(&["infer", run, "--out", path(&local), "--what", "logits"]);
        for name in ["nodes.npy", "nodes.ids.npy"] {
            let here = std::fs::read(local.with_file_name(name)).unwrap();
            assert!(std::fs::read(store.join("deep").join(name)).unwrap() == here, "{name}");
        }
        let text = refused(infer("nodes.npy", &["--what", "logits"]));
        assert!(text.contains("exists already") && text.contains("--force"), "{text}");
        std::fs::remove_file(store.join("deep").join("nodes.npy")).unwrap();
        let text = refused(infer("nodes.npy", &["--what", "logits"]));
        assert!(text.contains("nodes.ids.npy: exists already"), "{text}");
        done(infer("nodes.npy", &["--what", "logits", "--force"]));

        let text = refused(infer("nodes.parket", &[]));
        assert!(text.contains("did you mean 'parquet'"), "{text}");
        let text = fail(&["infer", run, "--out", "s4://bucket/nodes.csv"], 2);
        assert!(text.contains("unknown scheme 's4'"), "{text}");

        #[cfg(feature = "zarr")]
        {
            done(infer("nodes.zarr", &["--what", "embeddings"]));
            assert!(store.join("deep/nodes.zarr/zarr.json").exists());
            let text = refused(infer("nodes.zarr", &[]));
            assert!(text.contains("nodes.zarr: exists already"), "{text}");
            done(infer("nodes.zarr", &["--force", "--what", "classes"]));
            assert!(!store.join("deep/nodes.zarr/embedding/zarr.json").exists());
            std::fs::write(store.join("deep/nodes.zarr/zarr.json"), "{}").unwrap();
            let text = refused(infer("nodes.zarr", &["--force"]));
            assert!(text.contains("is not a Zarr group"), "{text}");
        }
    }

    /// A server of S3 on loopback, ended when dropped.
    struct Moto {
        child: Child,
        port: u16,
    }

    impl Moto {
        /// Starts the program that `GNARL_MOTO` names, with an empty `bucket`.
        fn start() -> Option<Self> {
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
            moto.request("PUT", "/bucket");
            Some(moto)
        }

        /// The body of the answer to a request.
        fn request(&self, method: &str, place: &str) -> Vec<u8> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            let head = format!(
                "{method} {place} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            answer.split_off(end + 4)
        }

        /// Runs a command with this store.
        fn run(&self, args: &[&str]) -> Output {
            gnarl()
                .args(args)
                .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
                .envs([("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")])
                .envs([("AWS_ACCESS_KEY_ID", "anyone"), ("AWS_SECRET_ACCESS_KEY", "any")])
                .output()
                .unwrap()
        }

        /// The result of a command that succeeds.
        fn succeed(&self, args: &[&str]) -> Value {
            let output = self.run(args);
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "gnarl {args:?}: {text}");
            let out = String::from_utf8_lossy(&output.stdout);
            serde_json::from_str(out.lines().last().unwrap()).unwrap()
        }

        /// What a command says that fails.
        fn fail(&self, args: &[&str], code: i32) -> String {
            let output = self.run(args);
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

    #[test]
    fn tables_go_to_s3() {
        let Some(moto) = Moto::start() else { return };
        let bench = Bench::new(RUN);
        bench.train(&["model.hidden=2500"]);
        let run = path(&bench.run);
        let local = bench.dir.path().join("nodes.parquet");
        let what = ["--what", "embeddings,classes"];
        succeed(&[&["infer", run, "--out", path(&local)], &what[..]].concat());
        let expected = std::fs::read(&local).unwrap();
        assert!(expected.len() > 16 << 20, "more than one part");

        let infer = ["infer", run, "--out", "s3://bucket/a/nodes.parquet"];
        let infer = [&infer[..], &what].concat();
        assert_eq!(moto.succeed(&infer)["files"], json!(["s3://bucket/a/nodes.parquet"]));
        assert!(moto.request("GET", "/bucket/a/nodes.parquet") == expected);
        let text = moto.fail(&infer, 2);
        assert!(text.contains("s3://bucket/a/nodes.parquet: exists already"), "{text}");
        moto.succeed(&[&infer[..], &["--force"]].concat());

        let small = ["infer", run, "--out", "s3://bucket/a/few.csv", "--split", "test"];
        moto.succeed(&small);
        assert!(moto.request("GET", "/bucket/a/few.csv").starts_with(b"id,class,probability\n"));
        assert!(moto.fail(&small, 2).contains("exists already"));
        let text = moto.fail(&["infer", run, "--out", "s3://no-bucket/nodes.parquet"], 1);
        assert!(text.contains("s3://no-bucket/nodes.parquet") && text.contains("hint: "), "{text}");

        #[cfg(feature = "zarr")]
        {
            let infer = ["infer", run, "--out", "s3://bucket/a/nodes.zarr", "--what", "classes"];
            moto.succeed(&infer);
            let text = moto.request("GET", "/bucket/a/nodes.zarr/zarr.json");
            assert!(String::from_utf8_lossy(&text).contains("\"group\""));
            assert!(moto.fail(&infer, 2).contains("nodes.zarr: exists already"));
            moto.succeed(&[&infer[..], &["--force"]].concat());
        }
    }
}
