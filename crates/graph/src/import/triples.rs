//! Knowledge graphs: files of head, relation, tail, as text or as npy arrays of three columns.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::array::id_table;
use super::extra::Extra;
use super::ids::{Collector, Ids, StringIds};
use super::spool::Spool;
use super::table::{Batch, Cell, CsvFormat, CsvReader, TableReader, string_pairs};
use super::{Imported, Reverses, finish};
use crate::column::ColumnSpec;
use crate::error::{Context, Error, Result, ResultExt};
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Files and choices of [`triples`].
#[derive(Debug, Clone)]
pub struct TriplesOptions {
    /// Training triples: head, relation, tail in each line, or in each row of an npy array.
    pub train: PathBuf,
    /// Validation triples.
    pub valid: Option<PathBuf>,
    /// Test triples.
    pub test: Option<PathBuf>,
    /// Number of entities, for integer ids that are to be kept as they are.
    pub num_entities: Option<u64>,
    /// Between fields; found out from the first line otherwise.
    pub delimiter: Option<u8>,
    /// Bytes the import may hold.
    pub memory: u64,
}

/// Node type of the entities.
pub(super) const ENTITY: &str = "entity";

/// Edge type of the triples.
pub(super) fn entity_edges() -> Triple {
    Triple { src: ENTITY.into(), rel: "to".into(), dst: ENTITY.into() }
}

/// Makes the dataset `out` of one node type `entity` and one edge type `entity:to:entity`, whose
/// columns `relation` (u32) and `split` (u8: 0 train, 1 valid, 2 test) tell the edges apart: one
/// edge type for each of hundreds of relations would be slow and unreadable. String relations are
/// numbered in order of appearance; `relation_name.offsets` and `relation_name.bytes` lead back.
///
/// # Errors
/// For the first bad line, by file and number; if the id map exceeds `memory`.
pub fn triples(options: &TriplesOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing triples")
}

fn import(options: &TriplesOptions, out: &Path) -> Result<Imported> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).at(parent)?;
    let format = CsvFormat { delimiter: options.delimiter, header: Some(false) };
    let integer = match is_array(&options.train) {
        true => [true; 3],
        false => {
            let first = CsvReader::open(&options.train, &format, "")?;
            check_width(first.name(), first.columns().len())?;
            [0, 1, 2].map(|column| first.looks_integer(column))
        }
    };
    let share = options.memory / 4 * 3;
    let entities = match (integer[0] && integer[2], options.num_entities) {
        (true, Some(count)) => Ids::Kept(count),
        (true, None) => Ids::Open(Collector::default()),
        (false, _) => Ids::Strings { ids: StringIds::default(), closed: false },
    };
    let raw = matches!(entities, Ids::Open(_));
    let mut job = Job {
        relations: if integer[1] { None } else { Some(StringIds::default()) },
        spool: Spool::create(parent, vec![Extra::Relation, Extra::Split], (raw, raw))?,
        entities,
        memory: share,
    };
    let files = [Some(&options.train), options.valid.as_ref(), options.test.as_ref()];
    for (split, path) in files.into_iter().enumerate() {
        match path {
            Some(path) if is_array(path) => job.read_array(path, split)?,
            Some(path) => job.read(CsvReader::open(path, &format, "")?, split)?,
            None => {}
        }
    }
    let entities = match job.entities {
        Ids::Open(collector) => collector.seal(share)?,
        other => other,
    };
    let count = entities.count();
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(count))?;
    writer.origin(json!({ "importer": "triples", "train": options.train.display().to_string() }));
    writer.add_node_type(ENTITY, count);
    let renumbered = entities.write(&mut writer, ENTITY)?;
    let triple = entity_edges();
    let names = match &job.relations {
        Some(relations) => relation_names(&writer, &triple, relations)?,
        None => Vec::new(),
    };
    job.spool.store(&mut writer, &triple, (&entities, &entities), Reverses::None, names)?;
    drop(entities);
    let renumbered = if renumbered { vec![ENTITY.to_string()] } else { Vec::new() };
    finish(writer, FinishOptions { memory: options.memory, coalesce: false }, renumbered)
}

fn is_array(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

fn check_width(name: &str, columns: usize) -> Result<()> {
    if columns == 3 {
        return Ok(());
    }
    let text = format!("{name}: {columns} columns, triples have 3 columns: head, relation, tail");
    Err(Error::invalid(text))
}

fn relation_names(
    writer: &DatasetWriter,
    triple: &Triple,
    relations: &StringIds,
) -> Result<Vec<ColumnSpec>> {
    let mut offsets = writer.edge_column::<u64>(triple, "relation_name.offsets", &[])?;
    let mut bytes = writer.edge_column::<u8>(triple, "relation_name.bytes", &[])?;
    relations.write(&mut offsets, &mut bytes)?;
    Ok(vec![offsets.finish()?, bytes.finish()?])
}

struct Job {
    entities: Ids,
    relations: Option<StringIds>,
    spool: Spool,
    memory: u64,
}

impl Job {
    fn read(&mut self, mut reader: CsvReader, split: usize) -> Result<()> {
        let text = matches!(self.entities, Ids::Strings { .. });
        let entity = if text { Cell::Text } else { Cell::Integer };
        let relation = if self.relations.is_some() { Cell::Text } else { Cell::Integer };
        check_width(reader.name(), reader.columns().len())?;
        reader.select(vec![(0, entity), (1, relation), (2, entity)])?;
        let mut batch = Batch::default();
        while reader.next(&mut batch)? {
            let place = |row: usize| reader.place(batch.places[row]);
            let (heads, tails) = match &mut self.entities {
                Ids::Strings { ids, .. } => string_pairs(&batch, (0, 2), ids, self.memory)?,
                _ => {
                    let [heads, tails] = [0, 2].map(|column| batch.columns[column].integers());
                    self.check(heads, &place)?;
                    self.check(tails, &place)?;
                    (heads.to_vec(), tails.to_vec())
                }
            };
            let mut values = match &mut self.relations {
                Some(ids) => {
                    let number = |row| ids.insert(batch.columns[1].text(row), self.memory);
                    (0..batch.rows()).map(number).map(|n| Ok(n?.0 as f64)).collect::<Result<_>>()?
                }
                None => relations(batch.columns[1].integers(), &place)?,
            };
            values.resize(2 * batch.rows(), split as f64);
            self.spool.push(&heads, &tails, &values)?;
        }
        Ok(())
    }

    fn read_array(&mut self, path: &Path, split: usize) -> Result<()> {
        let name = path.display();
        if matches!(self.entities, Ids::Strings { .. }) || self.relations.is_some() {
            return Err(Error::invalid(format!(
                "{name}: ids are integers, in the training file names"
            ))
            .hint("give all files the same kind of ids"));
        }
        let (ids, width) = id_table(path, "id")?;
        check_width(&name.to_string(), width)?;
        let place = |row: usize| format!("{name}: row {row}");
        let column =
            |i: usize| -> Vec<i64> { ids.iter().skip(i).step_by(3).map(|&id| id as i64).collect() };
        let (heads, tails) = (column(0), column(2));
        self.check(&heads, &place)?;
        self.check(&tails, &place)?;
        let mut values = relations(&column(1), &place)?;
        values.resize(2 * heads.len(), split as f64);
        self.spool.push(&heads, &tails, &values)
    }

    /// Takes note of entities, or refuses those that do not exist.
    fn check(&mut self, integers: &[i64], place: &dyn Fn(usize) -> String) -> Result<()> {
        match &mut self.entities {
            Ids::Open(collector) => collector.add(integers, self.memory),
            kept => match integers.iter().position(|&id| kept.find(id).is_none()) {
                Some(row) => {
                    let id = integers[row].to_string();
                    Err(super::ids::unknown(&place(row), &id, ENTITY, kept))
                }
                None => Ok(()),
            },
        }
    }
}

/// Numbers of relations.
fn relations(integers: &[i64], place: &dyn Fn(usize) -> String) -> Result<Vec<f64>> {
    match integers.iter().position(|&r| u32::try_from(r).is_err()) {
        None => Ok(integers.iter().map(|&r| r as f64).collect()),
        Some(row) => {
            let text = format!("{}: relation {} is not a u32", place(row), integers[row]);
            Err(Error::invalid(text))
        }
    }
}
