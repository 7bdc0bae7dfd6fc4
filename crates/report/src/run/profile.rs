//! Tables of the kernels, stages and collectives of a profile.

use std::fmt::Write;

use gnarl_common::profile::Kind;
use gnarl_train::{ProfileTotals, Rates, Total};

use crate::page::text::{count, escape, percent, seconds};

/// Rows of a table at most; the file beside the report has all of them.
const MOST: usize = 30;

/// The tables: one a kind of span.
pub(super) fn tables(profile: &ProfileTotals) -> String {
    let Rates { threads, gflops, gather_gbps } = profile.rates;
    let mut out = format!(
        "<p>{} of each rank were recorded. Threads of a rank ({threads}) reach {gflops:.1} GFLOP/s in matrix products and \
         {gather_gbps:.1} GB/s in SpMM, as measured after the run: the shares below are of these. <code>trace.json</code> has {}; \
         open it at ui.perfetto.dev.</p>",
        seconds(profile.seconds),
        match profile.left {
            0 => "all spans".into(),
            left => format!("the first spans, and not the last {}", count(left)),
        }
    );
    _ = write!(
        out,
        "<p>Kernels take {} of the time of computing and evaluating.</p>",
        percent(profile.kernel_share())
    );
    let rated = |total: &Total| {
        let share = |rate: f64, of: f64| percent(if of > 0.0 { rate / of } else { 0.0 });
        format!(
            "<td>{:.1}</td><td>{}</td><td>{:.1}</td><td>{}</td>",
            total.gflops,
            share(total.gflops, gflops),
            total.gbps,
            share(total.gbps, gather_gbps)
        )
    };
    let rates = "<td>GFLOP/s</td><td>share</td><td>GB/s</td><td>share</td>";
    out += &table("kernel", rates, &profile.of_all_ranks(Kind::Kernel), &rated);
    out += "<div class=\"pair\">";
    out += &table("stage", "", &profile.of_all_ranks(Kind::Stage), &|_| String::new());
    let waits: Vec<Total> =
        profile.spans.iter().filter(|span| span.kind == Kind::Collective).cloned().collect();
    let of_rank = |total: &Total| format!("<td>{}</td><td>{:.2}</td>", total.rank, total.gbps);
    out += &table("collective", "<td>rank</td><td>GB/s</td>", &waits, &of_rank);
    out + "</div>"
}

fn table(kind: &str, columns: &str, totals: &[Total], more: &dyn Fn(&Total) -> String) -> String {
    if totals.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<div class=\"scroll\"><table><tr><th>{kind}</th><td>spans</td><td>time</td><td>longest</td>{columns}</tr>"
    );
    for total in totals.iter().take(MOST) {
        _ = write!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
            escape(&total.name),
            count(total.count),
            seconds(total.seconds),
            seconds(total.longest),
            more(total)
        );
    }
    out += "</table>";
    if totals.len() > MOST {
        _ = write!(
            out,
            "<p>{} more are in <code>profile.json</code>.</p>",
            count((totals.len() - MOST) as u64)
        );
    }
    out + "</div>"
}
