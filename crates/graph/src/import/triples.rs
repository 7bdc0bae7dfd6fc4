//! Knowledge graphs: files of head, relation, tail, as text or as npy arrays of three columns.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result, ResultExt};
use serde_json::json;

use super::array::id_table;
use super::entities::{ENTITY, entity_edges};
use super::errors::check_count;
use super::extra::Extra;
use super::ids::{Collector, Ids, StringIds, write_strings};
use super::input::{Input, names};
use super::report::{Imported, finish};
use super::reverses::Reverses;
use super::spool::Spool;
use super::table::{
    Batch, Cell, CsvFormat, CsvReader, Expected, TableFacts, TableReader, called, string_pairs,
    text_id,
};
use crate::column::ColumnSpec;
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Files and options of [`triples`].
#[derive(Debug, Clone)]
pub struct TriplesOptions {
    /// Training triples: head, relation, tail in each line, or in each row of an npy array.
    pub train: PathBuf,
    /// Validation triples.
    pub valid: Option<PathBuf>,
    /// Test triples.
    pub test: Option<PathBuf>,
    /// Number of entities, for integer ids that are to be kept.
    pub num_entities: Option<u64>,
    /// Names of entities whose ids are integers, one in each line from number 0 on: ids are kept.
    pub entities: Option<PathBuf>,
    /// Names of relations that are integers, one in each line from number 0 on.
    pub relations: Option<PathBuf>,
    /// Field delimiter; detected from the first line by default.
    pub delimiter: Option<u8>,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl TriplesOptions {
    /// Only training triples, 1 GiB of memory.
    pub fn new(train: impl Into<PathBuf>) -> Self {
        Self {
            train: train.into(),
            valid: None,
            test: None,
            num_entities: None,
            entities: None,
            relations: None,
            delimiter: None,
            memory: 1 << 30,
        }
    }
}

/// Makes the dataset `out` of one node type `entity` and one edge type `entity:to:entity`, whose
/// columns `relation` (u32) and `split` (u8: 0 train, 1 valid, 2 test) distinguish the edges: one
/// edge type for each of hundreds of relations would be slow and unreadable. Relations that are
/// strings, or have names in a file, are numbered in order of appearance;
/// `relation_name.offsets` and `relation_name.bytes` map them back. Names of entities become their
/// `user_id`.
///
/// # Errors
/// For the first invalid line, by file and number; if the id map exceeds `memory`.
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
            let first = open(&options.train, &format)?;
            check_width(&first)?;
            [0, 1, 2].map(|column| first.looks_integer(column))
        }
    };
    let share = options.memory / 4 * 3;
    let numbered = integer[0] && integer[2];
    let named = Named::read(options, numbered, integer[1])?;
    let count = match (&named.entities, options.num_entities) {
        (Some(names), Some(count)) if names.len() != count => {
            let message = format!("{} names of entities, --num-entities {count}", names.len());
            return Err(Error::usage(message).hint("the file of names counts entities by itself"));
        }
        (Some(names), _) => Some(names.len()),
        (None, count) => count,
    };
    let entities = match count {
        Some(count) if numbered => {
            check_count(count, options.memory, || "--num-entities".into())?;
            Ids::Kept(count)
        }
        None if numbered => Ids::Open(Collector::default()),
        _ => Ids::Strings { ids: StringIds::default(), closed: false },
    };
    let raw = matches!(entities, Ids::Open(_));
    let mut job = Job {
        relations: match (named.relations, integer[1]) {
            (Some(names), _) => Relations::Named { names, met: StringIds::default() },
            (None, true) => Relations::Numbers,
            (None, false) => Relations::Texts(StringIds::default()),
        },
        spool: Spool::create(parent, vec![Extra::Relation, Extra::Split], (raw, raw))?,
        entities,
        memory: share,
        tables: Vec::new(),
    };
    let files = [Some(&options.train), options.valid.as_ref(), options.test.as_ref()];
    for (split, path) in files.into_iter().enumerate() {
        match path {
            Some(path) if is_array(path) => job.read_array(path, split)?,
            Some(path) => job.read(open(path, &format)?, split)?,
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
    if let Some(names) = &named.entities {
        write_strings(&mut writer, ENTITY, names)?;
    }
    let triple = entity_edges();
    let names = match &job.relations {
        Relations::Texts(names) | Relations::Named { met: names, .. } => {
            relation_names(&writer, &triple, names)?
        }
        Relations::Numbers => Vec::new(),
    };
    job.spool.store(&mut writer, &triple, (&entities, &entities), Reverses::None, names)?;
    drop(entities);
    let renumbered = if renumbered { vec![ENTITY.to_string()] } else { Vec::new() };
    let finished = FinishOptions { memory: options.memory, coalesce: false, ..Default::default() };
    Ok(Imported { tables: job.tables, ..finish(writer, finished, renumbered)? })
}

/// Opens a text file of triples, which has no header.
fn open(path: &Path, format: &CsvFormat) -> Result<CsvReader> {
    let expected = Expected { strict: true, ..Expected::default() };
    CsvReader::expecting(Input::open(path)?, path, format, &expected)
}

/// Names for integers, from files.
struct Named {
    entities: Option<StringIds>,
    relations: Option<Vec<String>>,
}

impl Named {
    /// Reads them, where entities and relations are integers; warns of files that look like such
    /// names and are not requested: they might belong to other triples.
    fn read(options: &TriplesOptions, entities: bool, relations: bool) -> Result<Self> {
        let wanted = [
            ("entities", &options.entities, entities),
            ("relations", &options.relations, relations),
        ];
        for (what, given, integers) in wanted {
            if given.is_some() && !integers {
                let train = options.train.display();
                return Err(Error::usage(format!("--{what}: {what} of {train} are names already"))
                    .hint("a file of names is for integers"));
            }
            let beside = options.train.with_file_name(format!("{what}.txt"));
            if given.is_none() && integers && beside.exists() {
                tracing::warn!(
                    "{} is not used, {what} are called by their numbers; --{what} {0} takes names from it",
                    beside.display()
                );
            }
        }
        let mut ids = None;
        if let Some(path) = &options.entities {
            let mut known = StringIds::default();
            for name in names(path)? {
                known.insert(name.as_bytes(), options.memory / 4)?;
            }
            ids = Some(known);
        }
        Ok(Self { entities: ids, relations: options.relations.as_deref().map(names).transpose()? })
    }
}

fn is_array(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

fn check_width(reader: &CsvReader) -> Result<()> {
    let columns = reader.columns().len();
    let delimiter = reader.delimiter().map(called).unwrap_or_default();
    width_of(reader.name(), columns)
        .map_err(|e| e.hint(format!("taken as separated by {delimiter}")))
}

fn width_of(name: &str, columns: usize) -> Result<()> {
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

/// The numbering of relations.
enum Relations {
    Numbers,
    /// Strings in order of appearance.
    Texts(StringIds),
    /// Integers that index lines of a file, also in order of appearance, so that numbers have no
    /// gaps.
    Named {
        names: Vec<String>,
        met: StringIds,
    },
}

struct Job {
    entities: Ids,
    relations: Relations,
    spool: Spool,
    memory: u64,
    tables: Vec<TableFacts>,
}

impl Job {
    fn read(&mut self, mut reader: CsvReader, split: usize) -> Result<()> {
        let text = matches!(self.entities, Ids::Strings { .. });
        let entity = if text { Cell::Text } else { Cell::Integer };
        let texts = matches!(self.relations, Relations::Texts(_));
        let relation = if texts { Cell::Text } else { Cell::Integer };
        check_width(&reader)?;
        reader.select(vec![(0, entity), (1, relation), (2, entity)])?;
        let (mut batch, mut told) = (Batch::default(), false);
        while reader.next(&mut batch)? {
            if !std::mem::replace(&mut told, true) {
                self.tables.push(TableFacts::of_triples(&reader, &batch));
            }
            let place = |row: usize| reader.place(batch.places[row]);
            let (heads, tails) = match &mut self.entities {
                Ids::Strings { ids, .. } => {
                    string_pairs(&reader, &batch, (0, 2), ids, self.memory)?
                }
                _ => {
                    let [heads, tails] = [0, 2].map(|column| batch.columns[column].integers());
                    self.check(heads, &place)?;
                    self.check(tails, &place)?;
                    (heads.to_vec(), tails.to_vec())
                }
            };
            let mut values = match &mut self.relations {
                Relations::Texts(ids) => {
                    let mut values = Vec::with_capacity(2 * batch.rows());
                    for row in 0..batch.rows() {
                        let name = text_id(&reader, &batch, 1, row)?;
                        values.push(ids.insert(name, self.memory)?.0 as f64);
                    }
                    values
                }
                _ => self.relations(batch.columns[1].integers(), &place)?,
            };
            values.resize(2 * batch.rows(), split as f64);
            self.spool.push(&heads, &tails, &values)?;
        }
        Ok(())
    }

    fn read_array(&mut self, path: &Path, split: usize) -> Result<()> {
        let name = path.display();
        let texts = matches!(self.relations, Relations::Texts(_));
        if matches!(self.entities, Ids::Strings { .. }) || texts {
            return Err(Error::invalid(format!(
                "{name}: ids are integers, in the training file names"
            ))
            .hint("give all files the same kind of ids"));
        }
        let (ids, width) = id_table(path, "id")?;
        width_of(&name.to_string(), width)?;
        let place = |row: usize| format!("{name}: row {row}");
        let column =
            |i: usize| -> Vec<i64> { ids.iter().skip(i).step_by(3).map(|&id| id as i64).collect() };
        let (heads, tails) = (column(0), column(2));
        self.check(&heads, &place)?;
        self.check(&tails, &place)?;
        let mut values = self.relations(&column(1), &place)?;
        values.resize(2 * heads.len(), split as f64);
        self.spool.push(&heads, &tails, &values)
    }

    /// Records entities, or rejects those that do not exist.
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

    /// Numbers of relations that are integers.
    fn relations(&mut self, given: &[i64], place: &dyn Fn(usize) -> String) -> Result<Vec<f64>> {
        let mut numbers = Vec::with_capacity(2 * given.len());
        for (row, &relation) in given.iter().enumerate() {
            let bad =
                |what: &str| Error::invalid(format!("{}: relation {relation} {what}", place(row)));
            let number = match &mut self.relations {
                Relations::Named { names, met } => {
                    let name = usize::try_from(relation).ok().and_then(|at| names.get(at));
                    let name = name.ok_or_else(|| {
                        bad("has no name")
                            .hint(format!("--relations names {}, numbered from 0", names.len()))
                    })?;
                    met.insert(name.as_bytes(), self.memory)?.0 as f64
                }
                _ => f64::from(u32::try_from(relation).map_err(|_| bad("is not a u32"))?),
            };
            numbers.push(number);
        }
        Ok(numbers)
    }
}
