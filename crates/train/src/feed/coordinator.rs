//! The coordinator of a run, in its first rank or by itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_common::{Result, ResultExt};
use gnarl_config::RunConfig;
use gnarl_serve::{
    Client, ClientConfig, Coordinator, LEASE, Server, ServerConfig, Tls, read_token,
};

/// Addresses, certificate and token that a worker reaches the others by.
#[derive(Clone)]
pub(crate) struct Access {
    pub token: Option<String>,
    /// The certificate, in PEM, of coordinators and batch workers.
    pub certificate: Option<Vec<u8>>,
}

impl Access {
    /// Reads the files of `[disaggregated]`.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn of(config: &RunConfig) -> Result<Self> {
        let section = &config.disaggregated;
        let certificate = section.certificate.as_deref();
        Ok(Self {
            token: section.token_file.as_deref().map(read_token).transpose()?,
            certificate: certificate.map(|path| std::fs::read(path).at(path)).transpose()?,
        })
    }

    /// Prepares a connection whose calls take up to `deadline`.
    ///
    /// # Errors
    /// If the address or the certificate is invalid.
    pub fn connect(&self, uri: &str, deadline: Duration) -> Result<Client> {
        Client::connect(&ClientConfig {
            token: self.token.clone(),
            certificate: self.certificate.clone(),
            deadline,
            in_flight: usize::MAX >> 4,
            ..ClientConfig::new(uri)
        })
    }
}

/// The coordinator in the first rank of a run; dropping it tells batch workers that the run has ended.
pub(crate) struct KeptCoordinator {
    coordinator: Arc<Coordinator>,
    server: Server,
}

impl KeptCoordinator {
    /// Listens for the batch workers of `run`.
    ///
    /// # Errors
    /// If the address is taken, or is public without a token and encryption.
    pub fn start(config: &RunConfig, run: String) -> Result<Self> {
        let section = &config.disaggregated;
        let access = Access::of(config)?;
        let tls = match (&section.certificate, &section.key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key)?),
            _ => None,
        };
        let server = ServerConfig { token: access.token, tls, ..listening(section.listen) };
        let coordinator = Arc::new(Coordinator::new(run));
        let server = Server::of_workers(coordinator.clone(), &server)?;
        Ok(Self { coordinator, server })
    }

    /// Its address.
    pub fn uri(&self) -> String {
        self.server.uri()
    }
}

impl Drop for KeptCoordinator {
    fn drop(&mut self) {
        self.coordinator.end();
        // Those that do not hear it end when nobody answers them.
        let start = Instant::now();
        while !self.coordinator.is_deserted() && start.elapsed() < LEASE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn listening(listen: SocketAddr) -> ServerConfig {
    ServerConfig { listen, ..ServerConfig::default() }
}
