"""bild-bench: measures big/little decoding of sequence-to-sequence models."""

__version__ = "0.1.0"
