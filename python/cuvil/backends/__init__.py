"""From the IR to code."""

from cuvil.backends import cxx

__all__ = ["cxx"]
