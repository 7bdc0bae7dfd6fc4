//! Scores of each relation.

use std::fmt::Write;

use gnarl_train::RelationScores;

use crate::page::text::{count, escape};

/// Relations shown at most; the file beside the report has all of them.
const MOST: usize = 300;

/// A table with one row per relation, the most frequent first.
pub(super) fn table(relations: &[RelationScores]) -> String {
    let mut out = String::from(
        "<table><tr><th>relation</th><td>test edges</td><td>MRR</td><td>of heads</td><td>of tails</td>\
         <td>hits@1</td><td>hits@10</td></tr>",
    );
    for row in relations.iter().take(MOST) {
        let [heads, tails] = row.sides;
        _ = write!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{:.4}</td><td>{heads:.4}</td><td>{tails:.4}</td>\
             <td>{:.4}</td><td>{:.4}</td></tr>",
            escape(&row.relation),
            count(row.edges as u64),
            row.mrr,
            row.hits_1,
            row.hits_10,
        );
    }
    out += "</table>";
    if relations.len() > MOST {
        _ = write!(
            out,
            "<p>{} less frequent relations are in <code>relations.json</code>.</p>",
            count((relations.len() - MOST) as u64)
        );
    }
    out
}
