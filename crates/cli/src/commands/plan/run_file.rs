//! `gnarl plan RUN.toml`

use gnarl_common::{Error, Result};
use gnarl_config::{PlanSection, Strategy, load};
use gnarl_graph::Dataset;
use gnarl_planner::{RunPlan, StrategyPrediction, measure};
use indicatif::{HumanBytes, HumanCount};
use serde_json::Value;

use super::args::PlanArgs;
use super::{batch_workers, measured};
use crate::commands::{dataset, objects};
use crate::output::json;

pub fn run(args: &PlanArgs) -> Result<Value> {
    if args.check {
        return Err(Error::usage("--check requires a dataset directory")
            .hint("it compares partitioners, not strategies"));
    }
    let mut config = load(&args.path, &args.settings)?;
    dataset::prepare(&mut config, &args.path)?;
    if config.dataset.path.as_os_str().is_empty() {
        return Err(Error::usage("predictions require the whole dataset").hint("set dataset.path"));
    }
    if args.measure {
        config.plan = measure(&config.plan)?;
    }
    let opened = Dataset::open(objects::local(&config.dataset.path)?)?;
    let own = [config.train.workers];
    let workers = if args.workers.is_empty() { &own[..] } else { &args.workers };
    let mut plan = RunPlan::of(&config, &opened, workers)?;
    if let Some(run) = &args.from {
        let measured = measured::of_run(run, &config)?;
        plan.batch_workers = plan.batch_workers(&config, Some(&measured));
        let mut refused = plan.refused.iter();
        let refused = refused.find(|refused| refused.strategy == Strategy::Disaggregated);
        match (&plan.batch_workers, refused) {
            (Some(_), _) => {}
            (None, Some(refused)) => return Err(Error::usage(&refused.reason)),
            (None, None) => {
                return Err(Error::usage("--from is for runs on train.workers workers")
                    .hint("leave out --workers"));
            }
        }
    }
    print!("{}", table(&plan, args.measure));
    if let Some(batch_workers) = &plan.batch_workers {
        print!("{}", batch_workers::table(batch_workers));
    }
    let mut result = json(&plan);
    let best = plan.fastest();
    result["fastest"] = best.map_or(Value::Null, json);
    result["verdict"] = plan.verdict().into();
    Ok(result)
}

fn table(plan: &RunPlan, measured: bool) -> String {
    let counts = &plan.counts;
    let mut text = format!(
        "{} nodes, {} edges, {} training nodes; {}\n\
         a worker's epoch:\n{:>17} {:>7} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}  mostly\n",
        counts.nodes,
        counts.edges,
        counts.train,
        rates(&plan.rates, measured),
        "strategy",
        "workers",
        "steps",
        "edges",
        "sent",
        "GFLOP",
        "messages",
        "memory",
        "seconds",
    );
    for prediction in &plan.predictions {
        text += &row(prediction);
    }
    if plan.predictions.iter().any(|p| !p.same_model) {
        text += "* another model than the run file's\n";
    }
    for refused in &plan.refused {
        let name = name(refused.strategy.name(), refused.decoupled);
        text += &format!("{name:>17} {:>7} cannot: {}\n", refused.workers, refused.reason);
    }
    text + &format!("\n{}\n", plan.verdict())
}

fn rates(rates: &PlanSection, measured: bool) -> String {
    format!(
        "{} rates: {:.0} GFLOP/s and {:.1} GB/s a thread, {:.1} GB/s between workers",
        if measured { "measured" } else { "assumed" },
        rates.flops / 1e9,
        rates.gather / 1e9,
        rates.link / 1e9
    )
}

fn row(p: &StrategyPrediction) -> String {
    let bytes = |bytes: f64| HumanBytes(bytes as u64).to_string();
    let work = &p.work;
    let name = name(p.strategy.name(), p.decoupled) + if p.same_model { "" } else { "*" };
    format!(
        "{name:>17} {:>7} {:>6} {:>10} {:>10} {:>10.3} {:>10} {:>10} {:>9.4}  {}\n",
        p.workers,
        work.steps,
        HumanCount(work.sampled_edges as u64).to_string(),
        bytes(work.sent_bytes),
        work.flops / 1e9,
        bytes(work.gathered_bytes),
        bytes(work.memory_bytes),
        p.seconds,
        p.dominant
    )
}

fn name(strategy: &str, decoupled: bool) -> String {
    if decoupled { format!("{strategy} decoupled") } else { strategy.into() }
}
