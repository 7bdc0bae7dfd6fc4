//! Folders for link prediction, with splits of edges.

use std::collections::BTreeSet;
use std::path::Path;

use gnarl_common::{Error, Result};

use super::layout::{Layout, NodePart};
use super::options::OgbOptions;
use super::saved::{Saved, required, wrong_shape};
use super::write::{describe, write_nodes};
use crate::edges::CHUNK_EDGES;
use crate::import::entities::{ENTITY, entity_edges};
use crate::import::errors::empty_graph;
use crate::import::extra::Extra;
use crate::import::ids::{Ids, unknown};
use crate::import::report::{Imported, finish};
use crate::import::reverses::Reverses;
use crate::import::spool::Spool;
use crate::import::torch::Item;
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// The form of the training split's edges, which the other splits must share.
struct Form {
    /// Keys of the endpoints: of one table of pairs, or of heads and of tails.
    ends: Vec<&'static str>,
    /// True if `head_type` and `tail_type` give the node types of ids.
    heterogeneous: bool,
    /// Edge columns.
    extras: Vec<(&'static str, Extra)>,
}

impl Form {
    fn of(train: &Item<'_>, options: &OgbOptions) -> Self {
        let has = |key: &str| train.get(key).is_some();
        let ends = match (has("edge"), has("head")) {
            (true, _) => vec!["edge"],
            (_, true) => vec!["head", "tail"],
            _ => vec!["source_node", "target_node"],
        };
        let known = [
            ("relation", Extra::Relation),
            ("weight", Extra::Weight(options.weight_type)),
            ("year", Extra::Time),
        ];
        let extras = known.into_iter().filter(|(key, _)| has(key)).collect();
        let heterogeneous = ends.len() == 2 && has("head_type");
        Self { ends, heterogeneous, extras }
    }

    fn relations(&self) -> bool {
        self.extras.iter().any(|(_, extra)| *extra == Extra::Relation)
    }

    /// Returns whether `key` is used.
    fn knows(&self, key: &str) -> bool {
        let types = self.heterogeneous && ["head_type", "tail_type"].contains(&key);
        types || self.ends.contains(&key) || self.extras.iter().any(|(extra, _)| *extra == key)
    }
}

/// Node types by name, with the number of preceding nodes and of their own.
struct Numbering(Vec<(String, u64, u64)>);

impl Numbering {
    fn of(layout: &Layout) -> Self {
        let mut first = 0;
        let next = |part: &NodePart| {
            first += part.count;
            (part.name.clone(), first - part.count, part.count)
        };
        Self(layout.nodes.iter().map(next).collect())
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(_, _, count)| count).sum()
    }

    /// Converts the ids in `item` to nodes; `types` has the type of each, unless there is only one.
    fn nodes(&self, item: &Item<'_>, ids: &mut [i64], types: Option<&[&str]>) -> Result<()> {
        for (row, id) in ids.iter_mut().enumerate() {
            let found = match types {
                None => self.0.first(),
                Some(types) => self.0.iter().find(|(name, _, _)| name == types[row]),
            };
            let Some((ntype, first, count)) = found else {
                let name = types.map_or("", |types| types[row]);
                let known: Vec<&str> = self.0.iter().map(|(name, _, _)| name.as_str()).collect();
                return Err(item
                    .error(format!("row {row}: unknown node type '{name}'"))
                    .hint(format!("there is: {}", known.join(", "))));
            };
            if *id < 0 || *id as u64 >= *count {
                let place = format!("{}: row {row}", item.name());
                return Err(unknown(&place, &id.to_string(), ntype, &Ids::Kept(*count)));
            }
            *id += *first as i64;
        }
        Ok(())
    }
}

/// Makes a dataset of the edges of all splits, distinguished by the column `split`, as the importer
/// of triples does. A graph of several node types becomes one of entities, numbered type after
/// type.
pub(super) fn import(
    options: &OgbOptions,
    layout: Layout,
    saved: &Saved,
    out: &Path,
) -> Result<Imported> {
    if options.add_inverse {
        return Err(Error::usage("no inverse edges of a graph for link prediction").hint(
            "leave --add-inverse out: messages pass over training edges in both directions",
        ));
    }
    let form = saved.with(0, |train| Ok(Form::of(train, options)))?;
    let nodes = Numbering::of(&layout);
    if !form.heterogeneous && nodes.0.len() != 1 {
        return saved.with(0, |train| {
            Err(train.error("has no 'head_type' of heads, and the graph has several node types"))
        });
    }
    let extras: Vec<Extra> =
        form.extras.iter().map(|(_, extra)| *extra).chain([Extra::Split]).collect();
    let more = layout.edges.iter().flat_map(|part| &part.more);
    for (extra, _) in more.filter(|(extra, _)| !extras.contains(extra)) {
        tracing::warn!("{extra:?} of edges in raw/ is left out: the splits do not have it");
    }
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut spool = Spool::create(parent, extras, (false, false))?;
    let mut relations = BTreeSet::new();
    for split in 0..3 {
        saved.with(split, |item| {
            read(item, &form, &nodes, split, &mut spool, &mut relations)?;
            if split == 0 { check_graph(item, &layout, spool.edges) } else { Ok(()) }
        })?;
    }
    if let Some(gap) = (0..).zip(&relations).find(|(number, relation)| number != *relation) {
        return saved.with(0, |train| {
            Err(required(train, "relation")?
                .error(format!("relation {} occurs in no split, though {} does", gap.0, gap.1))
                .hint("number relations from 0 without gaps"))
        });
    }
    write(options, layout, &form, &nodes, spool, out)
}

/// Appends the edges of a split to `spool`, and their relations to `relations`.
fn read(
    item: &Item<'_>,
    form: &Form,
    nodes: &Numbering,
    split: usize,
    spool: &mut Spool,
    relations: &mut BTreeSet<u32>,
) -> Result<()> {
    let (heads, tails) = ends(item, form, nodes)?;
    let mut columns = Vec::new();
    for &(key, extra) in &form.extras {
        let item = required(item, key)?;
        check_rows(&item, heads.len())?;
        let values = item.numbers()?;
        for (row, &value) in values.iter().enumerate() {
            extra.check(value, || format!("{}: row {row}", item.name()))?;
        }
        if extra == Extra::Relation {
            relations.extend(values.iter().map(|&relation| relation as u32));
        }
        columns.push(values);
    }
    for key in item.keys().into_iter().filter(|key| !form.knows(key)) {
        let more = required(item, key)?;
        if key.ends_with("_neg") {
            check_negatives(&more, key, heads.len())?;
        }
        tracing::warn!("{} is left out", more.name());
    }
    for start in (0..heads.len()).step_by(CHUNK_EDGES) {
        let range = start..heads.len().min(start + CHUNK_EDGES);
        let mut values: Vec<f64> = Vec::with_capacity((columns.len() + 1) * range.len());
        columns.iter().for_each(|column| values.extend(&column[range.clone()]));
        values.resize(values.len() + range.len(), split as f64);
        spool.push(&heads[range.clone()], &tails[range], &values)?;
    }
    Ok(())
}

/// Both endpoints of each edge, as nodes.
fn ends(item: &Item<'_>, form: &Form, nodes: &Numbering) -> Result<(Vec<i64>, Vec<i64>)> {
    if let [key] = form.ends[..] {
        let pairs = required(item, key)?;
        let Some([_, 2]) = pairs.shape() else {
            return Err(wrong_shape(&pairs, "edges are [N, 2]").hint("two nodes in each row"));
        };
        let ids = pairs.integers()?;
        let column = |at: usize| ids.iter().skip(at).step_by(2).copied().collect();
        let (mut heads, mut tails): (Vec<i64>, Vec<i64>) = (column(0), column(1));
        nodes.nodes(&pairs, &mut heads, None)?;
        nodes.nodes(&pairs, &mut tails, None)?;
        return Ok((heads, tails));
    }
    let mut count = None;
    let mut end = |key: &str, types: &str| -> Result<Vec<i64>> {
        let column = required(item, key)?;
        let rows = *count.get_or_insert(column.shape().map_or(0, |shape| shape.iter().product()));
        check_rows(&column, rows)?;
        let mut ids = column.integers()?;
        let types = form.heterogeneous.then(|| required(item, types)).transpose()?;
        let names = types.as_ref().map(Item::strings).transpose()?;
        if let (Some(types), Some(names)) = (&types, &names)
            && names.len() != rows
        {
            return Err(types.error(format!("has {} types for {rows} edges", names.len())));
        }
        nodes.nodes(&column, &mut ids, names.as_deref())?;
        Ok(ids)
    };
    Ok((end(form.ends[0], "head_type")?, end(form.ends[1], "tail_type")?))
}

/// Rejects anything but one value per edge.
fn check_rows(item: &Item<'_>, edges: usize) -> Result<()> {
    match item.shape() {
        Some(&[rows] | &[rows, 1]) if rows == edges => Ok(()),
        _ => Err(wrong_shape(item, &format!("one value for each of {edges} edges is needed"))),
    }
}

/// Rejects negatives that are no pairs, and no row of candidates per edge.
fn check_negatives(item: &Item<'_>, key: &str, edges: usize) -> Result<()> {
    match (key, item.shape()) {
        ("edge_neg", Some([_, 2])) => Ok(()),
        ("edge_neg", _) => Err(wrong_shape(item, "pairs without an edge are [N, 2]")),
        (_, Some(&[rows, _])) if rows == edges => Ok(()),
        _ => Err(wrong_shape(
            item,
            &format!("a row of candidates for each of {edges} edges is needed"),
        )),
    }
}

/// Rejects training edges that differ from the edges of the graph, since one of the two would be
/// lost.
fn check_graph(train: &Item<'_>, layout: &Layout, edges: u64) -> Result<()> {
    if edges == 0 {
        return Err(empty_graph(Path::new(train.name())));
    }
    let stated = layout.edges.iter().map(|part| part.count).sum::<Option<u64>>();
    match stated.filter(|&stated| stated != edges) {
        None => Ok(()),
        Some(stated) => Err(train
            .error(format!("has {edges} edges, the graph in raw/ has {stated}"))
            .hint("the graph of a folder for link prediction is its training edges")),
    }
}

fn write(
    options: &OgbOptions,
    layout: Layout,
    form: &Form,
    nodes: &Numbering,
    spool: Spool,
    out: &Path,
) -> Result<Imported> {
    let count = nodes.count();
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(count))?;
    describe(&mut writer, options);
    let entities = form.relations() || form.heterogeneous;
    let (ntype, triple) = match entities {
        true => (ENTITY, entity_edges()),
        false => (DEFAULT_NODE_TYPE, Triple::plain()),
    };
    writer.add_node_type(ntype, count);
    let mut parts = layout.nodes;
    let renumbered = parts.len() > 1;
    match &mut parts[..] {
        [_] => {
            let part = parts.remove(0);
            let part = NodePart { name: ntype.into(), ..part };
            write_nodes(&mut writer, part, options.num_classes)?;
        }
        _ => {
            for part in parts.iter().filter(|part| part.features.is_some() || part.labels.is_some())
            {
                tracing::warn!("features and labels of {} are left out", part.name);
            }
            write_ids(&mut writer, nodes)?;
        }
    }
    let ids = Ids::Kept(count);
    spool.store(&mut writer, &triple, (&ids, &ids), Reverses::None, Vec::new())?;
    let renumbered = if renumbered { vec![ENTITY.to_string()] } else { Vec::new() };
    finish(
        writer,
        FinishOptions { memory: options.memory, coalesce: false, ..Default::default() },
        renumbered,
    )
}

/// Writes the original ids of entities: `type:id`.
fn write_ids(writer: &mut DatasetWriter, nodes: &Numbering) -> Result<()> {
    let mut offsets = writer.node_column::<u64>(ENTITY, "user_id.offsets", &[])?;
    let mut bytes = writer.node_column::<u8>(ENTITY, "user_id.bytes", &[])?;
    let mut end = 0;
    offsets.push(&[end])?;
    for (ntype, _, count) in &nodes.0 {
        for id in 0..*count {
            let name = format!("{ntype}:{id}");
            end += name.len() as u64;
            offsets.push(&[end])?;
            bytes.push(name.as_bytes())?;
        }
    }
    let specs = [offsets.finish()?, bytes.finish()?];
    writer.node_type(ENTITY)?.columns.extend(specs);
    Ok(())
}
