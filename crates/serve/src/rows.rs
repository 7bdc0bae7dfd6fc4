//! Feature rows of a graph that lies in parts.

use gnarl_graph::{Error, Result};
use gnarl_sample::parts::Routes;
use gnarl_store::{RowSource, Rows};

use crate::access::PartAccess;

/// Dense feature rows of all nodes, from the parts that own them: servers are asked at the same time,
/// and while they work, local files are read. Put a cache before it
/// ([`CachePolicy`](gnarl_store::cache::CachePolicy)) to ask for less.
pub struct DividedRows {
    routes: Routes,
    parts: Vec<PartAccess>,
    width: usize,
}

impl DividedRows {
    /// Rows of `width` values, those of part `p` from `parts[p]`.
    ///
    /// # Errors
    /// If a part is missing.
    pub fn new(routes: Routes, parts: Vec<PartAccess>, width: usize) -> Result<Self> {
        if parts.len() != routes.num_parts() {
            let (found, wanted) = (parts.len(), routes.num_parts());
            return Err(Error::usage(format!("rows of {found} parts for {wanted} parts")));
        }
        Ok(Self { routes, parts, width })
    }

    /// Which places of `ids` each part has the rows of.
    fn places(&self, ids: &[u64]) -> Result<Vec<Vec<usize>>> {
        let nodes = self.routes.num_nodes();
        let mut places = vec![Vec::new(); self.parts.len()];
        for (place, &id) in ids.iter().enumerate() {
            if id >= nodes as u64 {
                return Err(Error::invalid(format!("node {id} is not one of {nodes} nodes")));
            }
            places[self.routes.owner(id as u32)].push(place);
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
            let (found, rows, width) = (out.len(), ids.len(), self.width);
            return Err(Error::invalid(format!("{found} values for {rows} rows of {width}")));
        }
        let places = self.places(ids)?;
        let asked = places.iter().zip(&self.parts).filter(|(places, _)| !places.is_empty());
        let (mut remote, mut local) = (Vec::new(), Vec::new());
        for (places, part) in asked {
            let nodes: Vec<u64> = places.iter().map(|&place| ids[place]).collect();
            match part {
                PartAccess::Remote(part) => remote.push((places, part.begin_features(nodes))),
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
            part.features_into(&nodes, &mut rows)?;
            put(places, &rows);
        }
        for (places, reply) in remote {
            match reply()? {
                Rows::Dense(rows) if rows.len() == places.len() * self.width => put(places, &rows),
                Rows::Dense(rows) => {
                    let (found, nodes, width) = (rows.len(), places.len(), self.width);
                    let what = format!("{found} values came for {nodes} rows of {width}");
                    return Err(Error::invalid(what));
                }
                Rows::Sparse { .. } => {
                    return Err(Error::invalid("sparse rows came instead of dense ones"));
                }
            }
        }
        Ok(())
    }
}
