//! Layer-wise inference (GLISP §III-D): every node's embedding, in bounded memory.
