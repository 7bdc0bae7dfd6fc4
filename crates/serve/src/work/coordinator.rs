//! The coordinator: knows which batch workers live. It has no disk, and its state is rebuilt from what workers say.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::{Error, Result};

use super::message::{Joining, Living, Orders};
use super::roster::{Change, Roster};
use super::service::Handler;
use crate::command;

/// Time after a batch worker's last word in which it counts as living.
pub const LEASE: Duration = Duration::from_secs(5);

/// The coordinator of a run.
pub struct Coordinator {
    /// The lines of [`Joining::run`] that every worker must have.
    run: String,
    state: Mutex<State>,
}

struct State {
    roster: Roster,
    ended: bool,
}

impl Coordinator {
    /// The coordinator of `run`, lines that must not differ among workers.
    pub fn new(run: String) -> Self {
        let state = State { roster: Roster::new(LEASE), ended: false };
        Self { run, state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The batch workers that live.
    pub fn living(&self) -> Living {
        let mut state = self.state();
        for gone in state.roster.expire(Instant::now()) {
            tracing::warn!(
                "the batch worker at {gone} has been silent for {} s: its batches go to the others",
                LEASE.as_secs()
            );
        }
        Living { workers: state.roster.living() }
    }

    /// Tells batch workers, by their next word, that the run has ended.
    pub fn end(&self) {
        self.state().ended = true;
    }

    /// Returns whether no batch worker is left.
    pub fn is_deserted(&self) -> bool {
        self.living().workers.is_empty()
    }

    fn join(&self, joining: &Joining, from: Option<IpAddr>) -> Result<Orders> {
        same_run(&self.run, &joining.run)?;
        let uri = seen_from(&joining.uri, from);
        let mut state = self.state();
        if state.ended {
            // It leaves once it has heard that: the answer may be lost.
            return Ok(Orders { end: true });
        }
        if state.roster.hear(&uri, Instant::now()) == Change::Joined {
            tracing::info!(
                "the batch worker at {uri} has joined; there are {}",
                state.roster.living().len()
            );
        }
        Ok(Orders { end: false })
    }

    fn leave(&self, joining: &Joining, from: Option<IpAddr>) -> Orders {
        let uri = seen_from(&joining.uri, from);
        let mut state = self.state();
        if state.roster.leave(&uri) {
            tracing::info!(
                "the batch worker at {uri} has left; there are {}",
                state.roster.living().len()
            );
        }
        Orders { end: state.ended }
    }
}

impl Handler for Coordinator {
    fn act(&self, action: &str, body: &[u8], from: Option<IpAddr>) -> Result<Vec<u8>> {
        match action {
            "join" => {
                let joining: Joining = command::read("the word of a batch worker", body)?;
                Ok(command::write(&self.join(&joining, from)?))
            }
            "leave" => {
                let joining: Joining = command::read("the word of a batch worker", body)?;
                Ok(command::write(&self.leave(&joining, from)))
            }
            "where" => {
                let run: String = command::read("the word of a compute worker", body)?;
                same_run(&self.run, &run)?;
                Ok(command::write(&self.living()))
            }
            other => Err(Error::usage(format!("a coordinator has no action '{other}'"))
                .hint("it has join, leave and where")),
        }
    }
}

/// Compares the run of a worker with that of the coordinator.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the first line that differs.
fn same_run(own: &str, theirs: &str) -> Result<()> {
    if own == theirs {
        return Ok(());
    }
    let mut lines = own.lines().zip(theirs.lines());
    let (own, theirs) = lines.find(|(own, theirs)| own != theirs).unwrap_or_default();
    Err(Error::usage(format!("this worker has '{theirs}', the coordinator of the run '{own}'"))
        .hint("all workers of a run have the same run file, dataset and parts"))
}

/// An address with the host that the coordinator sees, where the worker listens at all of its own.
fn seen_from(uri: &str, from: Option<IpAddr>) -> String {
    // A listener at [::] sees hosts with addresses of version 4 as mapped ones, which no certificate has.
    match from.map(|ip| ip.to_canonical()) {
        Some(IpAddr::V6(ip)) => at_host(uri, &format!("[{ip}]")),
        Some(IpAddr::V4(ip)) => at_host(uri, &ip.to_string()),
        None => uri.into(),
    }
}

/// The address `uri`, or, if it stands for all addresses of a host, that of `host` with the same port.
pub fn at_host(uri: &str, host: &str) -> String {
    let all = ["//0.0.0.0:", "//[::]:"];
    all.iter().fold(uri.into(), |uri: String, all| uri.replace(all, &format!("//{host}:")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(coordinator: &Coordinator, action: &str, joining: &Joining) -> Result<Orders> {
        let from = Some(IpAddr::from([10, 0, 0, 7]));
        let reply = coordinator.act(action, &command::write(joining), from)?;
        command::read("orders", &reply)
    }

    #[test]
    fn workers_at_all_addresses_are_where_they_are_seen() {
        let from = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        for all in ["0.0.0.0", "[::]"] {
            let uri = format!("https://{all}:70");
            assert_eq!(seen_from(&uri, from("10.0.0.7")), "https://10.0.0.7:70");
            assert_eq!(seen_from(&uri, from("::ffff:10.0.0.7")), "https://10.0.0.7:70");
            assert_eq!(seen_from(&uri, from("fd00::7")), "https://[fd00::7]:70");
        }
        assert_eq!(seen_from("http://10.0.0.8:70", from("10.0.0.7")), "http://10.0.0.8:70");
    }

    #[test]
    fn workers_of_the_run_are_found_until_it_ends() {
        let coordinator = Coordinator::new("seed = 1\nlr = 2".into());
        let joining = |uri: &str, run: &str| Joining { uri: uri.into(), run: run.into() };
        let own = joining("http://0.0.0.0:70", "seed = 1\nlr = 2");
        assert!(!says(&coordinator, "join", &own).unwrap().end);
        assert_eq!(coordinator.living().workers, ["http://10.0.0.7:70"]);
        let error = says(&coordinator, "join", &joining("http://b:1", "seed = 1\nlr = 3"));
        let error = error.unwrap_err();
        assert_eq!(error.kind(), gnarl_common::Kind::Usage);
        assert!(error.to_string().contains("'lr = 3'") && error.to_string().contains("'lr = 2'"));
        coordinator.end();
        // The answer may be lost: it is there until it says that it has heard it.
        assert!(says(&coordinator, "join", &own).unwrap().end);
        assert!(!coordinator.is_deserted());
        assert!(says(&coordinator, "leave", &own).unwrap().end);
        assert!(coordinator.is_deserted());
    }
}
