"""radixledger: the KV-cache metadata of an LLM server, with a journal of who owned which slot when.

The door of the package. The folders `journal`, `cache`, `replay`, `analytics` and `tools`
stand at the top of the repository and are linked here; import from them by name, for example
`from radixledger.journal.events import ...`. Nothing is imported eagerly.
"""

__version__ = "0.1.0"

__all__ = ("__version__",)
