//! The MPI engine under the cases of all engines: each is a run of this program under `mpirun`.

mod cases;

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cases::{Case, Outcome, for_each_case};
use gnarl_engine::{Communicator, mpi};

/// What a rank's line of results begins with.
const RETURNED: &str = "returned";
const FAILED: &str = "failed";
/// How long a case may take, whatever it does.
const LIMIT: Duration = Duration::from_secs(60);

macro_rules! all {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), cases::$name)),*]
    };
}
type Named = (&'static str, fn() -> Case);
const CASES: &[Named] = for_each_case!(all);

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let [rank_of, name] = &wanted[..]
        && rank_of == "rank-of"
    {
        let case = CASES.iter().find(|(case, _)| case == name).expect("a case");
        return as_rank(&case.1());
    }
    for (name, case) in CASES.iter().filter(|(name, _)| wanted.iter().all(|w| name.contains(w))) {
        let case = case();
        let outcome = under_mpirun(name, case.ranks);
        println!("case {name}");
        (case.check)(outcome);
    }
    ExitCode::SUCCESS
}

/// Runs a case as one of its ranks, and prints what came of it: numbers by their bits.
fn as_rank(case: &Case) -> ExitCode {
    let result = mpi::run(case.deadline, |rank| Ok((rank.rank(), (case.body)(rank)?)));
    match result {
        Ok((rank, values)) => {
            let bits: Vec<String> = values.iter().map(|v| v.to_bits().to_string()).collect();
            println!("{RETURNED} {rank} {}", bits.join(","));
            ExitCode::SUCCESS
        }
        Err(e) => {
            println!("{FAILED} {e}");
            // The first to go takes the others with it: they are to say theirs before.
            std::thread::sleep(Duration::from_secs(1));
            ExitCode::FAILURE
        }
    }
}

/// What came of a case on that many ranks.
fn under_mpirun(name: &str, ranks: usize) -> Outcome {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--oversubscribe", "-n", &ranks.to_string()]);
    mpirun.arg(std::env::current_exe().expect("this program")).args(["rank-of", name]);
    // Containers often have no other user.
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let mut run = mpirun.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("mpirun");
    let start = Instant::now();
    while run.try_wait().expect("mpirun").is_none() {
        if start.elapsed() > LIMIT {
            run.kill().expect("mpirun");
            panic!("{name} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    run.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    outcome(&text, ranks)
}

fn outcome(text: &str, ranks: usize) -> Outcome {
    let mut returned = vec![None; ranks];
    let mut failed = Vec::new();
    for line in text.lines() {
        if let Some(error) = line.strip_prefix(FAILED) {
            failed.push(error.trim().to_string());
        } else if let Some((rank, values)) =
            line.strip_prefix(RETURNED).and_then(|l| l.trim_start().split_once(' '))
        {
            let bits = values.split(',').filter(|v| !v.is_empty());
            let values = bits.map(|v| f64::from_bits(v.parse().expect("bits"))).collect();
            returned[rank.parse::<usize>().expect("a rank")] = Some(values);
        }
    }
    if failed.is_empty() {
        let all: Option<Vec<_>> = returned.into_iter().collect();
        return Ok(all.unwrap_or_else(|| panic!("a rank said nothing: {text:?}")));
    }
    Err(failed)
}
