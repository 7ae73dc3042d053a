"""NVIDIA's compiler as a library, which needs no GPU: from CUDA source to machine code for a given architecture."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from pathlib import Path

OPTIONS = ("--std=c++17", "-ftz=true")  # as CuPy passes them


@functools.cache
def library() -> ctypes.CDLL | None:
    """NVRTC of the package ``nvidia-cuda-nvrtc``; None where it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in (spec.submodule_search_locations or [] if spec else [])]
    found = [path for folder in folders for path in sorted(folder.glob("**/libnvrtc.so.*"))]
    if not found:
        return None
    for builtins in found[0].parent.glob("libnvrtc-builtins.so.*"):  # which some versions look for by name alone
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(found[0]))


def machine_code(source: str, architecture: str) -> bytes:
    """The kernels of a source, compiled and assembled for ``sm_90``, say; what the compiler says otherwise."""
    nvrtc = library()
    assert nvrtc is not None
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={architecture}")]
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        assert not failed, _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode()[:2000]
        return _text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, size_of: ctypes._CFuncPtr, get: ctypes._CFuncPtr) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(get(program, text))
    return text.raw


def _check(status: int) -> None:
    assert status == 0, f"NVRTC: error {status}"
