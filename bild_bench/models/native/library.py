"""The native decoder's functions, as Python calls them."""

from __future__ import annotations

import ctypes
from pathlib import Path

from torch import Tensor

_POINTER, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float

# Name -> (result, arguments); t5.cpp says what they mean.
_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "native_model": (_POINTER, (_POINTER, _POINTER, _POINTER, _POINTER)),
    "native_add_layer": (None, (_POINTER, _POINTER)),
    "native_free_model": (None, (_POINTER,)),
    "native_set_bias": (None, (_POINTER, _POINTER, _INT, _INT)),
    "native_encode": (None, (_POINTER, _POINTER, _INT, _INT)),
    "native_cache": (_POINTER, (_POINTER,)),
    "native_free_cache": (None, (_POINTER,)),
    "native_source": (_POINTER, (_POINTER, _POINTER, _INT, _INT)),
    "native_embed": (ctypes.c_bool, (_POINTER, _POINTER, _INT, _POINTER)),
    "native_run_layers": (None, (_POINTER, _POINTER, _POINTER, _POINTER, *(_INT,) * 5)),
    "native_fill": (None, (_POINTER, _POINTER, _POINTER, *(_INT,) * 4)),
    "native_read": (_FLOAT, (_POINTER, _INT, _INT)),
    "native_multiply": (_INT, (_INT, _INT)),
    "native_team_counts": (None, (_POINTER, _POINTER)),
    "native_score": (None, (_POINTER, _POINTER, _INT, _INT, _POINTER, _POINTER, _POINTER)),
}


class Shape(ctypes.Structure):
    """`Shape` of model.h."""

    _fields_ = (
        *((name, _INT) for name in ("layers", "width", "heads", "head_width", "feed_width", "vocabulary")),
        *(("known_ids", _INT), ("gated", _INT), ("decoder", _INT), ("epsilon", _FLOAT), ("head_scale", _FLOAT)),
    )


def open_library(path: Path) -> ctypes.CDLL:
    """Load what `build` made and declare its functions.

    Raises:
        OSError: it cannot be loaded.
        AttributeError: it is another library.
    """
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def team_counts(library: ctypes.CDLL) -> tuple[int, int]:
    """Calls of this process that were to be done by several threads, and how many of them lacked or awaited one."""
    calls, late = ctypes.c_int64(), ctypes.c_int64()
    library.native_team_counts(ctypes.byref(calls), ctypes.byref(late))
    return calls.value, late.value


def address(tensor: Tensor) -> int:
    """Where a tensor's numbers begin; it must be contiguous and outlive the call."""
    assert tensor.is_contiguous()
    return tensor.data_ptr()
