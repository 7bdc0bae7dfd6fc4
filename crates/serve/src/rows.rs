//! Features of a partitioned graph, as a row source.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_sample::parts::Routes;
use gnarl_store::placement::{Place, Placement};
use gnarl_store::{RowSource, Rows};

use crate::access::PartAccess;

/// Dense features of all nodes of a type, from the parts that have them: servers are
/// called concurrently, and local files are read meanwhile. Put a cache in front
/// ([`CachePolicy`](gnarl_store::cache::CachePolicy)) to fetch less.
pub struct DividedRows {
    placement: Arc<dyn Placement>,
    ntype: String,
    parts: Vec<PartAccess>,
    width: usize,
}

/// Features are with the part that owns the node.
struct Owners(Routes);

impl Placement for Owners {
    fn name(&self) -> &'static str {
        "owner"
    }

    fn rows(&self) -> u64 {
        self.0.num_nodes() as u64
    }

    fn parts(&self) -> usize {
        self.0.num_parts()
    }

    fn place(&self, id: u64) -> Place {
        Place::Part(self.0.owner(id as u32))
    }
}

impl DividedRows {
    /// Features of `width` values of the nodes of type `ntype`, those of part `p` from `parts[p]`.
    ///
    /// # Errors
    /// If a part is missing.
    pub fn new(ntype: &str, routes: Routes, parts: Vec<PartAccess>, width: usize) -> Result<Self> {
        Self::of_type(ntype, Arc::new(Owners(routes)), parts, width)
    }

    /// Features of the nodes of type `ntype`, located by `placement`.
    ///
    /// # Errors
    /// If a part is missing.
    pub fn of_type(
        ntype: &str,
        placement: Arc<dyn Placement>,
        parts: Vec<PartAccess>,
        width: usize,
    ) -> Result<Self> {
        if parts.len() != placement.parts() {
            let (found, wanted) = (parts.len(), placement.parts());
            return Err(Error::usage(format!(
                "expected features of {wanted} parts, found {found}"
            )));
        }
        Ok(Self { placement, ntype: ntype.into(), parts, width })
    }

    /// Splits the positions of `ids` by part; replicated rows go to a local part.
    fn places(&self, ids: &[u64]) -> Result<Vec<Vec<usize>>> {
        let nodes = self.placement.rows();
        let near = self.parts.iter().position(PartAccess::is_here).unwrap_or(0);
        let mut places = vec![Vec::new(); self.parts.len()];
        for (place, &id) in ids.iter().enumerate() {
            if id >= nodes {
                return Err(Error::invalid(format!("node {id} is not one of {nodes} nodes")));
            }
            match self.placement.place(id) {
                Place::Part(part) => places[part].push(place),
                Place::Everywhere => places[near].push(place),
            }
        }
        Ok(places)
    }
}

impl RowSource for DividedRows {
    fn width(&self) -> usize {
        self.width
    }

    fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
        if out.len() != ids.len() * self.width {
            let found = out.len();
            let rows = ids.len();
            let width = self.width;
            return Err(Error::invalid(format!(
                "expected {rows} rows of width {width}, found {found} values"
            )));
        }
        let places = self.places(ids)?;
        let asked = places.iter().zip(&self.parts).filter(|(places, _)| !places.is_empty());
        let (mut remote, mut local) = (Vec::new(), Vec::new());
        for (places, part) in asked {
            let nodes: Vec<u64> = places.iter().map(|&place| ids[place]).collect();
            match part {
                PartAccess::Remote(part) => {
                    remote.push((places, part.begin_features(Some(&self.ntype), nodes)));
                }
                PartAccess::Local(part) => local.push((places, part, nodes)),
            }
        }
        let mut put = |places: &[usize], rows: &[f32]| {
            for (&place, row) in places.iter().zip(rows.chunks(self.width.max(1))) {
                out[place * self.width..(place + 1) * self.width].copy_from_slice(row);
            }
        };
        let mut rows = Vec::new();
        for (places, part, nodes) in local {
            rows.resize(nodes.len() * self.width, 0.0);
            part.features_into(Some(&self.ntype), &nodes, &mut rows)?;
            put(places, &rows);
        }
        for (places, reply) in remote {
            match reply()? {
                Rows::Dense(rows) if rows.len() == places.len() * self.width => put(places, &rows),
                Rows::Dense(rows) => {
                    let found = rows.len();
                    let nodes = places.len();
                    let width = self.width;
                    let what =
                        format!("expected {nodes} rows of width {width}, found {found} values");
                    return Err(Error::invalid(what));
                }
                Rows::Sparse { .. } => {
                    return Err(Error::invalid("expected dense features, found sparse ones"));
                }
            }
        }
        Ok(())
    }
}
