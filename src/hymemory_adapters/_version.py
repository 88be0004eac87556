"""The one place for the version of hymemory-adapters."""

__version__ = "0.1.0"
