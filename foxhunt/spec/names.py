"""What a name may be: an identifier that C++, CUDA and Python all leave free."""

from __future__ import annotations

import keyword
import re

MAX_NAME = 64
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using
virtual void volatile wchar_t while xor xor_eq final override import module std main
"""
_MACROS = """
NULL EOF NAN INFINITY HUGE_VAL HUGE_VALF BUFSIZ RAND_MAX DOMAIN OVERFLOW UNDERFLOW SING PLOSS TLOSS CHAR_BIT
CHAR_MAX CHAR_MIN INT_MAX INT_MIN LONG_MAX LONG_MIN SHRT_MAX SHRT_MIN UINT_MAX FLT_MAX FLT_MIN FLT_EPSILON
DBL_MAX DBL_MIN DBL_EPSILON SIZE_MAX MB_LEN_MAX BIG_ENDIAN LITTLE_ENDIAN assert errno linux unix stdin
stdout stderr major minor makedev offsetof
"""
_CUDA = """
threadIdx blockIdx blockDim gridDim warpSize dim3 half float2 float3 float4 int2 int3 int4 uint2 uint3 uint4
double2 char4 uchar4 short2 longlong2
"""
_PRELUDE = """
In Out Update Slot Bound Counter Rng Many Ticket Block Blk Shared Args State BLOCK block ticket foxhunt
layout carry i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 f32x4 u32x4
"""
RESERVED = frozenset(
    [*_CPP.split(), *_MACROS.split(), *_CUDA.split(), *_PRELUDE.split(), *keyword.kwlist, *("self", "cls")]
)
SYSTEM_KERNELS = frozenset(
    {"ingest", "apply", "publish", "reset", "sentinel", "sentinel_keep", "sentinel_undo"}
)


def reason_against(name: str) -> str:
    """Why `name` cannot name anything, or ''."""
    if not name.isascii():
        return "has a character that is not ASCII"
    if not _IDENTIFIER.fullmatch(name):
        return "is not a letter followed by letters, digits and _"
    if len(name) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if "__" in name:
        return "has `__`, which C++ keeps to itself"
    if name.startswith(("FH_", "FOXHUNT_")):
        return "starts as the prelude's macros do"
    if name in RESERVED:
        return "is reserved in C++, CUDA, Python or the prelude"
    return ""
