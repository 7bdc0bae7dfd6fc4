//! The local engine under the cases of all engines.

mod cases;

use cases::{Case, for_each_case};
use gnarl_engine::local;

fn run(case: &Case) {
    let outcome = local::run(case.ranks, case.deadline, |rank| (case.body)(rank));
    (case.check)(outcome.map_err(|e| vec![e.to_string()]));
}

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(&cases::$name());
        })*
    };
}
for_each_case!(tests);
