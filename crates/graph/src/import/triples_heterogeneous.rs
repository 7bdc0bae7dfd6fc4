//! Triples as a graph with one edge type per relation.

use std::path::Path;

use gnarl_common::{Error, Result};

use super::array::ArrayReader;
use super::input::read_text;
use super::npy::{Count, Largest, check_ids};
use super::reverses::Reverses;
use super::source::Source;
use crate::edges::CHUNK_EDGES;
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, EdgeWriter};

/// Relations written in one pass over the array, each to its own files.
const AT_ONCE: usize = 64;

/// Triples `[T, 3]` of head, relation, tail: integers.
pub(super) struct TripleArray {
    /// Node type of heads and tails.
    pub ntype: String,
    array: ArrayReader,
    /// Name of each relation.
    names: Vec<String>,
    /// Triples of each relation.
    counts: Vec<u64>,
    largest: Largest,
}

impl TripleArray {
    /// Opens the array and reads it once; `names` is a file with one relation name per line.
    ///
    /// # Errors
    /// If it has another shape, an id is negative, a relation has no name, or, without names, one
    /// has no triple.
    pub fn open(ntype: &str, path: &Path, names: Option<&Path>) -> Result<Self> {
        let array = ArrayReader::open(Source::npy(path)?)?;
        array.expect_integers()?;
        let (&[rows, 3], false) = (array.shape(), array.fortran()) else {
            let message = format!("has shape {:?}, triples are [T, 3]", array.shape());
            return Err(array.error(message).hint("head, relation and tail in each row"));
        };
        if rows == 0 {
            return Err(super::errors::empty_graph(path));
        }
        let known = names.map(relation_names).transpose()?;
        let mut counts = vec![0; known.as_ref().map_or(0, Vec::len)];
        let mut largest = Largest::default();
        let mut row = 0;
        each(&array, |heads, relations, tails| {
            for (i, &relation) in relations.iter().enumerate() {
                if known.as_ref().is_some_and(|known| relation as usize >= known.len()) {
                    let message = format!("row {}: relation {relation} has no name", row + i);
                    return Err(array.error(message).hint("--relations has one in each line"));
                }
                if relation >= u64::from(u16::MAX) {
                    let message = format!("row {}: relation {relation} exceeds 16 bits", row + i);
                    return Err(array.error(message));
                }
                if relation as usize >= counts.len() {
                    counts.resize(relation as usize + 1, 0);
                }
                counts[relation as usize] += 1;
            }
            largest.see(array.name(), row as u64, "head", heads);
            largest.see(array.name(), row as u64, "tail", tails);
            row += relations.len();
            Ok(())
        })?;
        let names = match known {
            Some(known) => known,
            None => {
                if let Some(gap) = counts.iter().position(|&count| count == 0) {
                    let last = counts.len() - 1;
                    let message = format!("relation {gap} has no triple, though {last} has");
                    return Err(array.error(message).hint(
                        "number relations from 0 without gaps, or name them with --relations",
                    ));
                }
                (0..counts.len()).map(|relation| format!("r{relation}")).collect()
            }
        };
        Ok(Self { ntype: ntype.into(), array, names, counts, largest })
    }

    /// The largest id of a head or tail.
    pub fn largest(&self) -> Largest {
        self.largest.clone()
    }

    fn triple(&self, relation: usize) -> Triple {
        let rel = self.names[relation].clone();
        Triple { src: self.ntype.clone(), rel, dst: self.ntype.clone() }
    }
}

/// Writes an edge type for each relation that has triples, a few relations in each pass.
pub(super) fn write_triples(
    writer: &mut DatasetWriter,
    triples: TripleArray,
    count: &Count,
    reverses: Reverses,
) -> Result<()> {
    let nodes = count.nodes;
    let used: Vec<usize> =
        (0..triples.names.len()).filter(|&relation| triples.counts[relation] > 0).collect();
    for relations in used.chunks(AT_ONCE) {
        let limits = Some((nodes, nodes));
        let create = |triple: &Triple| writer.edge_writer(triple, limits);
        let mut out: Vec<(EdgeWriter, Option<EdgeWriter>)> = Vec::new();
        let mut place = vec![usize::MAX; triples.names.len()];
        for &relation in relations {
            let triple = triples.triple(relation);
            let apart = (reverses == Reverses::Apart).then(|| create(&triple.reversed()));
            place[relation] = out.len();
            out.push((create(&triple)?, apart.transpose()?));
        }
        let mut row = 0;
        let mut lists = vec![(Vec::new(), Vec::new()); out.len()];
        each(&triples.array, |heads, relations, tails| {
            check_ids(triples.array.name(), row, heads, tails, (count, count))?;
            row += heads.len() as u64;
            for ((&head, &relation), &tail) in heads.iter().zip(relations).zip(tails) {
                if let Some((sources, destinations)) = lists.get_mut(place[relation as usize]) {
                    sources.push(head);
                    destinations.push(tail);
                }
            }
            for ((own, apart), (sources, destinations)) in out.iter_mut().zip(&mut lists) {
                own.push(sources, destinations)?;
                if let Some(apart) = apart {
                    apart.push(destinations, sources)?;
                }
                sources.clear();
                destinations.clear();
            }
            Ok(())
        })?;
        for (&relation, (own, apart)) in relations.iter().zip(out) {
            let triple = triples.triple(relation);
            if let Some(apart) = apart {
                let specs = apart.finish()?;
                writer.add_edge_type(triple.clone(), own.finish()?);
                writer.add_edge_type(triple.reversed(), specs);
            } else {
                writer.add_edge_type(triple, own.finish()?);
            }
        }
    }
    Ok(())
}

/// Calls `f` with heads, relations and tails, one chunk after the other.
fn each(
    array: &ArrayReader,
    mut f: impl FnMut(&[u64], &[u64], &[u64]) -> Result<()>,
) -> Result<()> {
    let mut array = array.again()?;
    let mut values = Vec::new();
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    while array.read_ids(3 * CHUNK_EDGES, "node or relation", 0, &mut values)? {
        for (i, column) in columns.iter_mut().enumerate() {
            column.clear();
            column.extend(values.iter().skip(i).step_by(3));
        }
        f(&columns[0], &columns[1], &columns[2])?;
    }
    Ok(())
}

/// The relation names in a file, reduced to the characters of an edge type's name: of a
/// URI the part after the last `#` or `/`. Names that become equal get their line's number.
fn relation_names(path: &Path) -> Result<Vec<String>> {
    let text = read_text(path)?;
    let mut names: Vec<String> = Vec::new();
    for (line, name) in text.lines().enumerate() {
        let name = name.trim().trim_start_matches('<').trim_end_matches('>');
        let last = name.trim_end_matches(['#', '/']).rsplit(['#', '/']).next().unwrap_or(name);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
        let mut short: String = last.chars().map(plain).collect();
        if short.is_empty() {
            let message = format!("{}: line {}: no name", path.display(), line + 1);
            return Err(Error::invalid(message).hint("one relation in each line"));
        }
        if names.contains(&short) {
            short = format!("{short}_{line}");
        }
        names.push(short);
    }
    Ok(names)
}
