//! A store in memory that fails on demand.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

/// A failure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The part of this number is refused.
    Part(usize),
    /// Parts are never answered.
    Silence,
    /// The parts arrive, and cannot be joined.
    Complete,
    /// Puts have no conditions.
    Unconditional,
    /// Objects whose path ends so are refused.
    Ending(&'static str),
    /// The first so many reads are refused.
    Reads(usize),
}

/// A store in memory that has a fault.
#[derive(Debug)]
pub struct Faulty {
    pub inner: InMemory,
    pub fault: Fault,
    /// Reads so far.
    pub reads: AtomicUsize,
    /// Uploads that were given up.
    pub aborted: Arc<AtomicUsize>,
}

impl Faulty {
    pub fn new(fault: Fault) -> Self {
        Self { inner: InMemory::new(), fault, reads: AtomicUsize::new(0), aborted: Arc::default() }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

fn refused() -> Error {
    Error::Generic { store: "faulty", source: "503 Slow Down".into() }
}

#[async_trait::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match self.fault {
            Fault::Unconditional if options.mode == PutMode::Create => Err(Error::NotImplemented {
                operation: "conditional put".into(),
                implementer: "faulty".into(),
            }),
            Fault::Ending(name) if location.as_ref().ends_with(name) => Err(refused()),
            _ => self.inner.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, options).await?;
        let (fault, aborted) = (self.fault, self.aborted.clone());
        Ok(Box::new(FaultyUpload { inner, fault, parts: 0, aborted }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if let Fault::Reads(refusals) = self.fault
            && self.reads.fetch_add(1, Ordering::SeqCst) < refusals
        {
            return Err(refused());
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    fault: Fault,
    parts: usize,
    aborted: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts += 1;
        match self.fault {
            Fault::Part(number) if number + 1 == self.parts => Box::pin(async { Err(refused()) }),
            Fault::Silence => Box::pin(async {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(())
            }),
            _ => self.inner.put_part(data),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        match self.fault {
            Fault::Complete => Err(refused()),
            _ => self.inner.complete().await,
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.aborted.fetch_add(1, Ordering::SeqCst);
        self.inner.abort().await
    }
}
