//! The table of epochs by the number of batch workers.

use gnarl_planner::{BatchWorkersPlan, Sides};

/// The table, and a sentence with the number to choose.
pub fn table(plan: &BatchWorkersPlan) -> String {
    let Sides { compute, prepare, lists, link, disk, .. } = plan.sides;
    let mut text = format!(
        "\nbatch workers beside the run's own workers: computing takes {compute:.4} s, one batch worker {prepare:.4} s to \
         prepare all batches and {lists:.4} s for lists of parts, the link {link:.4} s, the disk {disk:.4} s\n\
         {:>13} {:>9} {:>10}  bound by\n",
        "batch workers", "seconds", "cost"
    );
    for choice in &plan.choices {
        let cost = choice.cost.map_or("–".into(), |cost| format!("{cost:.4}"));
        text += &format!(
            "{:>13} {:>9.4} {cost:>10}  {}\n",
            choice.batch_workers, choice.seconds, choice.bound
        );
    }
    text + &sentence(plan) + "\n"
}

fn sentence(plan: &BatchWorkersPlan) -> String {
    let BatchWorkersPlan { saturating, cheapest, .. } = plan;
    let enough = match saturating {
        0 => "batch workers would not shorten an epoch".into(),
        many => format!("more than {many} batch workers would not shorten an epoch"),
    };
    match cheapest {
        Some(cheapest) => format!("{enough}; {cheapest} cost least"),
        None => {
            format!("{enough}; plan.compute_price and plan.batch_price would tell what costs least")
        }
    }
}
