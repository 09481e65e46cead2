// The prelude of every emitted kernel: one source for CUDA (nvcc, NVRTC) and for the host (g++, clang++).
#pragma once

#include "types.cuh"
#include "math.cuh"
#include "arguments.cuh"
#include "philox.cuh"
#include "reduce.cuh"
#if FOXHUNT_CUDA
#include "block_cuda.cuh"
#else
#include "block_host.cuh"
#include "run_host.cuh"
#endif
#include "system.cuh"
#include "statistic.cuh"
#include "gemm.cuh"
