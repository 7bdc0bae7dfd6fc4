//! Importers, datasets and generators, through files.

mod common;
mod damaged;
mod dataset;
mod edge_labels;
mod generate;
mod import_graphbolt;
mod import_npy;
mod import_npy_heterogeneous;
mod import_ogb;
mod import_ogb_links;
mod import_parquet;
mod import_parquet_types;
mod import_real;
mod import_schema;
mod import_tables;
mod import_values;
mod inspect;
mod torch;
mod user_ids;
