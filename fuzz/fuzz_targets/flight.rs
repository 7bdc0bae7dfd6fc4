//! Calls to a server of a part, over a connection: a byte for the call, then what it needs.
//!
//! Every call is answered, with a result or a status that blames the call.
#![no_main]

use std::sync::{Arc, LazyLock};

use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::{StreamExt, TryStreamExt, stream};
use gnarl_common::Home;
use gnarl_common::rng::Key;
use gnarl_fuzz::columns::record_batch;
use gnarl_fuzz::input::Input;
use gnarl_fuzz::memory::within;
use gnarl_fuzz::{fixture, parts, scratch};
use gnarl_loader::{BatchMaker, LoaderGraph};
use gnarl_partition::PartLayout;
use gnarl_serve::{DeferredBatches, ServedPart, Server, ServerConfig};
use gnarl_store::embedding::{Embedding, Ids, SparseAdagrad};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// Memory of a call of some kilobytes, of the server and the client together.
const MEMORY: usize = 64 << 20;
/// The call with messages that are not encoded here.
const RAW: u8 = 3;
const COLUMNS: [&str; 12] = [
    "node",
    "time",
    "gradient",
    "relation",
    "places",
    "nodes",
    "times",
    "sources",
    "destinations",
    "negative_sources",
    "negative_destinations",
    "weight",
];

struct Served {
    runtime: Runtime,
    client: FlightServiceClient<Channel>,
    _server: Server,
    _folder: TempDir,
}

impl Served {
    fn start() -> Self {
        let folder = scratch::folder();
        let graph = fixture::homogeneous(&folder.path().join("data"));
        let cut = parts::partition(&graph, PartLayout::EdgeCut, &folder.path().join("parts"));
        let mut held = Vec::new();
        for part in 0..parts::PARTS {
            let served = ServedPart::open(&cut, part).expect("a part");
            let map = cut.id_map("_N").expect("an id map");
            let ids = Ids::in_parts(map, part..part + 1);
            let rule = Arc::new(SparseAdagrad::new(1e-8).expect("a rule"));
            let table = Embedding::in_home(ids, (2, 0.5, Key::new(1)), rule, &Home::Memory);
            let table = table.expect("embeddings");
            held.push(Arc::new(served.with_embedding(table).expect("embeddings")));
        }
        let batches = DeferredBatches::default();
        let graph = Arc::new(LoaderGraph::open(&graph).expect("a graph"));
        batches.fill(Arc::new(BatchMaker::new(graph, 1)));
        let config = ServerConfig { threads: 1, ..ServerConfig::default() };
        let server = Server::of_partition(&cut, held, Some(batches), &config).expect("a server");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a thread");
        let endpoint = Endpoint::from_shared(server.uri()).expect("an address");
        let channel = runtime.block_on(endpoint.connect()).expect("a connection");
        Self {
            runtime,
            client: FlightServiceClient::new(channel),
            _server: server,
            _folder: folder,
        }
    }

    /// Makes the call of an input, and takes all of its answer.
    fn call(&self, input: &mut Input<'_>) -> Result<(), Status> {
        let mut client = self.client.clone();
        match input.byte() % 6 {
            0 | 1 => {
                let command = input.section().to_vec();
                let batch = record_batch(input, &COLUMNS, false);
                self.exchange(command, batch)
            }
            // Messages of loaders have one row of lists.
            2 => {
                let command = input.section().to_vec();
                let batch = record_batch(input, &COLUMNS, true);
                self.exchange(command, batch)
            }
            RAW => {
                let mut messages = vec![described(input.section().to_vec())];
                while !input.is_empty() && messages.len() < 8 {
                    let header = input.section().to_vec();
                    let body = input.section().to_vec();
                    messages.push(FlightData::new().with_data_header(header).with_data_body(body));
                }
                self.runtime.block_on(async {
                    let answer = client.do_exchange(stream::iter(messages)).await?;
                    drained(answer.into_inner()).await
                })
            }
            4 => self.runtime.block_on(async {
                let answer = client.do_get(Ticket::new(input.rest().to_vec())).await?;
                drained(answer.into_inner()).await
            }),
            _ => self.runtime.block_on(async {
                let kind = String::from_utf8_lossy(input.section()).into_owned();
                let answer = client.do_action(Action::new(kind, input.section().to_vec())).await?;
                drained(answer.into_inner()).await?;
                let path = vec![String::from_utf8_lossy(input.rest()).into_owned()];
                client.get_flight_info(FlightDescriptor::new_path(path)).await.map(drop)
            }),
        }
    }

    fn exchange(
        &self,
        command: Vec<u8>,
        batch: Option<arrow_array::RecordBatch>,
    ) -> Result<(), Status> {
        let mut client = self.client.clone();
        self.runtime.block_on(async {
            let batches = stream::iter(batch.map(Ok));
            let data = FlightDataEncoderBuilder::new().build(batches);
            let data: Vec<FlightData> = data.try_collect().await.expect("messages");
            let messages = stream::iter([described(command)]).chain(stream::iter(data));
            drained(client.do_exchange(messages).await?.into_inner()).await
        })
    }
}

fn described(command: Vec<u8>) -> FlightData {
    FlightData::new().with_descriptor(FlightDescriptor::new_cmd(command))
}

async fn drained<T>(mut answer: tonic::Streaming<T>) -> Result<(), Status> {
    while answer.message().await?.is_some() {}
    Ok(())
}

static SERVED: LazyLock<Served> = LazyLock::new(Served::start);

fuzz_target!(init: { LazyLock::force(&SERVED); }, |data: &[u8]| {
    let answer = within(MEMORY, || SERVED.call(&mut Input::new(data)));
    if let Err(status) = answer {
        // Arrow's decoder calls malformed messages internal errors.
        let is_raw = data.first().is_some_and(|call| call % 6 == RAW);
        let blames_the_server = matches!(status.code(), Code::Internal | Code::DataLoss);
        assert!(is_raw || !blames_the_server, "{status:?}");
    }
});
