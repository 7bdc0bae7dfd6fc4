//! Datasets from tables of nodes and of edges.

use std::path::Path;

use gnarl_common::{Context, Error, Result, ResultExt};
use serde_json::json;

use super::options::TableOptions;
use super::{edges, nodes};
use crate::import::errors::{both_reverses, check_count, empty_graph};
use crate::import::ids::{IdMaps, Ids};
use crate::import::report::{Imported, finish};
use crate::import::reverses::Reverses;
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Makes the dataset `out` from tables. Integer ids are kept where a nodes table counts them up
/// from 0 or `num_nodes` states their number; otherwise nodes are the rows of the nodes table, or
/// the ids that edges mention in ascending order (strings: in order of appearance), and the column
/// `user_id` leads back. Ids that are 0..N-1 anyway are kept.
///
/// # Errors
/// For the first invalid value, with file and line; if the id map exceeds `memory`. Nothing is left
/// at `out` then.
pub fn tables(options: &TableOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing tables")
}

fn import(options: &TableOptions, out: &Path) -> Result<Imported> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).at(parent)?;
    if options.reverse && options.symmetrize {
        return Err(both_reverses());
    }
    check_symmetrize(options)?;
    let order = node_order(options)?;
    let mut maps = IdMaps::new();
    let share = options.memory / 4 * 3 / order.len().max(1) as u64;
    let mut facts = Vec::new();
    for table in &options.nodes {
        maps.insert(table.ntype.clone(), nodes::read_ids(table, options, share, &mut facts)?);
    }
    for (ntype, count) in &options.num_nodes {
        match maps.get(ntype) {
            Some(ids) if ids.count() != *count => {
                return Err(Error::invalid(format!(
                    "the nodes table of {ntype} has {} rows, {count} nodes were stated",
                    ids.count()
                )));
            }
            Some(_) => {}
            None => {
                check_count(*count, options.memory, || format!("--num-nodes {ntype}={count}"))?;
                maps.insert(ntype.clone(), Ids::Kept(*count));
            }
        }
    }
    let mut spools = Vec::new();
    for table in &options.edges {
        spools.push(edges::read(table, options, &mut maps, share, parent, &mut facts)?);
    }
    if let (Some(table), true) =
        (options.edges.first(), spools.iter().all(|(spool, _)| spool.edges == 0))
    {
        return Err(empty_graph(&table.path));
    }
    for ids in maps.values_mut() {
        if let Ids::Open(collector) = ids {
            *ids = std::mem::take(collector).seal(share)?;
        }
    }
    let largest = maps.values().map(Ids::count).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(largest))?;
    let files: Vec<String> = options.edges.iter().map(|t| t.path.display().to_string()).collect();
    writer.origin(json!({ "importer": "tables", "edges": files }));
    let mut renumbered = Vec::new();
    for ntype in &order {
        let ids = &maps[ntype];
        writer.add_node_type(ntype, ids.count());
        if ids.write(&mut writer, ntype)? {
            renumbered.push(ntype.clone());
        }
    }
    for table in &options.nodes {
        nodes::write(&mut writer, table, options)?;
    }
    let mut plain = true;
    for (table, (mut spool, carried)) in options.edges.iter().zip(spools) {
        let Triple { src, dst, .. } = &table.triple;
        plain &= spool.plain();
        let reverses = match (options.reverse, options.symmetrize && src == dst) {
            (true, _) => Reverses::Apart,
            (false, true) => Reverses::Same,
            (false, false) => Reverses::None,
        };
        carried.splits.report(&mut writer, &table.triple.to_string());
        let (mut names, mut count) = (Vec::new(), None);
        if let Some(classes) = carried.classes {
            classes.report(&mut writer, &table.triple);
            names = classes.names(
                |name| writer.edge_column(&table.triple, name, &[]),
                |name| writer.edge_column(&table.triple, name, &[]),
            )?;
            count = Some(classes.count());
            spool.classes = classes.numbering();
        }
        spool.store(&mut writer, &table.triple, (&maps[src], &maps[dst]), reverses, names)?;
        writer.edge_type(&table.triple)?.classes = count;
    }
    drop(maps);
    let coalesce = options.coalesce.unwrap_or(options.symmetrize && plain);
    let made = finish(
        writer,
        FinishOptions { memory: options.memory, coalesce, ..Default::default() },
        renumbered,
    )?;
    Ok(Imported { tables: facts, ..made })
}

/// Logs the edges that stay unchanged where reverses are to be stored as edges of the same type.
///
/// # Errors
/// If all do.
fn check_symmetrize(options: &TableOptions) -> Result<()> {
    if !options.symmetrize {
        return Ok(());
    }
    let between = options.edges.iter().map(|table| &table.triple).filter(|t| t.src != t.dst);
    let between: Vec<String> = between.map(Triple::to_string).collect();
    if between.is_empty() {
        return Ok(());
    }
    let hint = "--reverse stores reverses as edge types of their own";
    let apart = between.join(", ");
    if between.len() == options.edges.len() {
        return Err(Error::usage(format!(
            "--symmetrize does nothing to edges of {apart}: their ends are of two types"
        ))
        .hint(hint));
    }
    tracing::warn!(
        "--symmetrize leaves edges of {apart} as they are: their ends are of two types; {hint}"
    );
    Ok(())
}

/// Node types in the order of tables, stated counts, types that are mentioned, edges.
fn node_order(options: &TableOptions) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let mut add = |name: &String| {
        if !order.contains(name) {
            order.push(name.clone());
        }
    };
    options.nodes.iter().for_each(|t| add(&t.ntype));
    options.num_nodes.iter().for_each(|(name, _)| add(name));
    options.mentioned.iter().for_each(&mut add);
    let typed = !options.nodes.is_empty();
    for table in &options.edges {
        for name in [&table.triple.src, &table.triple.dst] {
            let known = options.nodes.iter().any(|t| t.ntype == *name)
                || options.num_nodes.iter().any(|(n, _)| n == name)
                || options.mentioned.contains(name);
            if typed && !known {
                let known: Vec<&str> = options.nodes.iter().map(|t| t.ntype.as_str()).collect();
                return Err(Error::usage(format!("{}: unknown node type '{name}'", table.triple))
                    .hint(format!("node tables are given for: {}", known.join(", "))));
            }
            add(name);
        }
    }
    if options.edges.is_empty() {
        return Err(Error::usage("no table of edges is given"));
    }
    let is_end = |name: &String| {
        options.edges.iter().any(|table| table.triple.src == *name || table.triple.dst == *name)
    };
    let stated = options.num_nodes.iter().map(|(name, _)| name);
    let mut unknown =
        stated.filter(|name| !is_end(name) && !options.nodes.iter().any(|t| t.ntype == **name));
    if let Some(name) = unknown.next() {
        return Err(Error::usage(format!(
            "a number of nodes is stated for the unknown type '{name}'"
        ))
        .hint(format!(
            "node types are: {}",
            order.iter().filter(|of| *of != name).cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    if let Some(name) = options.mentioned.iter().find(|name| !is_end(name)) {
        return Err(Error::usage(format!("node type '{name}' has no table, and no edges"))
            .hint("give the table of its nodes, or of edges that mention them"));
    }
    Ok(order)
}
