"""One table of element types: what a spec calls them, what NumPy, C++ and a layout line call them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """An element type; `ctype` is the prelude's alias in emitted code."""

    name: str
    numpy: str
    ctype: str
    size: int


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("f32", "float32", "f32", 4),
        DType("i32", "int32", "i32", 4),
        DType("u32", "uint32", "u32", 4),
        DType("i64", "int64", "i64", 8),
        DType("u8", "uint8", "u8", 1),
    )
}
F32, I32, U32, I64, U8 = (DTYPES[n] for n in ("f32", "i32", "u32", "i64", "u8"))
