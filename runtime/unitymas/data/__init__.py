"""Task rows, corpora and the sources that hold them."""

from unitymas.data.corpus import Passage, read_corpus
from unitymas.data.rows import read_rows, scan_rows
from unitymas.data.sources import Sources

__all__ = ["Passage", "Sources", "read_corpus", "read_rows", "scan_rows"]
