"""What a frozen language model makes of names."""

from adatkg_core.text.encoder import load_encoder
from adatkg_core.text.encoder_protocol import TextEncoder
from adatkg_core.text.entity_text import text_of

__all__ = [
    "TextEncoder",
    "load_encoder",
    "text_of",
]
