//! Parameters: named matrices in one flat buffer, so that all-reduce, optimizers, averaging and
//! checkpoints are operations on slices.

use std::ops::Range;

use gnarl_common::rng::Key;

/// The initialization of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// Uniform in ±√(6 / (rows + cols)) (Glorot and Bengio, AISTATS 2010).
    XavierUniform,
    /// Uniform in ±√(6 / rows), `rows` being the inputs (He et al., ICCV 2015).
    KaimingUniform,
    /// Uniform in ±a.
    Uniform(f32),
    /// Normal with mean 0 and the given standard deviation.
    Normal(f32),
}

/// The id of a parameter: a position in [`Params::specs`], or adjacent parameters joined into one
/// (see [`ParamsBuilder::join`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamId(usize);

/// One parameter's name, shape and place in the flat buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamSpec {
    /// Unique name, the key in checkpoints.
    pub name: String,
    /// Rows of the matrix (inputs of a linear map).
    pub rows: usize,
    /// Columns of the matrix (outputs of a linear map).
    pub cols: usize,
    /// First value in the flat buffer.
    pub offset: usize,
    /// Initialization.
    pub init: Init,
}

impl ParamSpec {
    /// The values' place in the flat buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.cols
    }
}

/// First id of joined parameters.
const JOINED: usize = usize::MAX / 2;

/// All parameters of a model.
#[derive(Debug, Clone, Default)]
pub struct Params {
    specs: Vec<ParamSpec>,
    joined: Vec<ParamSpec>,
    flat: Vec<f32>,
}

impl Params {
    /// Descriptions of all parameters, in the order of the flat buffer.
    pub fn specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// The ids of all parameters, in order.
    pub fn ids(&self) -> impl Iterator<Item = ParamId> + use<> {
        (0..self.specs.len()).map(ParamId)
    }

    /// The parameter called `name`.
    pub fn find(&self, name: &str) -> Option<ParamId> {
        self.specs.iter().position(|s| s.name == name).map(ParamId)
    }

    /// One parameter's description.
    pub fn spec(&self, id: ParamId) -> &ParamSpec {
        match id.0.checked_sub(JOINED) {
            Some(position) => &self.joined[position],
            None => &self.specs[id.0],
        }
    }

    /// Rows and columns of a parameter.
    pub fn shape(&self, id: ParamId) -> (usize, usize) {
        (self.spec(id).rows, self.spec(id).cols)
    }

    /// One parameter's values, row by row.
    pub fn get(&self, id: ParamId) -> &[f32] {
        &self.flat[self.spec(id).range()]
    }

    /// One parameter's values for writing.
    pub fn get_mut(&mut self, id: ParamId) -> &mut [f32] {
        let range = self.spec(id).range();
        &mut self.flat[range]
    }

    /// All values.
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// All values for writing.
    pub fn flat_mut(&mut self) -> &mut [f32] {
        &mut self.flat
    }

    /// Number of values over all parameters.
    pub fn len(&self) -> usize {
        self.flat.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.flat.is_empty()
    }
}

/// Adds parameters and initializes them. Every value is a function of the key, the parameter's name
/// and the position in it, so that adding a layer leaves the others' start unchanged.
#[derive(Debug)]
pub struct ParamsBuilder {
    key: Key,
    /// Prefix of names.
    prefix: String,
    params: Params,
}

impl ParamsBuilder {
    /// A builder that draws from `key`.
    pub fn new(key: Key) -> Self {
        Self { key, prefix: String::new(), params: Params::default() }
    }

    /// Adds a `rows × cols` parameter.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        rows: usize,
        cols: usize,
        init: Init,
    ) -> ParamId {
        let (name, offset) = (self.prefix.clone() + &name.into(), self.params.len());
        assert!(self.params.find(&name).is_none(), "parameter {name} added twice");
        let key = self.key.with(hash(&name));
        let uniform = |a: f32, i| (2.0 * key.unit(i) as f32 - 1.0) * a;
        self.params.flat.extend((0..(rows * cols) as u64).map(|i| match init {
            Init::Zeros => 0.0,
            Init::Ones => 1.0,
            Init::XavierUniform => uniform((6.0 / (rows + cols) as f32).sqrt(), i),
            Init::KaimingUniform => uniform((6.0 / rows as f32).sqrt(), i),
            Init::Uniform(a) => uniform(a, i),
            Init::Normal(deviation) => key.normal(i) as f32 * deviation,
        }));
        self.params.specs.push(ParamSpec { name, rows, cols, offset, init });
        ParamId(self.params.specs.len() - 1)
    }

    /// Calls `add`, whose parameters' names begin with `prefix`.
    pub fn scoped<T>(&mut self, prefix: &str, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.prefix.len();
        self.prefix.push_str(prefix);
        let added = add(self);
        self.prefix.truncate(before);
        added
    }

    /// Two parameters added one right after the other, taken as one with the rows of both: a
    /// second way to address the same values, not a parameter of its own.
    ///
    /// # Panics
    /// If `lower` does not follow `upper` or has another width.
    pub fn join(&mut self, upper: ParamId, lower: ParamId) -> ParamId {
        let (first, second) = (self.params.spec(upper), self.params.spec(lower));
        assert_eq!(first.range().end, second.offset, "{} follows {}", second.name, first.name);
        assert_eq!(first.cols, second.cols, "{} is as wide as {}", second.name, first.name);
        let name = format!("{} + {}", first.name, second.name);
        let joined = ParamSpec { name, rows: first.rows + second.rows, ..first.clone() };
        self.params.joined.push(joined);
        ParamId(JOINED + self.params.joined.len() - 1)
    }

    /// The finished parameters.
    pub fn build(self) -> Params {
        self.params
    }
}

/// FNV-1a: stable over versions, unlike the standard library's hasher.
fn hash(name: &str) -> u64 {
    gnarl_common::fnv1a(name.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_depends_on_its_name_not_its_place() {
        let mut one = ParamsBuilder::new(Key::new(5));
        let a = one.add("a", 3, 4, Init::XavierUniform);
        let mut two = ParamsBuilder::new(Key::new(5));
        two.add("b", 2, 2, Init::Normal(1.0));
        let b = two.add("a", 3, 4, Init::XavierUniform);
        let (one, two) = (one.build(), two.build());
        assert_eq!(one.get(a), two.get(b));
        let bound = (6.0f32 / 7.0).sqrt();
        assert!(one.get(a).iter().all(|v| v.abs() <= bound));
        assert_eq!(two.find("a"), Some(b));
    }

    #[test]
    fn joined_parameters_are_the_same_values() {
        let mut builder = ParamsBuilder::new(Key::new(5));
        let upper = builder.add("upper", 2, 3, Init::Ones);
        let lower = builder.add("lower", 1, 3, Init::Zeros);
        let both = builder.join(upper, lower);
        let params = builder.build();
        assert_eq!(params.shape(both), (3, 3));
        assert_eq!(params.get(both), [params.get(upper), params.get(lower)].concat());
        assert_eq!(params.ids().count(), 2);
    }
}
