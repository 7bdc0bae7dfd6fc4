//! Embedding replicas of parts that train alone (CATGNN, section 3.3): each part has replicas of
//! the embeddings of its own nodes and of its HALO. When weights are averaged, so are the replicas
//! of an embedding, in proportion to the training nodes of the parts that have one, and every
//! replica is set to the mean.

use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;
use gnarl_store::RowSource;
use gnarl_store::embedding::{Embedding, Summed};

use super::{Fetch, RowGradients, Table, TableSpec};
use crate::state::OptimizerState;

/// A part's replicas of each table, with optimizers of their own.
pub(crate) struct Replicas {
    /// Part number.
    part: usize,
    /// Weight in a mean, not normalized.
    weight: f32,
    rows: Vec<Embedding>,
}

impl Replicas {
    /// Replicas of the rows with these ids, per table, in a part of so many training nodes.
    ///
    /// # Errors
    /// If an id repeats.
    pub fn new(
        part: usize,
        training: usize,
        specs: &[TableSpec],
        ids: Vec<Vec<u64>>,
    ) -> Result<Self> {
        let rows = specs.iter().zip(ids).map(|(spec, ids)| {
            Embedding::new(ids, spec.width, spec.bound, spec.key, spec.optimizer.clone())
        });
        Ok(Self { part, weight: training as f32, rows: rows.collect::<Result<_>>()? })
    }

    /// Sums gradients per table.
    ///
    /// # Errors
    /// If an id has no replica here.
    pub fn sum(&self, gradients: &[RowGradients]) -> Result<Vec<Summed>> {
        self.rows.iter().zip(gradients).map(|(rows, own)| own.sum(rows)).collect()
    }

    /// Updates the rows of each table.
    pub fn apply(&mut self, summed: &[Summed], lr: f32) {
        self.rows.iter_mut().zip(summed).for_each(|(rows, summed)| rows.apply(summed, lr));
    }

    /// Optimizer state, by table; counts of updates as numbers, exact up to 2²⁴, where Adam's
    /// corrections have long been 1.
    pub fn state(&self) -> OptimizerState {
        let entries = self.rows.iter().enumerate().flat_map(|(table, rows)| {
            let (state, steps) = rows.state();
            let steps = steps.iter().map(|&steps| steps as f32).collect();
            [(entry(table, "state"), state.to_vec()), (entry(table, "steps"), steps)]
        });
        entries.collect()
    }

    /// Restores the state from [`Replicas::state`].
    ///
    /// # Errors
    /// If it is of another part or model.
    pub fn load_state(&mut self, saved: &OptimizerState) -> Result<()> {
        for (table, rows) in self.rows.iter_mut().enumerate() {
            let find = |name: String| {
                let found = saved.iter().find(|(entry, _)| *entry == name);
                let lacks = || Error::invalid(format!("the checkpoint has no '{name}'"));
                found.map(|(_, values)| values).ok_or_else(lacks)
            };
            let (state, steps) = (find(entry(table, "state"))?, find(entry(table, "steps"))?);
            let steps: Vec<u32> = steps.iter().map(|&steps| steps as u32).collect();
            let values = rows.values().to_vec();
            rows.restore(&values, state, &steps)?;
        }
        Ok(())
    }

    /// Returns whether an entry of an optimizer's state belongs to replicas.
    pub fn owns(entry: &str) -> bool {
        entry.starts_with("rows.")
    }
}

fn entry(table: usize, what: &str) -> String {
    format!("rows.{table}.{what}")
}

impl Fetch for Replicas {
    fn fetch(&self, wanted: &[&[u64]]) -> Result<Vec<Tensor>> {
        let rows = self.rows.iter().zip(wanted).map(|(rows, ids)| {
            let mut out = Tensor::scratch(ids.len(), rows.width());
            rows.fetch(ids, out.data_mut())?;
            Ok(out)
        });
        rows.collect()
    }
}

impl Table {
    /// Sets the replicas of table number `table` in the rank's parts to their owners' embeddings. A
    /// collective of all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn refresh(
        &self,
        comm: &dyn Communicator,
        table: usize,
        parts: &mut [Replicas],
    ) -> Result<()> {
        let ids: Vec<u64> =
            parts.iter().flat_map(|replicas| replicas.rows[table].ids().iter()).collect();
        let rows = self.fetch(comm, &ids)?;
        let mut left = rows.data();
        for replicas in parts {
            let values = replicas.rows[table].values_mut();
            let (own, rest) = left.split_at(values.len());
            values.copy_from_slice(own);
            left = rest;
        }
        Ok(())
    }

    /// Sets each embedding to the mean of its replicas in all parts, added in the order of parts,
    /// so that it does not depend on the assignment of parts to ranks. A collective of all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn average(
        &mut self,
        comm: &dyn Communicator,
        table: usize,
        parts: &[Replicas],
    ) -> Result<()> {
        let width = self.rows.width();
        let mut outgoing = vec![Vec::new(); comm.size()];
        for replicas in parts.iter().filter(|replicas| replicas.weight > 0.0) {
            let rows = &replicas.rows[table];
            for (id, row) in rows.ids().iter().zip(rows.values().chunks_exact(width)) {
                let to = &mut outgoing[self.owners.of(id)];
                to.extend_from_slice(&(replicas.part as u64).to_le_bytes());
                to.extend_from_slice(&id.to_le_bytes());
                to.extend_from_slice(&replicas.weight.to_le_bytes());
                to.extend_from_slice(bytemuck::cast_slice(row));
            }
        }
        let came = comm.all_to_all("replicas of embeddings", outgoing)?;
        let length = 2 * size_of::<u64>() + (1 + width) * size_of::<f32>();
        if let Some(from) = came.iter().position(|bytes| !bytes.len().is_multiple_of(length)) {
            let message = format!("rank {from} sent no replicas of embeddings");
            return Err(Error::new(Kind::Rank, message));
        }
        let mut replicas: Vec<Sent<'_>> =
            came.iter().flat_map(|bytes| bytes.chunks_exact(length)).map(Sent).collect();
        replicas.sort_by_key(|copy| (copy.id(), copy.part()));
        for same in replicas.chunk_by(|a, b| a.id() == b.id()) {
            self.set_mean(same)?;
        }
        Ok(())
    }

    /// Sets an embedding to the mean of its replicas.
    fn set_mean(&mut self, replicas: &[Sent<'_>]) -> Result<()> {
        let id = replicas[0].id();
        let place = self.rows.ids().row(id).ok_or_else(|| {
            Error::new(Kind::Rank, format!("{}: row {id} belongs to another rank", self.name))
        })?;
        let total: f32 = replicas.iter().map(Sent::weight).sum();
        let width = self.rows.width();
        let row = &mut self.rows_mut()?.values_mut()[place * width..(place + 1) * width];
        row.fill(0.0);
        for copy in replicas {
            let share = copy.weight() / total;
            row.iter_mut().zip(copy.values()).for_each(|(mean, value)| *mean += share * value);
        }
        Ok(())
    }
}

/// A replica as a message: part, id, weight and values.
struct Sent<'a>(&'a [u8]);

impl Sent<'_> {
    fn part(&self) -> u64 {
        bytemuck::pod_read_unaligned(&self.0[..8])
    }

    fn id(&self) -> u64 {
        bytemuck::pod_read_unaligned(&self.0[8..16])
    }

    fn weight(&self) -> f32 {
        bytemuck::pod_read_unaligned(&self.0[16..20])
    }

    fn values(&self) -> impl Iterator<Item = f32> {
        self.0[20..].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_common::Home;
    use gnarl_engine::local;

    use super::*;

    fn spec() -> TableSpec {
        TableSpec::of_entities(5, 2)
    }

    /// Three parts of a graph: ids of their nodes, and training nodes.
    const PARTS: [(&[u64], usize); 3] = [(&[0, 1, 3], 30), (&[1, 2, 3], 10), (&[4, 0], 0)];

    fn averaged(ranks: usize) -> Vec<f32> {
        let all = local::run(ranks, Duration::from_secs(60), |comm| {
            let mut table = spec().share(None, (comm.rank(), ranks), &Home::Memory)?;
            let mine = (comm.rank()..PARTS.len()).step_by(ranks);
            let replicas = mine.map(|part| {
                let (ids, training) = PARTS[part];
                Replicas::new(part, training, &[spec()], vec![ids.to_vec()])
            });
            let mut replicas = replicas.collect::<Result<Vec<_>>>()?;
            table.refresh(comm, 0, &mut replicas)?;
            for replicas in &mut replicas {
                // Every part moves its rows by its number and one.
                let by = replicas.part as f32 + 1.0;
                replicas.rows[0].values_mut().iter_mut().for_each(|value| *value += by);
            }
            table.average(comm, 0, &replicas)?;
            table.refresh(comm, 0, &mut replicas)?;
            let all = table.fetch(comm, &[0, 1, 2, 3, 4])?.data().to_vec();
            for replicas in &replicas {
                for (id, row) in
                    replicas.rows[0].ids().iter().zip(replicas.rows[0].values().chunks(2))
                {
                    assert_eq!(row, &all[id as usize * 2..][..2], "every copy is the mean");
                }
            }
            Ok(all)
        });
        all.unwrap().swap_remove(0)
    }

    #[test]
    fn rows_become_the_means_of_their_copies() {
        let (before, after) = (spec().share(None, (0, 1), &Home::Memory).unwrap(), averaged(1));
        let moved: Vec<f32> =
            after.iter().zip(before.rows.values().iter()).map(|(a, b)| a - b).collect();
        // Row 0 is in part 0 and in part 2, which has weight 0; row 4 in part 2 alone.
        for (row, by) in [1.0, 1.25, 2.0, 1.25, 0.0].into_iter().enumerate() {
            assert!((moved[2 * row] - by).abs() < 1e-6, "row {row}: {moved:?}");
        }
        for ranks in 2..=4 {
            assert_eq!(averaged(ranks), after, "{ranks} ranks");
        }
    }

    #[test]
    fn copies_go_on_with_the_state_they_had() {
        let new = || Replicas::new(0, 1, &[spec()], vec![vec![3, 1]]).unwrap();
        let mut replicas = new();
        let mut gradients = RowGradients::default();
        gradients.push(&[1], Tensor::from_vec(1, 2, vec![1.0, -1.0]));
        let summed = replicas.sum(&[gradients]).unwrap();
        replicas.apply(&summed, 0.1);
        let mut again = new();
        again.load_state(&replicas.state()).unwrap();
        let [state, expected] = [&again, &replicas].map(|all| all.rows[0].state().0.to_vec());
        assert_eq!(state, expected);
        let [steps, expected] = [&again, &replicas].map(|all| all.rows[0].state().1.to_vec());
        assert_eq!(steps, expected);
        assert!(replicas.state().iter().all(|(entry, _)| Replicas::owns(entry)));
        let text = again.load_state(&Vec::new()).unwrap_err().to_string();
        assert!(text.contains("rows.0.state"), "{text}");
    }
}
